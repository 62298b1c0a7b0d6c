import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { HttpResult } from '#src/connectors/http-client.ts';
import type { Totals } from '#src/connectors/outcome.ts';
import { assertNever, type Outcome } from '#src/connectors/outcome.ts';
import {
  alarmingOutcome,
  answeredAboutAnother,
  approvedOutcome,
  differingMoney,
  fromResult,
  isHttpUrl,
  isJsonObject,
  isTextLike,
  neverHappens,
  objectAt,
  readMoney,
  textOf,
  unknownOutcome,
} from '#src/connectors/provider-answer.ts';
import type { ShownAs } from '#src/connectors/provider-client.ts';
import type { Money } from '#src/money.ts';
import { meaningOf } from './decline-codes.ts';
import { fromStripeMoney } from './money.ts';
import { providerDataOf } from './provider-data.ts';
import { declined, errorOf, fromRefusal, isCardError } from './refusals.ts';

/** Values that an answer about a PaymentIntent must agree with. All money is in Stripe's units. */
export type AskedIntent = {
  /** undefined until Stripe has reported it. */
  readonly intentId: string | undefined;
  /** The purchase or authorization that the intent stands for. */
  readonly payment: AskedMoney;
  readonly of:
    | { readonly kind: 'card'; readonly capture: boolean }
    | ({ readonly kind: 'capture' | 'cancel' } & AskedMoney);
  readonly shownAs: ShownAs;
};

/** Values that an answer about a refund must agree with. */
export type AskedRefund = {
  readonly intentId: string;
  readonly refund: AskedMoney;
  readonly shownAs: ShownAs;
};

/** A transaction of ours and its money. */
export type AskedMoney = { readonly transactionId: string; readonly money: Money };
/** The transaction has not happened but still may: the provider has not received its request so far. */
export type Open = 'open';

/** Matches ids of PaymentIntents. */
export const INTENT_ID = /^pi_[A-Za-z0-9_]{1,200}$/;
const REFUND_ID = /^(re|pyr)_[A-Za-z0-9_]{1,200}$/;
/** Reads the answer to a request that may move money; `read` gets the body of a success. */
export function fromAnswer(
  result: HttpResult,
  asked: AskedIntent | AskedRefund,
  read: (body: JsonObject) => Outcome | Open,
): Outcome {
  return fromResult(result, (body, { status }) => {
    const error = errorOf(body);
    if (isCardError(status, error)) return fromDecline(error, body, asked);
    const refusal = fromRefusal(status, error);
    if (refusal) return refusal;
    const outcome = read(body);
    if (outcome === 'open') return unknownOutcome('the answer contradicts itself');
    // Only a look-up proves that nothing happened: Stripe has just said that it did what was asked.
    return outcome.kind === 'not_sent' ? alarmingOutcome(`a success, but ${outcome.detail}`) : outcome;
  });
}

/** Reads the outcome of a purchase, an authorization, a capture or a cancel from its PaymentIntent. */
export function fromIntent(intent: JsonObject, asked: AskedIntent): Outcome | Open {
  const difference = differenceOf(intent, asked);
  if (difference !== undefined) return answeredAboutAnother(difference);
  const providerData = providerDataOf(intent, intent, asked.shownAs);
  switch (asked.of.kind) {
    case 'card':
      return fromPayment(intent, asked.of.capture, providerData);
    case 'capture':
      return fromCapture(intent, asked.of, providerData);
    case 'cancel':
      if (intent.status === 'canceled') return approved(intent, { providerData });
      return intent.status === 'succeeded' ? neverHappens('the payment is captured') : 'open';
    default:
      return assertNever(asked.of);
  }
}

/**
 * Sums up what was captured of an intent, and refunded: of a capture in part, Stripe lists the release of the rest as a
 * refund, too, which gives nothing back. A refund that is pending may yet fail, and then Stripe lists it so.
 *
 * @returns undefined if not all of it can be read.
 */
export function totalsOf(intent: JsonObject, refunds: readonly JsonObject[]): Totals | undefined {
  const { status, amount, amount_received: received, currency } = intent;
  const isCaptured = status === 'succeeded';
  const rest = isCaptured ? Number(amount) - Number(received) : 0;
  const release = refunds.findLast((one) => one.amount === rest && !metadataOf(one).transaction_id);
  const made = refunds.filter((one) => one.status === 'succeeded' && one !== release);
  const sums = [isCaptured ? received : 0, ...made.map((one) => one.currency === currency && one.amount)];
  const [captured, ...parts] = sums.map((value) => {
    const money = readMoney(value, currency, 'minor_units');
    return money && fromStripeMoney(money)?.minorUnits;
  });
  if (captured === undefined || !parts.every((part) => part !== undefined)) return undefined;
  return { captured, refunded: parts.reduce((sum, part) => sum + part, 0n) };
}

/** Reads the outcome of a refund from Stripe's Refund object. */
export function fromRefund(refund: JsonObject, asked: AskedRefund): Outcome {
  if (refund.object !== 'refund' || !isTextLike(refund.id, REFUND_ID)) return answeredAboutAnother('object');
  if (refund.payment_intent !== asked.intentId) return answeredAboutAnother('payment_intent');
  if (metadataOf(refund).transaction_id !== asked.refund.transactionId)
    return answeredAboutAnother('transaction_id');
  const money = readMoney(refund.amount, refund.currency, 'minor_units');
  const difference = differingMoney(money, asked.refund.money);
  if (difference !== undefined) return answeredAboutAnother(difference);

  const providerData = providerDataOf(refund, refund, asked.shownAs);
  const reported = { providerData, reference: refund.id };
  switch (refund.status) {
    case 'succeeded':
      return approvedOutcome(reported);
    case 'pending':
    case 'requires_action':
      return { kind: 'pending', ...reported };
    case 'failed':
    case 'canceled':
      return { kind: 'declined', ...reported, ...meaningOf(textOf(refund.failure_reason)) };
    default:
      return unknownOutcome('the refund has a status that is not known', providerData);
  }
}

