import type { JsonValue } from '@bufbuild/protobuf';
import type { Money } from '#src/money.ts';
import type { HttpResult } from '../kit/http-client.ts';
import {
  answeredAboutAnother,
  approvedOutcome,
  correcting,
  fromResult,
  isSuccess,
  readJsonObject,
  readMoney,
  unknownOutcome,
  withMovedMoney,
} from '../kit/provider-answer.ts';
import type { ShownAs } from '../kit/provider-client.ts';
import { SOFT_DECLINE } from '../kit/refusal.ts';
import type { Corrections } from '../port/connector.ts';
import type { Movement, Outcome, Totals } from '../port/outcome.ts';
import { idOf, type Preference, providerDataOf, type Refund, readPreference, readRefund } from './answers.ts';
import { differingAmount } from './money.ts';
import { notMade, preparationRefusal, requestRefusal } from './refusals.ts';

/** Values that a response must match. */
export type Asked = {
  readonly transactionId: string;
  readonly money: Money;
  readonly shownAs: ShownAs;
};

/**
 * Reads the result of creating a preference. Creation moves no money, and nobody can pay a preference without its URL.
 * Without a valid response, the attempt therefore counts as not sent.
 */
export function fromCreation(result: HttpResult, asked: Asked): Outcome {
  if (result.kind === 'not_sent') return result;
  if (result.kind === 'unknown') return notMade(result.detail);
  const body = readJsonObject(result.body);
  if (!body || !isSuccess(result.status)) return preparationRefusal('preference', result.status, body);
  return fromPreference(readPreference(body), asked) ?? notMade('the response is not a preference');
}

/**
 * Returns a redirect to the preference's URL.
 *
 * @returns undefined if the preference has no URL.
 */
export function fromPreference(preference: Preference, asked: Asked): Outcome | undefined {
  const { id, init_point: page, external_reference, collector_id, items } = preference;
  if (id === undefined) return undefined;
  if (external_reference !== asked.transactionId) return answeredAboutAnother('external_reference');
  if (isAnotherAccount(collector_id, asked)) return answeredAboutAnother('collector_id');
  const difference = differingTotal(items, asked.money);
  if (difference !== undefined) return answeredAboutAnother(difference);
  if (page === undefined) return undefined;
  const providerData = providerDataOf(preference.raw, asked.shownAs);
  return { kind: 'awaits_payer', providerData, reference: id, show: { page } };
}

/** Reads the result of a refund request. For a refund from a list, `result` is the list's. */
export function fromRefundResult(result: HttpResult, paymentId: string, asked: Asked): Outcome {
  return fromResult(result, (body, { status }) =>
    isSuccess(status)
      ? fromRefund(readRefund(body), paymentId, asked)
      : requestRefusal('refund', status, body),
  );
}

/** Statuses of a payment that has not taken the money, and never will. */
export const FAILED = ['rejected', 'cancelled'] as const;

/**
 * Mercado Pago's corrections: a payer's try may be paid after the preference was closed and its tries had failed, and a
 * refund may be rejected or canceled after it was approved.
 */
export const CORRECTIONS: Corrections = {
  payment: { approved: FAILED, refunded: FAILED, in_mediation: FAILED, charged_back: FAILED },
  capture: {},
  refund: { rejected: ['approved'], cancelled: ['approved'], approved: ['rejected', 'cancelled'] },
};

/** Reads the outcome of a refund from its object. */
export function fromRefund(refund: Refund, paymentId: string, asked: Asked): Outcome {
  const { id, amount, status, payment_id } = refund;
  if (id === undefined) return unknownOutcome('the response is not a refund');
  if (payment_id !== paymentId) return answeredAboutAnother('payment_id');
  const { currency } = asked.money;
  const difference = differingAmount(amount, currency, asked.money);
  const providerData = providerDataOf(refund.raw, asked.shownAs);
  const reported = { providerData, reference: id, providerPaymentId: id };
  const corrects = correcting(CORRECTIONS.refund, status);
  switch (status) {
    case 'approved': {
      const approved = approvedOutcome({ ...reported, ...corrects });
      return withMovedMoney(approved, difference, readMoney(amount, currency, 'decimal'));
    }
    case 'in_process':
      return { kind: 'pending', ...reported };
    case 'rejected':
    case 'cancelled':
      return { kind: 'declined', ...reported, ...corrects, ...SOFT_DECLINE };
    default:
      return unknownOutcome('the refund has an unknown status', providerData);
  }
}

/**
 * Lists and sums up the captures and refunds of a payment; undefined if any is unreadable.
 *
 * @param capture the only capture of an authorization, if there is one; undefined for a purchase.
 */
export function totalsOf(
  refunds: readonly Refund[],
  paymentId: string,
  { money: { minorUnits: charged, currency } }: Asked,
  capture?: readonly Movement[],
): Totals | undefined {
  const made = refunds.filter(({ status }) => status === 'approved');
  const movements = made.map(({ id, amount, payment_id }): Movement | undefined => {
    const minorUnits =
      payment_id === paymentId ? readMoney(amount, currency, 'decimal')?.minorUnits : undefined;
    return id !== undefined && minorUnits !== undefined
      ? { type: 'REFUND', providerPaymentId: id, minorUnits }
      : undefined;
  });
  if (!movements.every((one) => one !== undefined)) return undefined;
  const refunded = movements.reduce((sum, one) => sum + one.minorUnits, 0n);
  const failed = refunds.filter(({ status }) => status === 'rejected' || status === 'cancelled');
  return {
    captured: capture ? (capture[0]?.minorUnits ?? 0n) : charged,
    refunded,
    movements: [...(capture ?? []), ...movements],
    failedRefunds: failed.map(({ id }) => id),
  };
}

/** Returns true if a response is about an account other than the one in the connection's settings. */
export function isAnotherAccount(collectorId: JsonValue | undefined, { shownAs }: Pick<Asked, 'shownAs'>) {
  return (
    shownAs.accountId !== undefined && collectorId !== undefined && idOf(collectorId) !== shownAs.accountId
  );
}

/** Compares the sum of a preference's items with the requested money. */
function differingTotal(items: Preference['items'], money: Money): 'amount' | 'currency' | undefined {
  if (!items) return 'amount';
  let sum = 0;
  for (const { unit_price: price, quantity, currency_id: currency } of items) {
    if (price === undefined || quantity === undefined) return 'amount';
    if (currency !== money.currency) return 'currency';
    sum += price * quantity;
  }
  // Rounded to the cent, the smallest unit of the provider's currencies: sums of JSON numbers are not exact.
  return differingAmount(Number(sum.toFixed(2)), money.currency, money);
}
