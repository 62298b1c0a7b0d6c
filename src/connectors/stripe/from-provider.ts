import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { Money } from '#src/money.ts';
import type { HttpResult } from '../kit/http-client.ts';
import {
  alarmingOutcome,
  answeredAboutAnother,
  approvedOutcome,
  correcting,
  differingMoney,
  fromResult,
  isSuccess,
  neverHappens,
  readMoney,
  unknownOutcome,
  withMovedMoney,
} from '../kit/provider-answer.ts';
import type { ShownAs } from '../kit/provider-client.ts';
import type { Corrections } from '../port/connector.ts';
import { assertNever, type Movement, type Outcome, type ReportedCard, type Totals } from '../port/outcome.ts';
import {
  errorOf,
  type Intent,
  moneyOf,
  providerDataOf,
  type Refund,
  readIntent,
  readRefund,
  type StripeError,
} from './answers.ts';
import { fromCode } from './from-code.ts';
import { fromStripeMoney } from './money.ts';
import { declined, fromRefusal, meaningOf } from './refusals.ts';

/** Values that a response about a PaymentIntent must match. All money is in Stripe's units. */
export type AskedIntent = {
  /** undefined until Stripe has reported it. */
  readonly intentId: string | undefined;
  /** The purchase or authorization of the intent. */
  readonly payment: AskedMoney;
  readonly of:
    | { readonly kind: 'CARD'; readonly capture: boolean }
    | { readonly kind: 'PAYER_CODE' }
    | ({ readonly kind: 'capture' | 'cancel'; readonly claimed: readonly string[] } & AskedMoney);
  readonly shownAs: ShownAs;
};

/** Values that a response about a refund must match. */
export type AskedRefund = {
  readonly intentId: string;
  readonly refund: AskedMoney;
  readonly shownAs: ShownAs;
};

/** One of our transactions and its money. */
export type AskedMoney = { readonly transactionId: string; readonly money: Money };
/** The transaction has not happened but still may, since the provider has not received the request yet. */
export type Open = 'open';

/** Reads the response to a request that may move money; `read` gets the body of a success. */
export function fromAnswer(
  result: HttpResult,
  asked: AskedIntent | AskedRefund,
  read: (body: JsonObject) => Outcome | Open,
): Outcome {
  return fromResult(result, (body, { status }) => {
    const error = errorOf(body);
    const refusal = isSuccess(status) ? undefined : fromRefusal(status, error);
    if (refusal === 'declined') return fromDecline(error, body, asked);
    if (refusal) return refusal;
    const outcome = read(body);
    if (outcome === 'open') return unknownOutcome('the response contradicts itself');
    // Only a look-up can prove that nothing happened: here, Stripe has just confirmed the request.
    return outcome.kind === 'not_sent' ? alarmingOutcome(`success status, but ${outcome.detail}`) : outcome;
  });
}

