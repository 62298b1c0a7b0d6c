import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { ListPaymentsRequest } from '#gen/payments/v1/payment_service_pb.js';
import { listPayments as listStored, MAX_LISTED } from '#src/store/tables/list-payments.ts';
import { accountOf, type Caller } from '../caller.ts';
import { decodeRecord } from '../stored-record.ts';
import { findPayments, isPlain, type ListDeps } from './find-payments.ts';
import { type PageRequest, readPage } from './page-token.ts';
import { type PaymentFilter, paymentFilter } from './payment-filter.ts';

/** A page of payments. */
export type ListedPage = {
  /** Newest first. */
  readonly payments: Payment[];
  /** "" on the last page. */
  readonly nextPageToken: string;
  /** The number of payments that were looked at, if the page ends because of it; otherwise 0. */
  readonly lookedAt: number;
};

const DEFAULT_PAGE_SIZE = 20;
// The query reads one row more than the page.
const MAX_PAGE_SIZE = MAX_LISTED - 1;

/**
 * Lists the current payments of the caller's account, newest first.
 *
 * @param request must satisfy the rules of its .proto.
 * @throws ServiceError INVALID_CREDENTIALS with only the public key; INVALID_PARAMETERS for a malformed time, amount, zone
 * or id, and for a page token that is malformed or belongs to another account or filter.
 */
export async function listPayments(
  deps: ListDeps,
  request: ListPaymentsRequest,
  caller: Pick<Caller, 'accountId' | 'secretPresented'>,
): Promise<ListedPage> {
  const filter = await paymentFilter(deps.database, accountOf(caller), request);
  const page = { size: pageSize(request.pageSize), token: request.pageToken };
  if (isPlain(filter)) return listPlain(deps, filter, page);
  const { found, nextPageToken, lookedAt } = await findPayments(deps, filter, page);
  return { payments: found.map(({ record }) => decodeRecord(record)), nextPageToken, lookedAt };
}

/** Returns the size of a page. A size above the maximum is reduced to the maximum (AIP-158). */
export function pageSize(requested: number): number {
  return Math.min(requested || DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
}

/** Lists by the filters that each have an index, with one statement. */
async function listPlain(
  deps: ListDeps,
  { accountId, merchantOrderId, status, from, before }: PaymentFilter,
  page: PageRequest,
): Promise<ListedPage> {
  const filter = { accountId, merchantOrderId, status, from, before };
  const { rows, nextPageToken } = await readPage(deps.pageTokenKey, filter, page, (after, limit) =>
    listStored(deps.database, filter, after, limit),
  );
  return { payments: rows.map(({ record }) => decodeRecord(record)), nextPageToken, lookedAt: 0 };
}
