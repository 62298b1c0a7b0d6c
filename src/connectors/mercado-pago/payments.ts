import type { Money } from '#src/money.ts';
import type { HttpResult } from '../kit/http-client.ts';
import {
  answeredAboutAnother,
  approvedOutcome,
  correcting,
  fromResult,
  isSuccess,
  readMoney,
  unknownOutcome,
} from '../kit/provider-answer.ts';
import type { Outcome } from '../port/outcome.ts';
import { type Payment, providerDataOf, readPayment } from './answers.ts';
import { type Asked, CORRECTIONS, FAILED, isAnotherAccount } from './from-provider.ts';
import { differingAmount } from './money.ts';
import { formatReference } from './reference.ts';
import { meaningOf, requestRefusal } from './refusals.ts';
import { fromOpenCode } from './shown-code.ts';

/**
 * Outcome of a preference's payments; `open` if no outcome exists yet, and the payer may try again while the page is
 * open.
 */
export type Decision = Outcome | { readonly kind: 'open'; readonly failed: Payment | undefined };

/** The way in which a payment is made: on a preference's page, with a code, or by card, which is charged or only authorized. */
export type Way = 'page' | 'code' | 'purchase' | 'authorization';

/** Statuses in which the money was taken. Other transactions report later events. */
export const PAID: ReadonlySet<string> = new Set(Object.keys(CORRECTIONS.payment));
const PAID_OR_HELD: ReadonlySet<string> = new Set([...PAID, 'authorized']);
/** An authorization that was not requested is paid once the provider has captured it. */
const UNDECIDED: ReadonlySet<string> = new Set(['pending', 'in_process', 'authorized']);

/**
 * Determines the outcome from all payments of an attempt: from the first paid payment, or else from an undecided one. A
 * failed payment alone decides nothing, since the payer of a preference may try again.
 *
 * @param payments the newest first.
 * @param way 'code': a pending payment awaits its payer. 'authorization': nothing needs to be captured.
 */
export function fromPayments(
  payments: readonly Payment[],
  preferenceId: string | undefined,
  asked: Asked,
  way: Way = 'page',
): Decision {
  for (const payment of payments) {
    const difference = differenceOf(payment, asked, way);
    if (difference !== undefined) return answeredAboutAnother(difference);
  }
  const inState = (states: ReadonlySet<string>) => payments.filter(({ status }) => states.has(status));
  const paid = inState(way === 'authorization' ? PAID_OR_HELD : PAID);
  const first = paid.at(-1);
  if (first) {
    const alarm = secondPaymentsAlarm(paid);
    const reported = {
      providerData: providerDataOf(first.raw, asked.shownAs, alarm),
      ...namesOf(preferenceId, first),
      ...(alarm !== '' && { alarm: true as const }),
      ...correcting(CORRECTIONS.payment, first.status),
      ...(way === 'page' && { isAnyTry: true as const }),
    };
    return approvedOutcome(reported, first.authorization_code);
  }
  const [undecided] = inState(UNDECIDED);
  if (undecided) {
    const providerData = providerDataOf(undecided.raw, asked.shownAs);
    const reported = { providerData, ...namesOf(preferenceId, undecided) };
    const isOpen = way === 'code' && undecided.status === 'pending';
    return isOpen ? fromOpenCode(undecided, reported) : { kind: 'pending', ...reported };
  }
  const failed = inState(new Set(FAILED));
  return failed.length === payments.length
    ? { kind: 'open', failed: failed[0] }
    : unknownOutcome('a payment has an unknown status');
}

/**
 * Determines the outcome of an attempt by a local method, whose payments were made by `/v1/payments`. Usually there is
 * one: a lost request that was repeated may have made two.
 *
 * @param payments the newest first.
 */
export function fromCodes(payments: readonly Payment[], asked: Asked): Outcome {
  const decision = fromPayments(payments, undefined, asked, 'code');
  if (decision.kind !== 'open') return decision;
  const { failed } = decision;
  if (!failed) return unknownOutcome('no payment was found');
  if (failed.status === 'rejected') return fromFailed(failed, undefined, asked);
  const providerData = providerDataOf(failed.raw, asked.shownAs);
  return { kind: 'expired', providerData, ...namesOf(undefined, failed) };
}

/** Reads the result of creating a payment by a local method. */
export function fromCodeCreation(result: HttpResult, asked: Asked): Outcome {
  return fromResult(result, (body, { status }) =>
    isSuccess(status) ? fromCodes([readPayment(body)], asked) : requestRefusal('payment', status, body),
  );
}

/** Builds the outcome of a failed payment after which no other payment can follow. */
export function fromFailed(payment: Payment, preferenceId: string | undefined, asked: Asked): Outcome {
  return {
    kind: 'declined',
    providerData: providerDataOf(payment.raw, asked.shownAs),
    ...namesOf(preferenceId, payment),
    ...meaningOf(payment.status_detail),
  };
}

/** Returns the field that shows that a payment belongs to another transaction, if any; never its value. */
export function differenceOf(payment: Payment, asked: Asked, way: Way): string | undefined {
  if (payment.id === undefined) return 'id';
  if (payment.external_reference !== asked.transactionId) return 'external_reference';
  if (isAnotherAccount(payment.collector_id, asked)) return 'collector_id';
  // A partial capture releases the rest of an authorization, and the payment's amount is then the captured one.
  const isPart = way === 'authorization' && PAID.has(payment.status) && isWithin(payment, asked.money);
  return isPart ? undefined : differingAmount(payment.transaction_amount, payment.currency_id, asked.money);
}

function isWithin({ transaction_amount, currency_id }: Payment, { minorUnits, currency }: Money): boolean {
  const money = readMoney(transaction_amount, currency_id, 'decimal');
  return money?.currency === currency && money.minorUnits > 0n && money.minorUnits <= minorUnits;
}

/** Returns the alarm about a payer who paid twice, in two windows: the later payments need a manual refund. */
function secondPaymentsAlarm(paid: readonly Payment[]): string {
  const later = paid.slice(0, -1).filter(({ status }) => status === 'approved');
  if (later.length === 0) return '';
  const [first, others] = [paid.at(-1)?.id, later.map(({ id }) => id).join(', ')];
  return `alarm: charged twice: the first payment is ${first}; refund ${others}`;
}

/** Returns the names for a payment's outcome. */
export function namesOf(preferenceId: string | undefined, { id: paymentId }: Payment) {
  const reference = formatReference({ preferenceId, paymentId });
  return { reference, ...(paymentId !== undefined && { providerPaymentId: paymentId }) };
}
