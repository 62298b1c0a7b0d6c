import { bodyOf, fromResult, unknownOutcome } from '../kit/provider-answer.ts';
import type { LookUp } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { type Payment, providerDataOf, readPayment } from './answers.ts';
import { type Found, findOwnPayments, readPayments } from './find-payments.ts';
import type { Asked } from './from-provider.ts';
import { withLaterNews } from './later-news.ts';
import { cancelPayment } from './payment-request.ts';
import { fromCodes } from './payments.ts';
import { requestRefusal } from './refusals.ts';
import type { Send } from './to-provider.ts';

/**
 * Time from the end of a code until a search is sure to list it. A code whose creation was lost is known only to Mercado
 * Pago, so nobody can have paid it. In 2020, a listing once took a day.
 */
const UNSEEN_MS = 3 * 24 * 60 * 60_000;

/**
 * Looks up the outcome of a payment by a local method. A payment that is known by its id is read by it; otherwise our
 * reference finds it. With `close`, cancels what its payer has yet to pay.
 *
 * @param mayClose the method's codes can be cancelled; otherwise `close` changes nothing.
 */
export async function lookUpCode(
  query: LookUp,
  mayClose: boolean,
  send: Send,
  asked: Asked,
): Promise<Outcome> {
  const read = await findOwnPayments(query, send, asked);
  if ('fault' in read) return unknownOutcome(read.fault);
  const payments = query.close && mayClose ? await cancelOpen(read.found, send, asked) : read;
  if ('fault' in payments) return unknownOutcome(`cancelling the payment: ${payments.fault}`);
  const { found } = payments;
  if (found.length === 0 && query.payerTimeLeftMs < -UNSEEN_MS) return expiredUnseen(undefined, asked);
  const outcome = fromCodes(found, asked);
  return outcome.kind === 'approved' ? withLaterNews(outcome, found, query, send, asked) : outcome;
}

/** Cancels the payments that await their payer. */
async function cancelOpen(payments: readonly Payment[], send: Send, asked: Asked): Promise<Found> {
  const found: Payment[] = [];
  for (const payment of payments) {
    const isOpen = payment.status === 'pending' && payment.external_reference === asked.transactionId;
    const left = isOpen ? await cancelOne(payment, send) : { found: [payment] };
    if ('fault' in left) return left;
    found.push(...left.found);
  }
  return { found };
}

/** Cancels a payment. If Mercado Pago refuses, its payer may just have paid it, so it is read again. */
async function cancelOne({ id = '' }: Payment, send: Send): Promise<Found> {
  const result = await send(cancelPayment(id));
  const body = bodyOf(result);
  if (body) return { found: [readPayment(body)] };
  const refusal = fromResult(result, (error, { status }) => requestRefusal('cancel', status, error));
  const isRefused = refusal.kind === 'not_sent' && refusal.refused !== undefined;
  return isRefused
    ? readPayments([id], send)
    : { fault: 'detail' in refusal ? refusal.detail : refusal.kind };
}

/** Returns the outcome of what nobody has paid, and nobody can pay any more. */
export function expiredUnseen(reference: string | undefined, asked: Asked): Outcome {
  const providerData = providerDataOf({ status: 'expired' }, asked.shownAs);
  return { kind: 'expired', providerData, ...(reference !== undefined && { reference }) };
}
