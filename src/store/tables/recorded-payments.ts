import type { Due } from '../engine/checks.ts';
import type { Database, Nullable } from '../engine/database.ts';
import { takeByAccount, withoutNulls } from '../engine/rows.ts';
import { IN_ACCOUNTS, searchAccounts } from '../engine/search-accounts.ts';

/** A stored payment, with what determined its route besides its record. */
export type StoredRoute = {
  readonly id: string;
  /** An encoded Payment. */
  readonly record: Uint8Array;
  /** As stored, see payments/keys. */
  readonly idempotencyKey: string;
  /** true: the payer's personal data was erased from the record. */
  readonly isErased: boolean;
  /** The connection of the first attempt. */
  readonly connectionId: string;
  /** false: an authorization only. */
  readonly capture: boolean;
  /** The kind of the payment's method. */
  readonly methodKind: string | undefined;
  /** undefined if the merchant sent none. */
  readonly merchantReference: string | undefined;
};

/** Limits the payments that are read. */
export type RecordedSearch = {
  /** Only this account's payments, a UUID; undefined for all accounts. */
  readonly accountId: string | undefined;
  /** Leaves out the payments that were made earlier, in milliseconds since the epoch. */
  readonly sinceMs: number;
};

/** A page of payments. */
export type RecordedPage = {
  readonly payments: readonly StoredRoute[];
  /** The place where the next page begins; undefined after the last page. */
  readonly next: string | undefined;
};

/** Maximum number of attempts behind one page. */
const PAGE = 100;
/** Later than every id. */
const LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

// Ids are ordered by time, so the index on them finds the newest. Operations have a parent; attempts do not.
const newest = (name: string, where: string) => ({
  name,
  text: `
    SELECT t.account_id AS "accountId", t.payment_id AS id, t.id AS "attemptId" FROM transaction t
    WHERE ${where} t.id < $1::uuid AND t.parent_id IS NULL ORDER BY t.id DESC LIMIT ${PAGE}`,
});
const NEWEST = newest('list_newest_attempts', IN_ACCOUNTS);
const NEWEST_OF_ACCOUNT = newest('list_newest_attempts_of_account', 'account_id = $2 AND');

// By key: otherwise the planner would read all payments of the account.
const READ = {
  name: 'read_recorded_payments',
  text: `
    SELECT DISTINCT ON (p.id) p.id, p.record, p.idempotency_key AS "idempotencyKey",
      p.personal_data_erased_at IS NOT NULL AS "isErased", t.connection_id AS "connectionId", t.capture,
      t.method_kind AS "methodKind", t.merchant_reference AS "merchantReference"
    FROM (SELECT * FROM payment WHERE account_id = $1 AND id = ANY ($2::uuid[]) OFFSET 0) p
    JOIN transaction t ON t.account_id = $1 AND t.payment_id = p.id AND t.parent_id IS NULL
    ORDER BY p.id, t.created_at, t.id`,
};

type Attempt = Due & { readonly attemptId: string };

/**
 * Reads a page of the newest payments. A payment with several attempts may be on several pages.
 *
 * @param after `next` of the page before; undefined for the first page.
 */
export async function listRecordedPayments(
  database: Database,
  { accountId, sinceMs }: RecordedSearch,
  after: string | undefined,
): Promise<RecordedPage> {
  const before = after ?? LAST;
  const found =
    accountId === undefined
      ? await searchAccounts<Attempt>(database, NEWEST, [before])
      : (await database.query<Attempt>(NEWEST_OF_ACCOUNT, [before, accountId])).rows;
  const newestFirst = found.toSorted((a, b) => (a.attemptId < b.attemptId ? 1 : -1)).slice(0, PAGE);
  // Not in the statement, whose plan would then depend on the range.
  const first = firstIdAt(sinceMs);
  const attempts = newestFirst.filter(({ attemptId }) => attemptId >= first);
  const payments = await takeByAccount(attempts, async (ofAccount, own) => {
    const ids = [...new Set(own.map(({ id }) => id))];
    return (await database.query<Nullable<StoredRoute>>(READ, [ofAccount, ids])).rows;
  });
  const byId = new Map(payments.map((one) => [one.id, withoutNulls<StoredRoute>(one)]));
  return {
    // Newest first again, each once.
    payments: [...new Set(attempts.map(({ id }) => id))].flatMap((id) => byId.get(id) ?? []),
    next: attempts.length < PAGE ? undefined : attempts.at(-1)?.attemptId,
  };
}

/** Returns an id before every UUIDv7 of a time and later. */
function firstIdAt(ms: number): string {
  const hex = Math.max(0, Math.floor(ms)).toString(16).padStart(12, '0').slice(-12);
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
