import type Stripe from 'stripe';
import {
  asIs,
  each,
  type FieldsOf,
  fields,
  optional,
  type Read,
  readJsonObject,
  textLike,
  textOf,
  uuidOf,
} from '../kit/provider-answer.ts';
import { faultOfTimedSignature, forged } from '../kit/provider-signature.ts';
import type { NotificationReading, NotificationSubject, RawNotification } from '../port/connector.ts';
import { INTENT_ID } from './answers.ts';
import { DISPUTE_FIELDS, disputeOf } from './disputes.ts';
import type { StripeSettings } from './settings.ts';

/** Reads the object that an event is about: an intent, a charge, a refund or a dispute. */
const readObject = fields({
  ...each(textOf, 'object', 'id', 'status'),
  ...each(asIs, 'amount', 'currency'),
  ...DISPUTE_FIELDS,
  payment_intent: textLike(INTENT_ID),
  metadata: fields({ transaction_id: uuidOf }),
});

const readNotification = fields({
  id: textLike(/^evt_[A-Za-z0-9_]{1,200}$/),
  type: textOf,
  created: asIs,
  account: asIs,
  livemode: asIs,
  data: fields({ object: optional(readObject) }),
} satisfies FieldsOf<Stripe.Event>);

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

  const event = readNotification(readJsonObject(body));
  const { id: deduplicationKey, account, livemode, data } = event;
  // Events of test payments, and of accounts connected to ours, may arrive at the same endpoint.
  const isOurs = account === undefined || account === settings.accountId;
  const subject = livemode === settings.isLive && isOurs && data.object && subjectOf(event, data.object);
  if (deduplicationKey === undefined || !subject) return { kind: 'ignored' };
  return { kind: 'about', deduplicationKey, subjects: [subject] };
}

function subjectOf(
  { type, created, livemode }: Read<typeof readNotification>,
  object: Read<typeof readObject>,
): NotificationSubject | undefined {
  const isLive = livemode === true;
  const { id, payment_intent: intentId } = object;
  if (type.startsWith('charge.dispute.')) {
    const dispute = disputeOf(type, created, isLive, object);
    return dispute && intentId !== undefined ? { providerPaymentId: intentId, dispute } : undefined;
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
