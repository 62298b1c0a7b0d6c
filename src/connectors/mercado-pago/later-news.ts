import { alarmingOutcome, readMoney, unknownOutcome } from '../kit/provider-answer.ts';
import type { LookUp } from '../port/connector.ts';
import type { Movement, Outcome } from '../port/outcome.ts';
import { type Payment, type Refund, readJsonList, readPayment, readRefund } from './answers.ts';
import { endedDisputesOf } from './disputes.ts';
import { read } from './find-payments.ts';
import { type Asked, totalsOf } from './from-provider.ts';
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
  query: LookUp,
  send: Send,
  asked: Asked,
): Promise<Outcome> {
  const reportedId = query.hint?.providerPaymentId ?? refundedId(payments, approved.providerPaymentId);
  if (reportedId === undefined) return approved;
  const answer = await read(send, getPayment(reportedId));
  if ('fault' in answer) return unknownOutcome(answer.fault);
  return withNewsOf(readPayment(answer.body), approved, query, send, asked);
}

/**
 * Adds later events of a payment that has just been read by its id.
 *
 * @param query says whether refunds of it are recorded, and whether it is an authorization.
 */
export async function withNewsOf(
  payment: Payment,
  approved: Extract<Outcome, { kind: 'approved' }>,
  { isRefunded: hasRefunds, of }: LookUp,
  send: Send,
  asked: Asked,
): Promise<Outcome> {
  const { id: paymentId = '', status, transaction_amount_refunded: isRefunded } = payment;
  const reported = { ...approved, endedDisputes: endedDisputesOf(payment) };
  // During a dispute, it is still undecided who gets the money. A second payment does not belong to this transaction.
  const isOwn = parseReference(approved.reference).paymentId === paymentId;
  if (!isOwn || !COUNTED.has(status)) return reported;
  const mustRead = isRefunded || hasRefunds || status === 'refunded';
  const refunds = mustRead ? await readRefunds(paymentId, send) : { found: [] };
  if ('fault' in refunds) return unknownOutcome(refunds.fault);
  const totals = totalsOf(refunds.found, paymentId, asked, captureOf(payment, of));
  return totals ? { ...reported, totals } : alarmingOutcome("the payment's refunds are unreadable");
}

/** Statuses in which the provider counts a payment's money. */
const COUNTED: ReadonlySet<string> = new Set(['approved', 'refunded', 'authorized']);

/** Returns the capture of an authorization; undefined for a purchase. */
function captureOf(payment: Payment, of: LookUp['of']): readonly Movement[] | undefined {
  if (of.kind !== 'CARD' || of.capture) return undefined;
  const { id = '', status, transaction_amount, currency_id } = payment;
  const money = status === 'authorized' ? undefined : readMoney(transaction_amount, currency_id, 'decimal');
  return money ? [{ type: 'CAPTURE', providerPaymentId: captureId(id), minorUnits: money.minorUnits }] : [];
}

/**
 * Returns the name of an authorization's only capture. Mercado Pago gives it none, and the payment's own id names the
 * authorization.
 */
export function captureId(paymentId: string): string {
  return `${paymentId}-capture`;
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
