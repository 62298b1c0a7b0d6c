import type Stripe from 'stripe';
import {
  asIs,
  each,
  type FieldsOf,
  fields,
  listOf,
  optional,
  type Read,
  readJsonObject,
  textLike,
  textOf,
  uuidOf,
} from '../kit/provider-answer.ts';
import { faultOfTimedSignature, forged } from '../kit/provider-signature.ts';
import type { NotificationReading, NotificationSubject, RawNotification } from '../port/connector.ts';
import type { DisputeStage } from '../port/dispute-report.ts';
import { INTENT_ID, moneyOf } from './answers.ts';
import { fromStripeMoney } from './money.ts';
import type { StripeSettings } from './settings.ts';

const DISPUTE_ID = /^[a-z]{2}_[A-Za-z0-9_]{1,200}$/;

/** Reads the object that an event is about: an intent, a charge, a refund or a dispute. */
const readObject = fields({
  ...each(textOf, 'object', 'id', 'status'),
  ...each(asIs, 'amount', 'currency'),
  balance_transactions: listOf(fields({ amount: asIs })),
  payment_intent: textLike(INTENT_ID),
  metadata: fields({ transaction_id: uuidOf }),
});

const readNotification = fields({
  id: textLike(/^evt_[A-Za-z0-9_]{1,200}$/),
  type: textOf,
  account: asIs,
  livemode: asIs,
  data: fields({ object: optional(readObject) }),
} satisfies FieldsOf<Stripe.Event>);

const DISPUTES: Readonly<Record<string, DisputeStage>> = {
  needs_response: 'opened',
  under_review: 'opened',
  lost: 'lost',
  won: 'won',
};

/** Movements of the disputed money so far, by the events that report one. */
const MOVES: Readonly<Record<string, number>> = {
  'charge.dispute.funds_withdrawn': 1,
  'charge.dispute.funds_reinstated': 2,
};

/**
 * Returns the movements of the disputed money so far: a dispute lists a balance transaction for each. An event that reports
 * a movement may arrive before its balance transaction is listed.
 */
function movesOf(type: string, { balance_transactions: listed }: Read<typeof readObject>): number {
  const moved = listed.filter(({ amount }) => typeof amount === 'number' && amount !== 0);
  return Math.max(moved.length, MOVES[type] ?? 0);
}

/**
 * Reads an event that Stripe posted to our endpoint; pure. The event's object is used only to decide what to look up.
 */
export function readEvent(
  notification: RawNotification,
  settings: Pick<StripeSettings, 'webhookSecrets' | 'accountId' | 'isLive'>,
  nowMs: number,
): NotificationReading {
  const { header, body } = notification;
  const fault = faultOfTimedSignature(header('stripe-signature'), body, settings.webhookSecrets, nowMs);
  if (fault !== undefined) return forged(fault);

  const { id: deduplicationKey, type, account, livemode, data } = readNotification(readJsonObject(body));
  // Events of test payments, and of accounts connected to ours, may arrive at the same endpoint.
  const isOurs = account === undefined || account === settings.accountId;
  const subject = livemode === settings.isLive && isOurs && data.object && subjectOf(type, data.object);
  if (deduplicationKey === undefined || !subject) return { kind: 'ignored' };
  return { kind: 'about', deduplicationKey, subjects: [subject] };
}

function subjectOf(type: string, object: Read<typeof readObject>): NotificationSubject | undefined {
  const { id, payment_intent: intentId } = object;
  if (type.startsWith('charge.dispute.')) {
    const stage = DISPUTES[object.status];
    if (!stage || intentId === undefined) return undefined;
    const money = moneyOf(object);
    const reference = DISPUTE_ID.test(id) ? id : undefined;
    const dispute = { stage, reference, moves: movesOf(type, object) || undefined };
    return { providerPaymentId: intentId, dispute: { ...dispute, money: money && fromStripeMoney(money) } };
  }
  const { transaction_id: transactionId } = object.metadata;
  // The creation of an intent is irrelevant: our own call made it, and it is unconfirmed.
  const isPayment = /^payment_intent\.(?!created$)/.test(type) && object.object === 'payment_intent';
  const isRefund = /^(charge\.)?refund\./.test(type) && object.object === 'refund';
  const isCharge = /^charge\.(captured|refunded)$/.test(type) && object.object === 'charge';
  if (transactionId !== undefined && (isPayment || isRefund)) {
    return { transactionId, ...(id !== '' && { providerPaymentId: id }) };
  }
  // External captures and refunds lack our id: their payment is looked up. Other software on the same account also
  // creates payments without our id; look-ups do not find those.
  return (isRefund || isCharge) && intentId !== undefined ? { providerPaymentId: intentId } : undefined;
}
