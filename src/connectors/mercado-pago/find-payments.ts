import type { JsonObject } from '@bufbuild/protobuf';
import { isJsonObject, readJsonObject } from '../kit/provider-answer.ts';
import type { LookUp } from '../port/connector.ts';
import { type Payment, readPayment, readSearch } from './answers.ts';
import type { Asked } from './from-provider.ts';
import { parseReference } from './reference.ts';
import { getPayment, type Send, searchPayments, type Target } from './to-provider.ts';

/** A transaction's payments, or why they could not be read. */
export type Found = { readonly found: readonly Payment[] } | { readonly fault: string };

/**
 * Reads a transaction's payments, the newest first. The search result may still lack the payment just reported by a
 * notification or the payment already known, so both are read by id.
 */
export async function findPayments(
  reportedId: string | undefined,
  knownId: string | undefined,
  send: Send,
  asked: Asked,
): Promise<Found> {
  const search = await read(send, searchPayments(asked.transactionId));
  if ('fault' in search) return search;
  const { results, paging } = readSearch(search.body);
  if (!Array.isArray(results) || !results.every(isJsonObject))
    return { fault: 'the response is not a search result' };
  if (paging.total === undefined || paging.total > results.length)
    return { fault: 'the response is not the complete search result' };
  const listed = results.map(readPayment);
  const known = await readUnlisted(knownId, listed, send);
  if ('fault' in known) return known;
  const reported = await readUnlisted(reportedId === knownId ? undefined : reportedId, listed, send);
  if ('fault' in reported) return reported;
  return { found: [...reported.found, ...listed, ...known.found] };
}

/**
 * Reads the payments of an attempt that is a payment of its own (a code, or a charge of a card): by the ids that a
 * notification or the reference names, whose state is never outdated, or else by our reference.
 */
export async function findOwnPayments(
  { hint, reference }: Pick<LookUp, 'hint' | 'reference'>,
  send: Send,
  asked: Asked,
): Promise<Found & { readonly isSearched: boolean }> {
  const named = new Set([hint?.providerPaymentId, parseReference(reference).paymentId]);
  const ids = [...named].filter((id) => id !== undefined);
  const isSearched = ids.length === 0;
  const read = isSearched ? findPayments(undefined, undefined, send, asked) : readPayments(ids, send);
  return { ...(await read), isSearched };
}

/** Reads payments by their ids, whose state is never outdated. */
export async function readPayments(ids: readonly string[], send: Send): Promise<Found> {
  const found: Payment[] = [];
  for (const id of ids) {
    const payment = await read(send, getPayment(id));
    if ('fault' in payment) return payment;
    found.push(readPayment(payment.body));
  }
  return { found };
}

/** Reads a payment by its id unless the list contains it. */
async function readUnlisted(
  paymentId: string | undefined,
  listed: readonly Payment[],
  send: Send,
): Promise<Found> {
  const isListed = paymentId === undefined || listed.some(({ id }) => id === paymentId);
  return readPayments(isListed ? [] : [paymentId], send);
}

/** Sends a request that reads an object. */
export async function read(
  send: Send,
  target: Target,
): Promise<{ readonly body: JsonObject } | { readonly fault: string }> {
  const result = await send(target);
  if (result.kind !== 'answer') return { fault: result.detail };
  const body = readJsonObject(result.body);
  if (result.status !== 200 || !body) return { fault: `the provider's response: ${result.status}` };
  return { body };
}
