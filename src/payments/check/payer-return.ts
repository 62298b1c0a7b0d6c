import { createHash } from 'node:crypto';
import { type Payment, Payment_Status } from '#gen/payments/v1/payment_pb.js';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { ServiceError } from '#src/service-error.ts';
import { type Prompted, promptCheck } from '#src/store/engine/checks.ts';
import { type Database, queriesOf } from '#src/store/engine/database.ts';
import { endSearch, insertPayerNews, type PayerNews } from '#src/store/tables/notifications.ts';
import { isNewsSettled } from '#src/store/tables/open-news.ts';
import { findOwnTransaction, type OwnTransaction } from '#src/store/tables/own-transaction.ts';
import { getPaymentRecord } from '#src/store/tables/payment-record.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type Patience, waitFor } from '../keys/await-response.ts';
import { payerMustAct } from '../model/state.ts';
import { decodeRecord } from '../stored-record.ts';
import { PROMPTED_APART_S } from './news.ts';

/** Dependencies of the functions for payers' returns. */
export type ReturnDeps = {
  readonly database: Database;
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  /** Maximum time that the payer's page waits for the check. */
  readonly patience: Patience;
  /** Makes the checker check a transaction when it is due. */
  readonly wake: (prompted: Prompted) => void;
};

/**
 * Records that a payer returned, which makes the payment's check due, and waits a few seconds for the check. The return
 * URL is only a hint, since anyone can make one up.
 *
 * @param returnQuery query string of the return URL, without the question mark.
 * @param options.hasCanceled true: the payer came back by the URL for leaving the provider's page without paying, so the
 *   payment is closed.
 * @returns the payment after the wait.
 * @throws ServiceError PAYMENT_NOT_FOUND.
 */
export async function returnPayer(
  deps: ReturnDeps,
  paymentId: string,
  returnQuery: string,
  { hasCanceled = false }: { readonly hasCanceled?: boolean } = {},
): Promise<Payment> {
  const own = isUuid(paymentId) ? await findOwnTransaction(deps.database, paymentId) : undefined;
  if (!own) throw new ServiceError('PAYMENT_NOT_FOUND', 'no such payment');
  const before = await current(deps, paymentId, own);
  const connection = deps.connections().get(own.connectionId);
  if (!connection || !mayChange(before, own)) return before;
  if (hasCanceled && connection.capabilities.close && payerMustAct(before)) {
    await checked(deps, own, { kind: 'close', query: '' });
    return current(deps, paymentId, own);
  }
  // A provider without a look-up learns of the payer's approval from the return query. Other providers do not need it.
  const isEvidence = !connection.lookUp && returnQuery.length <= MAX_QUERY_LENGTH;
  await checked(deps, own, { kind: 'return', query: isEvidence ? returnQuery : '' });
  return current(deps, paymentId, own);
}

/**
 * Closes a payment whose payer has left the provider's page to pay another way. The payment ends only if the provider
 * reports it as closed or paid; otherwise it stays open, since the payer might still be charged.
 */
export async function closePayment(deps: ReturnDeps, paymentId: string): Promise<void> {
  const own = await findOwnTransaction(deps.database, paymentId);
  const connection = own && deps.connections().get(own.connectionId);
  if (!connection || !payerMustAct(await current(deps, paymentId, own))) return;
  await checked(deps, own, { kind: 'close', query: '' });
}

/**
 * Stores a payer's action and waits until it is settled. Does not wait if the payment already has too much pending
 * news.
 */
async function checked(
  deps: ReturnDeps,
  { accountId, connectionId, transactionId }: OwnTransaction,
  did: Pick<PayerNews, 'kind' | 'query'>,
): Promise<void> {
  const digest = createHash('sha256').update(did.query).digest('base64');
  const named = { accountId, connectionId, transactionId };
  const news: PayerNews = { ...named, ...did, deduplicationKey: `${did.kind} ${transactionId} ${digest}` };
  const name = { ...news, subject: 0 };
  // In one transaction, so that each of many concurrent returns sees the check that the previous one prompted.
  const prompting = deps.database.transaction(async (run) => {
    const queries = queriesOf(run);
    const stored = await insertPayerNews(queries, news);
    if (!stored) return 'refused';
    const prompted = await promptCheck(queries, { ...name, ...stored }, PROMPTED_APART_S);
    if (prompted) await endSearch(queries, name);
    return prompted;
  });
  const prompted = await prompting;
  if (prompted === 'refused') return;
  if (prompted) deps.wake(prompted);
  const isSettled = () => isNewsSettled(deps.database, name);
  await waitFor(async () => (await isSettled()) || undefined, deps.patience);
}

/** Maximum length of a query string that is passed on. Providers put a few ids and a signed string into it. */
const MAX_QUERY_LENGTH = 8_192;
const OPEN = new Set([Payment_Status.READY_TO_PAY, Payment_Status.PENDING]);

const ENDED = new Set([Payment_Status.EXPIRED, Payment_Status.CANCELED]);

/**
 * Returns true if querying the provider may bring news. A payer may have paid even after the payment expired here or was
 * canceled.
 */
function mayChange({ status }: Payment, { isReleased }: OwnTransaction): boolean {
  return OPEN.has(status) || (ENDED.has(status) && !isReleased);
}

async function current(
  { database }: ReturnDeps,
  paymentId: string,
  { accountId }: OwnTransaction,
): Promise<Payment> {
  const record = await getPaymentRecord(database, accountId, paymentId);
  if (!record) throw new ServiceError('PAYMENT_NOT_FOUND', 'no such payment');
  return decodeRecord(record);
}

/**
 * Returns the URL to redirect the payer to: the merchant's `callback_url` with `payment_id` and `status` added. A bare
 * host gets `https://`.
 *
 * @returns undefined if the payment has no `callback_url`.
 */
export function callbackAddress(payment: Payment): string | undefined {
  const url = merchantAddress(payment.callbackUrl);
  if (!url) return undefined;
  url.searchParams.set('payment_id', payment.id);
  url.searchParams.set('status', Payment_Status[payment.status] ?? '');
  return url.href;
}

/** Parses a `callback_url`; undefined if there is none. */
export function merchantAddress(callbackUrl: string | undefined): URL | undefined {
  if (!callbackUrl) return undefined;
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/?\/?/i.test(callbackUrl) && !isHostWithPort(callbackUrl);
  return URL.parse(hasScheme ? callbackUrl : `https://${callbackUrl}`) ?? undefined;
}

/** Returns true for a host with a port, such as `shop.example:8443/back`, rather than a scheme. */
function isHostWithPort(text: string): boolean {
  return /^[a-z0-9.-]+:\d/i.test(text);
}
