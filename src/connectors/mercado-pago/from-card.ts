import type { HttpResult } from '../kit/http-client.ts';
import {
  alarmingOutcome,
  answeredAboutAnother,
  approvedOutcome,
  fromResult,
  isSuccess,
  neverHappens,
  readMoney,
  unknownOutcome,
  withMovedMoney,
} from '../kit/provider-answer.ts';
import type { Operation } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { type Payment, providerDataOf, readPayment } from './answers.ts';
import type { Asked } from './from-provider.ts';
import { captureId } from './later-news.ts';
import { differingAmount } from './money.ts';
import { differenceOf, fromFailed, fromPayments, namesOf, PAID } from './payments.ts';
import { meaningOf, requestRefusal } from './refusals.ts';

/**
 * Determines the outcome of an attempt by card.
 *
 * @param payments the payments with our reference, the newest first: none if the search does not list it yet.
 * @param capture false for an authorization.
 */
export function fromCards(payments: readonly Payment[], capture: boolean, asked: Asked): Outcome {
  const decision = fromPayments(payments, undefined, asked, capture ? 'purchase' : 'authorization');
  if (decision.kind !== 'open') return withNetworkId(decision, payments);
  const { failed } = decision;
  if (!failed) return unknownOutcome('no payment was found, and the search may list it later');
  if (capture || failed.status === 'rejected') return fromFailed(failed, undefined, asked);
  // The merchant has released it, or it has lapsed.
  return {
    kind: 'expired',
    providerData: providerDataOf(failed.raw, asked.shownAs),
    ...namesOf(undefined, failed),
  };
}

/** Reads the result of charging a card, or of authorizing a charge. */
export function fromCardCreation(result: HttpResult, capture: boolean, asked: Asked): Outcome {
  return fromResult(result, (body, { status }) => {
    if (!isSuccess(status)) return requestRefusal('payment', status, body);
    const payment = readPayment(body);
    const outcome = fromCards([payment], capture, asked);
    const isTaken = !capture && outcome.kind === 'approved' && payment.status !== 'authorized';
    return isTaken
      ? alarmingOutcome(
          `the payment ${payment.id} was to be authorized only, but is captured`,
          outcome.providerData,
        )
      : outcome;
  });
}

/** Adds the scheme's id of a transaction, if the payment shows it. */
function withNetworkId(outcome: Outcome, payments: readonly Payment[]): Outcome {
  if (outcome.kind !== 'approved') return outcome;
  const payment = payments.find(({ id }) => id === outcome.providerPaymentId);
  const [networkTransactionId] = (payment?.expanded ?? [])
    .map(({ reference }) => reference.network_transaction_id)
    .filter((id) => id !== '');
  return networkTransactionId ? { ...outcome, networkTransactionId } : outcome;
}

/** A capture or a cancel, and the authorization that it is about. */
export type AskedOperation = {
  readonly kind: 'capture' | 'cancel';
  readonly money: Operation['money'];
  /** The authorization. */
  readonly payment: Asked;
  /** The names of the payment's other transactions. */
  readonly claimed: readonly string[];
};

/** Reads the result of a request to capture or to cancel an authorization. */
export function fromOperation(result: HttpResult, asked: AskedOperation): Outcome {
  return fromResult(result, (body, { status }) => {
    if (!isSuccess(status)) return requestRefusal(asked.kind, status, body);
    const outcome = fromOperated(readPayment(body), asked);
    // Only a look-up can prove that nothing happened: here, Mercado Pago has just confirmed the request.
    return outcome === 'open' || outcome.kind === 'not_sent'
      ? unknownOutcome('the response contradicts the request')
      : outcome;
  });
}

/**
 * Reads the outcome of a capture or a cancel from its payment.
 *
 * @returns 'open' while the authorization is as it was before.
 */
export function fromOperated(payment: Payment, asked: AskedOperation): Outcome | 'open' {
  const { kind, payment: authorization } = asked;
  const difference = differenceOf(payment, authorization, 'authorization');
  if (difference !== undefined) return answeredAboutAnother(difference);
  const providerData = providerDataOf(payment.raw, authorization.shownAs);
  const { status, id = '', status_detail } = payment;
  if (status === 'authorized') return 'open';
  if (PAID.has(status)) {
    return kind === 'capture' ? fromCaptured(payment, asked) : neverHappens('the payment is captured');
  }
  switch (status) {
    case 'cancelled':
      return kind === 'cancel'
        ? approvedOutcome({ providerData })
        : neverHappens('the authorization is canceled');
    case 'rejected':
      return { kind: 'declined', providerData, ...meaningOf(status_detail) };
    case 'pending':
    case 'in_process':
      return {
        kind: 'pending',
        providerData,
        ...(kind === 'capture' && { providerPaymentId: captureId(id) }),
      };
    default:
      return unknownOutcome('the payment has an unknown status', providerData);
  }
}

/** An authorization has only one capture. Another one that is recorded was made at Mercado Pago itself. */
function fromCaptured(payment: Payment, { money, payment: authorization, claimed }: AskedOperation): Outcome {
  const { id = '', transaction_amount, currency_id, authorization_code } = payment;
  const providerPaymentId = captureId(id);
  if (claimed.includes(providerPaymentId)) return neverHappens('another capture was made');
  const providerData = providerDataOf(payment.raw, authorization.shownAs);
  const approved = approvedOutcome({ providerData, providerPaymentId }, authorization_code);
  const difference = differingAmount(transaction_amount, currency_id, money);
  return withMovedMoney(approved, difference, readMoney(transaction_amount, currency_id, 'decimal'));
}
