import type { NewsKind } from '../tables/notifications.ts';
import type { Database, Nullable, Queries } from './database.ts';
import { DUE, takeDueRows, takeFound, takeWith } from './due-work.ts';
import { withoutNulls } from './rows.ts';
import { addUp, IN_ACCOUNTS, searchAccounts } from './search-accounts.ts';

/*
 * `transaction.check_at` alone determines when a transaction's provider is queried next. Leases use the database's
 * clock, so the replicas' clocks do not matter.
 */

/** A connection whose provider this replica can query. */
export type AskableConnection = { readonly connectionId: string; readonly identity: string };

/** A due transaction that is not yet leased. */
export type Due = { readonly accountId: string; readonly id: string };

/** A transaction leased to the caller. Until the lease ends, no other worker checks it. */
export type LeasedCheck = {
  readonly accountId: string;
  readonly paymentId: string;
  readonly transactionId: string;
  readonly connectionId: string;
  /** The token that a write must present. */
  readonly fence: number;
};

/**
 * Leases the transactions of a connection that have been due longest. Finds them in all accounts without locks, then
 * leases them account by account. Skips transactions that another replica is leasing.
 *
 * @param options.limit maximum number of transactions.
 */
export async function takeDue(
  database: Database,
  { connectionId, identity }: AskableConnection,
  { limit, leaseS }: { readonly limit: number; readonly leaseS: number },
): Promise<LeasedCheck[]> {
  const search = { values: [connectionId, identity, limit], limit };
  return takeDueRows<Due, LeasedCheck>(database, DUE.transactions.find, search, take(database, leaseS));
}

/**
 * Leases those of these transactions that are due, as takeDue does, without a search.
 *
 * @param named transactions of connections whose provider this replica can query.
 */
export async function takeNamed(
  database: Database,
  named: readonly Due[],
  leaseS: number,
): Promise<LeasedCheck[]> {
  return takeFound(named, take(database, leaseS));
}

const take = (database: Database, leaseS: number) =>
  takeWith<LeasedCheck>(database, DUE.transactions.take, [leaseS]);

/** Types of transactions that a payment can begin with, in SQL. */
const BASE_TYPES = `('PURCHASE', 'AUTHORIZE', 'VERIFY')`;
/** Condition of an attempt with an unknown outcome, worded like its index. */
export const IS_OPEN_ATTEMPT = `check_at IS NOT NULL AND status IN ('CREATED', 'PENDING') AND NOT awaits_payer
      AND type IN ${BASE_TYPES}`;

const MAX_UNASKABLE_TAKEN = 100;

// Every write after the claim stores a response, so the transaction's times show whether it has one.
const FIND_UNASKABLE = {
  name: 'find_unaskable_attempts',
  text: `
    SELECT account_id AS "accountId", id FROM transaction t
    WHERE ${IN_ACCOUNTS} ${IS_OPEN_ATTEMPT} AND t.check_at <= now() - make_interval(secs => $3) AND t.updated_at <= t.created_at
      AND NOT EXISTS (
        SELECT 1 FROM unnest($1::text[], $2::text[]) AS askable(connection_id, identity)
        WHERE askable.connection_id = t.connection_id AND askable.identity = t.connection_identity
      )
    LIMIT ${MAX_UNASKABLE_TAKEN}`,
};

/**
 * Leases up to a hundred due attempts that have had no write since their claim and that no replica has leased, except
 * those of connections whose provider this replica can query.
 *
 * @param options.dueForS minimum number of seconds since they became due.
 */
export async function takeUnaskable(
  database: Database,
  askable: readonly AskableConnection[],
  options: { readonly dueForS: number; readonly leaseS: number },
): Promise<LeasedCheck[]> {
  const ids = askable.map(({ connectionId }) => connectionId);
  const values = [ids, askable.map(({ identity }) => identity), options.dueForS];
  const search = { values, limit: MAX_UNASKABLE_TAKEN };
  return takeDueRows<Due, LeasedCheck>(database, FIND_UNASKABLE, search, take(database, options.leaseS));
}

const POSTPONE = {
  name: 'postpone_check',
  text: `
    WITH next AS (SELECT now() + make_interval(secs => $4::float8) AS check_at)
    UPDATE transaction t SET check_at = next.check_at FROM next
    WHERE t.account_id = $1 AND t.id = $2 AND t.fence = $3`,
};

/**
 * Releases a leased transaction, unless it has been leased, written or made due since.
 *
 * @param inS seconds until its next check; undefined if no more news is expected.
 */
export async function postponeCheck(
  database: Database,
  { accountId, transactionId, fence }: Pick<LeasedCheck, 'accountId' | 'transactionId' | 'fence'>,
  inS: number | undefined,
): Promise<void> {
  await database.query(POSTPONE, [accountId, transactionId, fence, inS ?? null]);
}

/** Stored news that prompts a check, with its transaction. */
export type PromptingNews = {
  readonly accountId: string;
  readonly transactionId: string;
  readonly deduplicationKey: string;
  readonly subject: number;
  readonly kind: NewsKind;
  /** Time on the database's clock when the same news was last settled; 'now' if it is still unsettled. */
  readonly lastAt?: string | undefined;
};

/** A transaction whose check is due in `inS` seconds. */
export type Prompted = Due & AskableConnection & { readonly inS: number };