/** Reads the outcome of a purchase, an authorization, a capture or a cancel from its PaymentIntent. */
export function fromIntent(body: JsonObject, asked: AskedIntent): Outcome | Open {
  const intent = readIntent(body);
  const difference = differenceOf(intent, asked);
  if (difference !== undefined) return answeredAboutAnother(difference);
  const providerData = providerDataOf(intent, body, asked.shownAs);
  switch (asked.of.kind) {
    case 'CARD':
      return fromPayment(intent, asked.of.capture, hasCharge(body), providerData);
    case 'PAYER_CODE':
      return fromCode(intent, body, providerData);
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
 * Sums up the captured and refunded money of an intent. After a partial capture, Stripe also lists the release of the
 * rest as a refund, although it returns no money, so that it has no balance transaction. A pending refund may still fail,
 * and is then listed as failed.
 *
 * @returns undefined if any part is unreadable.
 */
export function totalsOf(intent: Intent, refunds: readonly Refund[]): Totals | undefined {
  const { status, amount, amount_received: received, currency } = intent;
  const isCaptured = status === 'succeeded';
  const rest = isCaptured ? Number(amount) - Number(received) : 0;
  const release = refunds.findLast(
    (one) => one.amount === rest && !one.metadata.transaction_id && !one.balance_transaction,
  );
  const made = refunds.filter((one) => one.status === 'succeeded' && one !== release);
  const unitsOf = (value: JsonValue | undefined) => {
    const money = readMoney(value, currency, 'minor_units');
    return money && fromStripeMoney(money)?.minorUnits;
  };
  const captured = unitsOf(isCaptured ? received : 0);
  const returned = made.map((one): Movement | undefined => {
    const minorUnits = one.currency === currency ? unitsOf(one.amount) : undefined;
    if (one.id === undefined || minorUnits === undefined) return undefined;
    return { type: 'REFUND', providerPaymentId: one.id, minorUnits };
  });
  if (captured === undefined || !returned.every((one) => one !== undefined)) return undefined;
  const refunded = returned.reduce((sum, one) => sum + one.minorUnits, 0n);
  const failed = refunds.filter(({ status: result }) => result === 'failed' || result === 'canceled');
  const movements = [...capturesOf(intent, captured), ...returned];
  return { captured, refunded, movements, failedRefunds: failed.map(({ id }) => id) };
}

/** Returns the capture of an authorization, which Stripe names by the captured charge. */
function capturesOf({ capture_method, latest_charge: { id } }: Intent, captured: bigint): Movement[] {
  if (capture_method !== 'manual' || captured === 0n || id === undefined) return [];
  return [{ type: 'CAPTURE', providerPaymentId: id, minorUnits: captured }];
}

/** Stripe's corrections: a refund that succeeded may fail for weeks afterwards. */
export const CORRECTIONS: Corrections = {
  payment: {},
  capture: {},
  refund: { failed: ['succeeded'], canceled: ['succeeded'], succeeded: ['failed', 'canceled'] },
};

/** Reads the outcome of a refund from Stripe's Refund object. */
export function fromRefund(body: JsonObject, asked: AskedRefund): Outcome {
  const refund = readRefund(body);
  if (refund.object !== 'refund' || !refund.id) return answeredAboutAnother('object');
  if (refund.payment_intent !== asked.intentId) return answeredAboutAnother('payment_intent');
  if (refund.metadata.transaction_id !== asked.refund.transactionId)
    return answeredAboutAnother('transaction_id');

  const providerData = providerDataOf(refund, body, asked.shownAs);
  const reported = { providerData, reference: refund.id, providerPaymentId: refund.id };
  const corrects = correcting(CORRECTIONS.refund, refund.status);
  switch (refund.status) {
    case 'succeeded':
      return withMoney(approvedOutcome({ ...reported, ...corrects }), moneyOf(refund), asked.refund.money);
    case 'pending':
    case 'requires_action':
      return { kind: 'pending', ...reported };
    case 'failed':
    case 'canceled':
      return { kind: 'declined', ...reported, ...corrects, ...meaningOf(refund.failure_reason) };
    default:
      return unknownOutcome('the refund has an unknown status', providerData);
  }
}

/** Reads the outcome of a payment from a response with a success status. */
function fromPayment(
  intent: Intent,
  capture: boolean,
  isCharged: boolean,
  providerData: ProviderData,
): Outcome | Open {
  const { status, amount, amount_received, amount_capturable, last_payment_error: failure } = intent;
  if ((intent.capture_method !== 'manual') !== capture) return answeredAboutAnother('capture_method');
  switch (status) {
    case 'succeeded':
      // An authorization may have been captured since, even partially.
      if (capture && amount_received !== amount) return answeredAboutAnother('amount_received');
      return approved(intent, { providerData });
    case 'requires_capture':
      if (capture || amount_capturable !== amount) return answeredAboutAnother('amount_capturable');
      return approved(intent, { providerData });
    case 'processing':
      return { kind: 'pending', providerData };
    case 'requires_action':
      return fromNextAction(intent, providerData);
    case 'requires_payment_method':
    case 'requires_confirmation':
      return failure ? declined(failure, intent, providerData) : 'open';
    case 'canceled':
      // The error of an approved authorization comes from a failed capture.
      if (failure && !isAuthorized(intent)) return declined(failure, intent, providerData);
      // Without a payment method, the intent was never confirmed and no longer can be.
      if (intent.payment_method || isCharged) return { kind: 'expired', providerData };
      return neverHappens('the provider closed the payment before it was confirmed');
    default:
      return unknownOutcome('the payment has an unknown status', providerData);
  }
}

function isAuthorized({ latest_charge: charge }: Intent): boolean {
  return charge.status === 'succeeded';
}

/** Returns true if an intent was charged. Some responses contain the charge itself, others only its id. */
function hasCharge({ latest_charge: charge }: JsonObject): boolean {
  return Boolean(charge);
}

function fromNextAction({ next_action: action }: Intent, providerData: ProviderData): Outcome {
  const { url } = action.redirect_to_url;
  return url === undefined
    ? unknownOutcome('the payer has to act, but the response has no URL to send them to', providerData)
    : { kind: 'awaits_payer', providerData, show: { page: url } };
}

function fromCapture(
  intent: Intent,
  { transactionId, money, claimed }: Extract<AskedIntent['of'], { kind: 'capture' | 'cancel' }>,
  providerData: ProviderData,
): Outcome | Open {
  if (intent.status === 'requires_capture') return 'open';
  if (intent.status === 'canceled') return neverHappens('the authorization is canceled');
  if (intent.status !== 'succeeded')
    return unknownOutcome('the payment is not in a state for captures', providerData);
  const { capture_transaction_id: mark } = intent.metadata;
  const { id } = intent.latest_charge;
  // Stripe names a capture by the captured charge.
  const reported = { providerData, ...(id !== undefined && { providerPaymentId: id }) };
  const captured = readMoney(intent.amount_received, intent.currency, 'minor_units');
  const difference = differingMoney(captured, money);
  if (mark === transactionId) return withMoney(approved(intent, reported), captured, money);
  // An authorization allows only one capture: a capture with another mark or another amount is not ours, nor is one that
  // is recorded as external.
  const isClaimed = id !== undefined && claimed.includes(id);
  if (mark !== undefined || difference !== undefined || isClaimed)
    return neverHappens('another capture was made');
  // Regardless of who captured it, exactly this money was taken and cannot be taken again.
  providerData.responseMessage =
    'alarm: the capture lacks our mark and may have been made at the provider itself';
  return approved(intent, { ...reported, alarm: true });
}

/** Adds the money that an operation has moved if it is not the requested money. Both are in Stripe's units. */
function withMoney(outcome: Outcome, moved: Money | undefined, asked: Money): Outcome {
  return withMovedMoney(outcome, differingMoney(moved, asked), moved && fromStripeMoney(moved));
}

function approved(
  { latest_charge: charge }: Intent,
  reported: Parameters<typeof approvedOutcome>[0],
): Outcome {
  const { card } = charge.payment_method_details;
  const { authorization_code, network_transaction_id: networkTransactionId } = card;
  return {
    ...approvedOutcome(reported, authorization_code),
    ...(networkTransactionId !== '' && { networkTransactionId }),
    ...(card.wallet && { card: cardBehind(card) }),
  };
}

/** Our names of the brands that Stripe calls otherwise. */
const BRANDS: Readonly<Record<string, string>> = { amex: 'AMERICAN_EXPRESS', diners: 'DINERS_CLUB' };

/** Returns the card behind a wallet. */
function cardBehind({ brand, last4, funding, exp_month, exp_year }: ChargedCard): ReportedCard {
  return {
    brand: BRANDS[brand] ?? (brand.toUpperCase() || undefined),
    lastFour: /^\d{4}$/.test(last4) ? last4 : undefined,
    expirationMonth: exp_month,
    expirationYear: exp_year === undefined ? undefined : exp_year % 100,
    type: /^(credit|debit|prepaid)$/.test(funding) ? funding.toUpperCase() : undefined,
  };
}

type ChargedCard = Intent['latest_charge']['payment_method_details']['card'];

/** Reads a decline that arrives as an error. The decline counts only if it is about this payment. */
function fromDecline(
  error: StripeError | undefined,
  body: JsonObject,
  asked: AskedIntent | AskedRefund,
): Outcome {
  if (!('of' in asked) || !error?.payment_intent) return unknownOutcome('the decline names no payment');
  const intent = readIntent(error.payment_intent);
  const difference = differenceOf(intent, asked);
  if (difference !== undefined) return answeredAboutAnother(difference);
  const providerData = providerDataOf(intent, body, asked.shownAs);
  // The authorization remains valid although its capture failed.
  const isCharged =
    intent.status === 'succeeded' || (asked.of.kind === 'CARD' && intent.status === 'requires_capture');
  if (isCharged) return unknownOutcome('the response contradicts itself', providerData);
  return declined(error, intent, providerData);
}

/** Returns the first field that shows that an intent is not the requested intent, if any. */
function differenceOf(intent: Intent, { intentId, payment }: AskedIntent): string | undefined {
  if (intent.object !== 'payment_intent') return 'object';
  if (!intent.id || (intentId !== undefined && intent.id !== intentId)) return 'id';
  if (intent.metadata.transaction_id !== payment.transactionId) return 'transaction_id';
  return differingMoney(moneyOf(intent), payment.money);
}

/** Adds the intent's id to a payment's outcome: operations and look-ups find the intent by it, and Stripe names it so. */
export function referringTo(intentId: string, outcome: Outcome): Outcome {
  if (outcome.kind === 'not_sent') return outcome;
  return { ...outcome, reference: intentId, providerPaymentId: intentId };
}
