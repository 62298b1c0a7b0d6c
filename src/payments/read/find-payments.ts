import type { Database } from '#src/store/engine/database.ts';
import type { ListedPayment } from '#src/store/tables/list-payments.ts';
import { lookThroughPayments, MAX_LOOKED_AT } from '#src/store/tables/look-through-payments.ts';
import { decodeRecord } from '../stored-record.ts';
import { type PageRequest, pageToken, readPageToken } from './page-token.ts';
import { type PaymentFilter, recordTest } from './payment-filter.ts';

/** Dependencies of lists of payments. */
export type ListDeps = {
  readonly database: Database;
  /** Key that authenticates page tokens. */
  readonly pageTokenKey: Uint8Array;
};

/** A page of found payments. */
export type FoundPage = {
  /** Newest first. */
  readonly found: readonly ListedPayment[];
  /** "" on the last page. */
  readonly nextPageToken: string;
  /** The number of payments that were looked at, if the page ends because of it; otherwise 0. */
  readonly lookedAt: number;
};

/**
 * Finds an account's payments, newest first. Looks at MAX_LOOKED_AT payments at most; the next page continues after them.
 *
 * @throws ServiceError INVALID_PARAMETERS for a token that is malformed or belongs to another filter.
 */
export async function findPayments(
  { database, pageTokenKey }: ListDeps,
  filter: PaymentFilter,
  { size, token }: PageRequest,
): Promise<FoundPage> {
  const test = recordTest(filter);
  const { found, stoppedAt } = await lookThroughPayments(database, filter, {
    after: token ? readPageToken(pageTokenKey, filter, token) : undefined,
    // The extra payment shows whether there is another page.
    wanted: size + 1,
    matches: test && ((record) => test(decodeRecord(record))),
  });
  const shown = found.slice(0, size);
  const end = found.length > size ? shown.at(-1) : stoppedAt;
  return {
    found: shown,
    nextPageToken: end ? pageToken(pageTokenKey, filter, end) : '',
    lookedAt: stoppedAt ? MAX_LOOKED_AT : 0,
  };
}

const PLAIN = ['accountId', 'merchantOrderId', 'status', 'from', 'before'];

/** Reports whether a filter has only conditions that one statement of the list serves. */
export function isPlain(filter: PaymentFilter): boolean {
  return Object.entries(filter).every(([name, value]) => value === undefined || PLAIN.includes(name));
}
