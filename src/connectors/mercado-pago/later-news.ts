import { alarmingOutcome, unknownOutcome } from '../kit/provider-answer.ts';
import type { LookUp } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { type Payment, type Refund, readJsonList, readPayment, readRefund } from './answers.ts';
import { read } from './find-payments.ts';
import { type Asked, totalsOf } from './from-provider.ts';
import { endedDisputesOf } from './payments.ts';
import { parseReference } from './reference.ts';
import { getPayment, listRefunds, type Send } from './to-provider.ts';

/**
 * Adds later events of a payment that a notification names or that was refunded: refunds, and disputes that have ended.
 * The payment is read by its id because a search may still return its earlier state.
 *
 * @param payments the payments of which the approved one was found.
 */
export async function withLaterNews(
  approved: Extract<Outcome, { kind: 'approved' }>,
  payments: readonly Payment[],
  { hint, isRefunded: hasRefunds }: LookUp,
  send: Send,
  asked: Asked,
): Promise<Outcome> {
  const reportedId = hint?.providerPaymentId ?? refundedId(payments, approved.providerPaymentId);
  if (reportedId === undefined) return approved;
  const answer = await read(send, getPayment(reportedId));
  if ('fault' in answer) return unknownOutcome(answer.fault);
  const payment = readPayment(answer.body);
  const { status, transaction_amount_refunded: isRefunded } = payment;
  const reported = { ...approved, endedDisputes: endedDisputesOf(payment) };
  // During a dispute, it is still undecided who gets the money. A second payment does not belong to this transaction.
  const isOwn = parseReference(approved.reference).paymentId === reportedId;
  if (!isOwn || (status !== 'approved' && status !== 'refunded')) return reported;
  const mustRead = isRefunded || hasRefunds || status === 'refunded';
  const refunds = mustRead ? await readRefunds(reportedId, send) : { found: [] };
  if ('fault' in refunds) return unknownOutcome(refunds.fault);
  const totals = totalsOf(refunds.found, reportedId, asked);
  return totals ? { ...reported, totals } : alarmingOutcome("the payment's refunds are unreadable");
}

/** Returns the id of the paid payment if it has been refunded since: no notification need name it then. */
function refundedId(payments: readonly Payment[], paidId: string | undefined): string | undefined {
  const paid = payments.find(({ id }) => id === paidId);
  return paid?.status === 'refunded' || paid?.transaction_amount_refunded ? paidId : undefined;
}

/**
 * Reads a payment's refunds, which arrive as a bare list. `nowMs` is the time on the provider's clock, which also dates
 * the refunds.
 */
export async function readRefunds(
  paymentId: string,
  send: Send,
): Promise<{ readonly found: readonly Refund[]; readonly nowMs: number } | { readonly fault: string }> {
  const result = await send(listRefunds(paymentId));
  if (result.kind !== 'answer') return { fault: result.detail };
  const list = result.status === 200 ? readJsonList(result.body) : undefined;
  const nowMs = Date.parse(result.headers.date ?? '') || Date.now();
  return list
    ? { found: list.map(readRefund), nowMs }
    : { fault: `the provider's response: ${result.status}` };
}