/** Reads the outcome of a payment from an answer whose HTTP status is a success. */
function fromPayment(intent: JsonObject, capture: boolean, providerData: ProviderData): Outcome | Open {
  const { status, amount, amount_received, amount_capturable, last_payment_error } = intent;
  const failure = isJsonObject(last_payment_error) ? last_payment_error : undefined;
  if ((intent.capture_method !== 'manual') !== capture) return answeredAboutAnother('capture_method');
  switch (status) {
    case 'succeeded':
      // An authorization may have been captured since, even in part.
      if (capture && amount_received !== amount) return answeredAboutAnother('amount_received');
      return approved(intent, { providerData });
    case 'requires_capture':
      if (capture || amount_capturable !== amount) return answeredAboutAnother('amount_capturable');
      return approved(intent, { providerData });
    case 'processing':
      return { kind: 'pending', providerData };
    case 'requires_action':
      return fromNextAction(intent.next_action, providerData);
    case 'requires_payment_method':
    case 'requires_confirmation':
      return failure ? declined(failure, intent, providerData) : 'open';
    case 'canceled':
      // The error of an authorization that was approved is that of a failed capture.
      if (failure && !isAuthorized(intent)) return declined(failure, intent, providerData);
      // Without a payment method it was never confirmed, and can no longer be.
      if (intent.payment_method || intent.latest_charge) return { kind: 'expired', providerData };
      return neverHappens('the provider closed it unconfirmed');
    default:
      return unknownOutcome('the payment has a status that is not known', providerData);
  }
}

function isAuthorized(intent: JsonObject): boolean {
  return objectAt(intent, 'latest_charge').status === 'succeeded';
}

function fromNextAction(action: JsonValue | undefined, providerData: ProviderData): Outcome {
  const redirect = isJsonObject(action) && isJsonObject(action.redirect_to_url) && action.redirect_to_url;
  if (!redirect || !isHttpUrl(redirect.url)) {
    return unknownOutcome('the payer has to act, and there is no address to send them to', providerData);
  }
  return { kind: 'redirect', providerData, redirectUrl: redirect.url };
}

function fromCapture(
  intent: JsonObject,
  { transactionId, money }: AskedMoney,
  providerData: ProviderData,
): Outcome | Open {
  if (intent.status === 'requires_capture') return 'open';
  if (intent.status === 'canceled') return neverHappens('the authorization is canceled');
  if (intent.status !== 'succeeded')
    return unknownOutcome('the payment is in no state for captures', providerData);
  const mark = metadataOf(intent).capture_transaction_id;
  const captured = readMoney(intent.amount_received, intent.currency, 'minor_units');
  const difference = differingMoney(captured, money);
  if (mark === transactionId) {
    return difference === undefined
      ? approved(intent, { providerData })
      : answeredAboutAnother('amount_received');
  }
  // An authorization allows only one capture: with another's mark, or of another amount, it is not this one.
  if (mark !== undefined || difference !== undefined) return neverHappens('another capture was made');
  // Whoever captured it, exactly this money was taken, and cannot be taken again.
  providerData.responseMessage =
    'alarm: the capture lacks our mark, and may have been made at the provider itself';
  return approved(intent, { providerData, alarm: true });
}

function approved(intent: JsonObject, reported: Parameters<typeof approvedOutcome>[0]): Outcome {
  // Only newer versions of the API report these two.
  const card = objectAt(objectAt(objectAt(intent, 'latest_charge'), 'payment_method_details'), 'card');
  const networkTransactionId = textOf(card.network_transaction_id);
  return {
    ...approvedOutcome(reported, textOf(card.authorization_code)),
    ...(networkTransactionId !== '' && { networkTransactionId }),
  };
}

/** Reads a decline that comes as an error. It counts only if it is about this very payment. */
function fromDecline(error: JsonObject, body: JsonObject, asked: AskedIntent | AskedRefund): Outcome {
  const intent = error.payment_intent;
  if (!('of' in asked) || !isJsonObject(intent)) return unknownOutcome('a decline that names no payment');
  const difference = differenceOf(intent, asked);
  if (difference !== undefined) return answeredAboutAnother(difference);
  const providerData = providerDataOf(intent, body, asked.shownAs);
  // The authorization stands although its capture failed.
  const isCharged =
    intent.status === 'succeeded' || (asked.of.kind === 'card' && intent.status === 'requires_capture');
  if (isCharged) return unknownOutcome('the answer contradicts itself', providerData);
  return declined(error, intent, providerData);
}

/** Returns the first field that shows an intent to be another than the one asked about. */
function differenceOf(intent: JsonObject, { intentId, payment }: AskedIntent): string | undefined {
  if (intent.object !== 'payment_intent') return 'object';
  if (!isTextLike(intent.id, INTENT_ID) || (intentId !== undefined && intent.id !== intentId)) return 'id';
  if (metadataOf(intent).transaction_id !== payment.transactionId) return 'transaction_id';
  return differingMoney(readMoney(intent.amount, intent.currency, 'minor_units'), payment.money);
}

/** Returns the metadata that we set when we created an object. */
export function metadataOf(object: JsonObject): JsonObject {
  return objectAt(object, 'metadata');
}

/** Adds the intent's id to an outcome as its reference, by which operations and look-ups find it. */
export function referringTo(intentId: string, outcome: Outcome): Outcome {
  return outcome.kind === 'not_sent' ? outcome : { ...outcome, reference: intentId };
}