/**
 * Makes the check of a transaction due now, or `apartS` seconds after the last check prompted by news of this kind.
 * Never delays a check. Raises the fence, so that a check in progress, which cannot know the news, postpones nothing.
 *
 * @returns undefined while the claimer's own call is in progress, which nothing may overtake.
 */
export async function promptCheck(
  queries: Queries,
  news: PromptingNews,
  apartS: number,
): Promise<Prompted | undefined> {
  const { accountId, transactionId, deduplicationKey, subject, kind, lastAt = null } = news;
  const values = [accountId, transactionId, apartS, deduplicationKey, subject, kind, lastAt];
  return (await queries.query<Prompted>(DUE.transactions.prompt, values)).rows[0];
}

// A check that is scheduled or in progress stays as it is.
const RECHECK = {
  name: 'recheck_transaction',
  text: `
    WITH next AS (SELECT now() AS check_at)
    UPDATE transaction t SET check_at = next.check_at FROM next
    WHERE t.account_id = $1 AND t.id = $2 AND t.check_at IS NULL`,
};

/** Makes the check of a final transaction due now, because its provider may have corrected its result. */
export async function recheck(queries: Queries, accountId: string, transactionId: string): Promise<void> {
  await queries.query(RECHECK, [accountId, transactionId]);
}

/** A connection's open attempts that began while it pointed to the same account. */
export type OpenAttempts = {
  readonly connectionId: string;
  /** The connection's identity when the attempts were made. */
  readonly identity: string;
  /** Includes attempts of requests in progress. */
  readonly open: number;
  /** Number of open attempts that do not belong to requests in progress. */
  readonly due: number;
  /** Seconds since the oldest attempt began. */
  readonly oldestS: number;
};

// Reads in index order. Otherwise the planner, which assumes that open attempts are spread over the table although they
// are at its end, would read the whole table.
const COUNT_OPEN = {
  name: 'count_open_attempts',
  text: `
    SELECT connection_id AS "connectionId", connection_identity AS identity, count(*)::integer AS open,
      (count(*) FILTER (WHERE check_at <= now() OR fence > 0))::integer AS due,
      extract(epoch FROM now() - min(created_at))::float8 AS "oldestS"
    FROM (
      SELECT connection_id, connection_identity, check_at, fence, created_at FROM transaction
      WHERE ${IN_ACCOUNTS} ${IS_OPEN_ATTEMPT} ORDER BY type, awaits_payer, created_at LIMIT $1
    ) open
    GROUP BY connection_id, connection_identity ORDER BY connection_id, connection_identity`,
};

/** Counts up to `limit` open attempts, by connection and account. */
export async function countOpenAttempts(database: Database, limit: number): Promise<OpenAttempts[]> {
  const rows = await searchAccounts<Nullable<OpenAttempts>>(database, COUNT_OPEN, [limit]);
  return addUp(
    rows.map(withoutNulls<OpenAttempts>),
    ({ connectionId, identity }) => `${connectionId} ${identity}`,
    (a, b) => ({ ...a, open: a.open + b.open, due: a.due + b.due, oldestS: Math.max(a.oldestS, b.oldestS) }),
  );
}

/** Transactions of one type that are still open after their call. */
export type OpenLater = {
  /** Name of a payments.v1.Transaction.Type. */
  readonly type: (typeof LATER_TYPES)[number];
  readonly open: number;
  /** Seconds since the oldest transaction began. */
  readonly oldestS: number;
};

/** Types of transactions that may stay open after their call. */
const LATER_TYPES = ['PURCHASE', 'AUTHORIZE', 'VERIFY', 'CAPTURE', 'CANCEL', 'REFUND'] as const;

// Each type is counted by itself, so that a hundred thousand payers who never returned do not hide a refund. An
// authorization that waits to be captured is not open: its status is SUCCEEDED.
const COUNT_LATER = {
  name: 'count_open_later',
  text: `${LATER_TYPES.map(countOfType).join(' UNION ALL ')}`,
};

function countOfType(type: string): string {
  return `
    SELECT '${type}' AS type, count(*)::integer AS open,
      extract(epoch FROM now() - min(open.created_at))::float8 AS "oldestS"
    FROM (
      SELECT created_at FROM transaction t
      WHERE ${IN_ACCOUNTS} t.type = '${type}' AND t.awaits_payer = ('${type}' IN ${BASE_TYPES})
        AND t.check_at IS NOT NULL AND t.status IN ('CREATED', 'PENDING') LIMIT $1
    ) open
    HAVING count(*) > 0`;
}

/** Counts open operations and attempts that await their payer, up to `limit` of each type. */
export async function countOpenLater(database: Database, limit: number): Promise<OpenLater[]> {
  const rows = await searchAccounts<OpenLater>(database, COUNT_LATER, [limit]);
  return addUp(
    rows,
    ({ type }) => type,
    (a, b) => ({ ...a, open: a.open + b.open, oldestS: Math.max(a.oldestS, b.oldestS) }),
  );
}

/** Sets when a payer can no longer pay. */
const SET_PAYER_DUE = {
  name: 'set_payer_due',
  text: `
    UPDATE transaction SET payer_due_at = $3 WHERE account_id = $1 AND id = $2`,
};

/** Stores when the payer of an attempt can no longer pay, according to the provider. */
export async function setPayerDue(
  database: Database,
  { accountId, transactionId }: { readonly accountId: string; readonly transactionId: string },
  until: Date,
): Promise<void> {
  await database.query(SET_PAYER_DUE, [accountId, transactionId, until]);
}
