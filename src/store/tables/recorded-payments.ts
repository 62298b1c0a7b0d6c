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
  /** Leaves out the payments that were made earlier than this time, such as 2026-01-31T09:08:07.000001Z. */
  readonly since: string | undefined;
};

/** A page of payments. */
export type RecordedPage = {
  readonly payments: readonly StoredRoute[];
  /** The place where the next page begins; undefined after the last page. */
  readonly next: string | undefined;
};

/** Maximum number of attempts behind one page. Small pages die young: garbage collection need not move their records. */
const PAGE = 25;
const CLOCK_MS = 60_000;
/** Later than every id. */
const LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

// Ids are ordered by time, so the index on them finds the newest. Operations have a parent; attempts do not.
const newest = (name: string, where: string) => ({
  name,
  text: `
    SELECT t.account_id AS "accountId", t.payment_id AS id, t.id AS "attemptId", t.capture, t.method_kind AS "methodKind",
      t.merchant_reference AS "merchantReference"
    FROM transaction t
    WHERE ${where} t.id < $1::uuid AND t.parent_id IS NULL ORDER BY t.id DESC LIMIT ${PAGE}`,
});
const NEWEST = newest('list_newest_attempts', IN_ACCOUNTS);
const NEWEST_OF_ACCOUNT = newest('list_newest_attempts_of_account', 'account_id = $2 AND');

// By key: otherwise the planner would read all payments since the time.
const READ = {
  name: 'read_recorded_payments',
  text: `
    SELECT p.id, p.record, p.idempotency_key AS "idempotencyKey", p.personal_data_erased_at IS NOT NULL AS "isErased"
    FROM (SELECT * FROM payment WHERE account_id = $1 AND id = ANY ($2::uuid[]) OFFSET 0) p
    WHERE p.created_at >= $3::timestamptz`,
};

type Payment = Pick<StoredRoute, 'id' | 'record' | 'idempotencyKey' | 'isErased'>;

/** An attempt with what all attempts of a payment have in common. */
type Attempt = Due &
  Pick<StoredRoute, 'capture' | 'methodKind' | 'merchantReference'> & { readonly attemptId: string };

/**
 * Reads a page of the newest payments. A payment with several attempts may be on several pages.
 *
 * @param after `next` of the page before; undefined for the first page.
 */
export async function listRecordedPayments(
  database: Database,
  { accountId, since = '-infinity' }: RecordedSearch,
  after: string | undefined,
): Promise<RecordedPage> {
  const before = after ?? LAST;
  const found =
    accountId === undefined
      ? await searchAccounts<Nullable<Attempt>>(database, NEWEST, [before])
      : (await database.query<Nullable<Attempt>>(NEWEST_OF_ACCOUNT, [before, accountId])).rows;
  const newestFirst = found
    .map((attempt) => withoutNulls<Attempt>(attempt))
    .toSorted((a, b) => (a.attemptId < b.attemptId ? 1 : -1))
    .slice(0, PAGE);
  // Not in the statement, whose plan would then depend on the range. The id's clock may differ from the payment's time.
  const first = firstIdAt((Date.parse(since) || 0) - CLOCK_MS);
  const attempts = newestFirst.filter(({ attemptId }) => attemptId >= first);
  const byId = new Map(attempts.map((attempt) => [attempt.id, attempt]));
  const payments = await takeByAccount([...byId.values()], async (ofAccount, own) => {
    return (await database.query<Payment>(READ, [ofAccount, own.map(({ id }) => id), since])).rows;
  });
  const read = new Map(payments.map((payment) => [payment.id, payment]));
  return {
    // Newest first again.
    payments: [...byId.values()].flatMap(({ id, capture, methodKind, merchantReference }) => {
      const payment = read.get(id);
      return payment ? [{ ...payment, capture, methodKind, merchantReference }] : [];
    }),
    next: attempts.length < PAGE ? undefined : attempts.at(-1)?.attemptId,
  };
}

/** Returns an id before every UUIDv7 of a time and later. */
function firstIdAt(ms: number): string {
  const hex = Math.max(0, Math.floor(ms)).toString(16).padStart(12, '0').slice(-12);
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
