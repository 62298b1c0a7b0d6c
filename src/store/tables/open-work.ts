import { IS_OPEN_ATTEMPT } from '../engine/checks.ts';
import type { Database, Nullable } from '../engine/database.ts';
import { withoutNulls } from '../engine/rows.ts';
import { addUp, IN_ACCOUNTS, inAccountsOf, searchAccounts } from '../engine/search-accounts.ts';

/** The most recent attempts at one connection that have one status. */
export type RecentAttempts = {
  readonly connectionId: string;
  /** Name of a payments.v1.Transaction.Status. */
  readonly status: string;
  readonly attempts: number;
  /** Seconds since the oldest of these attempts began. */
  readonly sinceS: number;
};

/** Maximum number of attempts counted, since an hour may have millions. */
export const MAX_RECENT_ATTEMPTS = 10_000;

// Ids are ordered by time, so their index finds the latest. Operations have a parent; attempts do not.
const ago = (ms: number) =>
  `(lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - ${ms}), 12, '0') || repeat('0', 20))::uuid`;
const AN_HOUR_AGO = ago(3_600_000);
const RECENT = {
  name: 'count_recent_attempts',
  text: `
    SELECT connection_id AS "connectionId", status, count(*)::integer AS attempts,
      extract(epoch FROM now() - min(created_at))::float8 AS "sinceS"
    FROM (
      SELECT connection_id, status, created_at FROM transaction
      WHERE ${IN_ACCOUNTS} id >= ${AN_HOUR_AGO} AND parent_id IS NULL
      ORDER BY id DESC LIMIT ${MAX_RECENT_ATTEMPTS}
    ) latest
    GROUP BY connection_id, status`,
};

/** Maximum number of payments read for statistics. */
export const MAX_RECENT_PAYMENTS = 500;

const RECENT_RECORDS = {
  name: 'list_recent_records',
  text: `
    SELECT p.record
    FROM (
      SELECT account_id, payment_id FROM transaction
      WHERE ${IN_ACCOUNTS} id >= ${AN_HOUR_AGO} AND parent_id IS NULL ORDER BY id DESC LIMIT ${MAX_RECENT_PAYMENTS}
    ) latest JOIN payment p ON ${inAccountsOf('p')} p.account_id = latest.account_id AND p.id = latest.payment_id`,
};

/** Reads the encoded records of the most recent payments of the last hour. */
export async function listRecentRecords(database: Database): Promise<Uint8Array[]> {
  const rows = await searchAccounts<{ record: Buffer }>(database, RECENT_RECORDS, []);
  return rows.slice(0, MAX_RECENT_PAYMENTS).map(({ record }) => record);
}

/** Counts the attempts of the last hour, up to the latest MAX_RECENT_ATTEMPTS, by connection and status. */
export async function countRecentAttempts(database: Database): Promise<RecentAttempts[]> {
  return addUp(
    await searchAccounts<RecentAttempts>(database, RECENT, []),
    ({ connectionId, status }) => `${connectionId} ${status}`,
    (a, b) => ({ ...a, attempts: a.attempts + b.attempts, sinceS: Math.max(a.sinceS, b.sinceS) }),
  );
}

/** Maximum number of transactions counted as the latest. */
export const MAX_LATEST_TRANSACTIONS = 40;

const LATEST = {
  name: 'count_latest_transactions',
  text: `
    SELECT count(*)::integer AS n
    FROM (
      SELECT 1 FROM transaction WHERE ${IN_ACCOUNTS} id >= ${ago(2_000)}
      ORDER BY id DESC LIMIT ${MAX_LATEST_TRANSACTIONS}
    ) latest`,
};

/** Counts the transactions of the last two seconds, up to MAX_LATEST_TRANSACTIONS on each node. */
export async function countLatestTransactions(database: Database): Promise<number> {
  const rows = await searchAccounts<{ n: number }>(database, LATEST, []);
  return rows.reduce((sum, { n }) => sum + n, 0);
}

/** An attempt with an unknown outcome. */
export type OpenAttempt = {
  readonly accountId: string;
  readonly paymentId: string;
  readonly connectionId: string;
  readonly openS: number;
  /** Time of the next check. */
  readonly checkAt: Date;
};

/** A webhook whose deliveries are failing, or that was turned off because they failed. */
export type TroubledWebhook = {
  readonly accountId: string;
  readonly id: string;
  readonly accountName: string;
  readonly url: string;
  readonly active: boolean;
  readonly disabledReason: string | undefined;
  readonly failingSince: Date | undefined;
};

/** Maximum number of open attempts searched for the oldest, since an incident may leave a hundred thousand. */
const MAX_SEARCHED_ATTEMPTS = 5_000;

const OLDEST_OPEN = {
  name: 'list_oldest_open_attempts',
  text: `
    SELECT account_id AS "accountId", payment_id AS "paymentId", connection_id AS "connectionId",
      extract(epoch FROM now() - created_at)::float8 AS "openS", check_at AS "checkAt"
    FROM (
      SELECT account_id, payment_id, connection_id, created_at, check_at FROM transaction
      WHERE ${IN_ACCOUNTS} ${IS_OPEN_ATTEMPT} ORDER BY type, awaits_payer, created_at LIMIT ${MAX_SEARCHED_ATTEMPTS}
    ) looked_through ORDER BY created_at LIMIT $1::integer`,
};

/** Lists the attempts whose outcome has been open longest, including requests in progress. */
export async function listOldestOpenAttempts(database: Database, limit: number): Promise<OpenAttempt[]> {
  const found = await searchAccounts<OpenAttempt>(database, OLDEST_OPEN, [limit]);
  return found.toSorted((a, b) => b.openS - a.openS).slice(0, limit);
}

const TROUBLED = {
  name: 'list_troubled_webhooks',
  text: `
    SELECT w.account_id AS "accountId", w.id, a.name AS "accountName", w.url, w.active, w.disabled_reason AS "disabledReason",
      w.failing_since AS "failingSince"
    FROM webhook w JOIN account a ON a.id = w.account_id
    WHERE ${IN_ACCOUNTS}
      (w.failing_since IS NOT NULL AND w.active OR w.disabled_reason IS NOT NULL AND NOT w.active)
    ORDER BY w.failing_since LIMIT $1`,
};

/** Lists the webhooks that are failing, longest first, and those turned off for failing. */
export async function listTroubledWebhooks(database: Database, limit: number): Promise<TroubledWebhook[]> {
  const rows = await searchAccounts<Nullable<TroubledWebhook>>(database, TROUBLED, [limit]);
  return rows.slice(0, limit).map(withoutNulls<TroubledWebhook>);
}

const COUNT_PENDING = {
  name: 'count_pending_deliveries',
  text: `
    SELECT count(*)::integer AS n
    FROM (SELECT 1 FROM delivery WHERE ${IN_ACCOUNTS} due_at IS NOT NULL LIMIT $1::integer) open`,
};

/** Counts pending deliveries, up to `most`. */
export async function countPendingDeliveries(database: Database, most: number): Promise<number> {
  const rows = await searchAccounts<{ n: number }>(database, COUNT_PENDING, [most]);
  return Math.min(
    most,
    rows.reduce((sum, { n }) => sum + n, 0),
  );
}
