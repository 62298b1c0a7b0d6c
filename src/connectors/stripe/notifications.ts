import type { JsonValue } from '@bufbuild/protobuf';
import type { NotificationReading, NotificationSubject, RawNotification } from '#src/connectors/connector.ts';
import type { DisputeStage } from '#src/connectors/dispute-report.ts';
import {
  isJsonObject,
  isTextLike,
  isUuid,
  objectAt,
  readJsonObject,
  readMoney,
  textOf,
} from '#src/connectors/provider-answer.ts';
import { faultOfTime, forged, isSignedBy } from '#src/connectors/provider-signature.ts';
import type { Secret } from '#src/secret.ts';
import { INTENT_ID } from './from-provider.ts';
import { fromStripeMoney } from './money.ts';
import type { StripeSettings } from './settings.ts';

/** Tolerance for a signature's age, and for how far it is ahead of our clock. */
const TOLERANCE_MS = 300_000;
const UNIX_SECONDS = /^\d{1,12}$/;
const HEX_SHA256 = /^[0-9a-f]{64}$/;
const EVENT_ID = /^evt_[A-Za-z0-9_]{1,200}$/;
const DISPUTE_ID = /^[a-z]{2}_[A-Za-z0-9_]{1,200}$/;

const DISPUTES: Readonly<Record<string, DisputeStage>> = {
  needs_response: 'opened',
  under_review: 'opened',
  lost: 'lost',
  won: 'won',
};

/** Reads an event that Stripe posted to our endpoint; pure. Its object says what to look up, never what happened. */
export function readEvent(
  notification: RawNotification,
  settings: Pick<StripeSettings, 'webhookSecrets' | 'accountId' | 'isLive'>,
  nowMs: number,
): NotificationReading {
  const header = notification.header('stripe-signature') ?? '';
  const fault = signatureFault(header, notification.body, settings.webhookSecrets, nowMs);
  if (fault !== undefined) return forged(fault);

  const event = readJsonObject(notification.body);
  if (!event || !isTextLike(event.id, EVENT_ID) || !isJsonObject(event.data)) return { kind: 'ignored' };
  // Events of test payments, and of accounts connected to ours, may arrive at the same endpoint.
  const isOurs = event.account === undefined || event.account === settings.accountId;
  if (event.livemode !== settings.isLive || !isOurs) return { kind: 'ignored' };
  const subject = subjectOf(textOf(event.type), event.data.object);
  return subject ? { kind: 'about', deduplicationKey: event.id, subjects: [subject] } : { kind: 'ignored' };
}

/**
 * Describes the fault of a `Stripe-Signature` header, `t=<unix seconds>,v1=<hex>[,v1=<hex>]`: HMAC-SHA-256 of
 * `<t>.<body>` under one of the secrets; undefined if there is no fault.
 */
function signatureFault(
  header: string,
  body: Uint8Array,
  secrets: readonly Secret[],
  nowMs: number,
): string | undefined {
  const elements = header.split(',').map((element) => element.trim().split('=', 2));
  const time = elements.find(([name]) => name === 't')?.[1] ?? '';
  const signatures = elements.flatMap(([name, value]) =>
    name === 'v1' && value !== undefined && HEX_SHA256.test(value) ? [Buffer.from(value, 'hex')] : [],
  );
  if (!UNIX_SECONDS.test(time) || signatures.length === 0) return 'the signature is missing or malformed';
  if (!isSignedBy(secrets, [`${time}.`, body], signatures)) return 'the signature is wrong';
  return faultOfTime(Number(time) * 1_000, nowMs, { maxAgeMs: TOLERANCE_MS, maxAheadMs: TOLERANCE_MS });
}

function subjectOf(type: string, object: JsonValue | undefined): NotificationSubject | undefined {
  if (!isJsonObject(object)) return undefined;
  if (type.startsWith('charge.dispute.')) {
    const stage = DISPUTES[textOf(object.status)];
    if (!stage || !isTextLike(object.payment_intent, INTENT_ID)) return undefined;
    const money = readMoney(object.amount, object.currency, 'minor_units');
    const reference = isTextLike(object.id, DISPUTE_ID) ? object.id : undefined;
    return {
      reference: object.payment_intent,
      dispute: { stage, reference, money: money && fromStripeMoney(money) },
    };
  }
  const { transaction_id: transactionId } = objectAt(object, 'metadata');
  const isPayment = type.startsWith('payment_intent.') && object.object === 'payment_intent';
  const isRefund = /^(charge\.)?refund\./.test(type) && object.object === 'refund';
  // Other software that uses the account creates payments without an id of ours.
  if (!(isPayment || isRefund) || !isUuid(transactionId)) return undefined;
  return { transactionId, ...(typeof object.id === 'string' && { reference: object.id }) };
}
