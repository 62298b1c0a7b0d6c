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
import { faultOfTimedSignature, forged } from '#src/connectors/provider-signature.ts';
import { INTENT_ID } from './answers.ts';
import { fromStripeMoney } from './money.ts';
import type { StripeSettings } from './settings.ts';

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
  const { header, body } = notification;
  const fault = faultOfTimedSignature(header('stripe-signature'), body, settings.webhookSecrets, nowMs);
  if (fault !== undefined) return forged(fault);

  const event = readJsonObject(body);
  if (!event || !isTextLike(event.id, EVENT_ID) || !isJsonObject(event.data)) return { kind: 'ignored' };
  // Events of test payments, and of accounts connected to ours, may arrive at the same endpoint.
  const isOurs = event.account === undefined || event.account === settings.accountId;
  if (event.livemode !== settings.isLive || !isOurs) return { kind: 'ignored' };
  const subject = subjectOf(textOf(event.type), event.data.object);
  return subject ? { kind: 'about', deduplicationKey: event.id, subjects: [subject] } : { kind: 'ignored' };
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
  // That an intent was created tells nothing: it is not confirmed, and our own call made it.
  const isPayment = /^payment_intent\.(?!created$)/.test(type) && object.object === 'payment_intent';
  const isRefund = /^(charge\.)?refund\./.test(type) && object.object === 'refund';
  const isCharge = /^charge\.(captured|refunded)$/.test(type) && object.object === 'charge';
  if (isUuid(transactionId) && (isPayment || isRefund)) {
    return { transactionId, ...(typeof object.id === 'string' && { reference: object.id }) };
  }
  // What is done at Stripe itself has no id of ours: its payment is looked up. Other software that uses the account
  // creates payments without one, too, and they are not found.
  const { payment_intent: reference } = object;
  return (isRefund || isCharge) && isTextLike(reference, INTENT_ID) ? { reference } : undefined;
}
