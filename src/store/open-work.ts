import type { Database, Nullable } from './database.ts';
import { withoutNulls } from './rows.ts';

/** An attempt whose outcome is not known. */
export type OpenAttempt = {
  readonly accountId: string;
  readonly paymentId: string;
  readonly connectionId: string;
  readonly openS: number;
  readonly lookUps: number;
};

/** A webhook whose deliveries fail, or that was turned off for it. */
export type TroubledWebhook = {
  readonly accountId: string;
  readonly id: string;
  readonly accountName: string;
  readonly url: string;
  readonly active: boolean;
  readonly disabledReason: string | undefined;
  readonly failingSince: Date | undefined;
};

/** Greatest number of open attempts searched for the oldest: an incident may leave a hundred thousand. */
const MAX_SEARCHED_ATTEMPTS = 5_000;

const OLDEST_OPEN = {
  name: 'list_oldest_open_attempts',
  text: `
    SELECT account_id AS "accountId", payment_id AS "paymentId", connection_id AS "connectionId",
      extract(epoch FROM now() - created_at)::float8 AS "openS", fence AS "lookUps"
    FROM (
      SELECT account_id, payment_id, connection_id, created_at, fence FROM transaction
      WHERE look_up_at IS NOT NULL ORDER BY connection_id, look_up_at LIMIT ${MAX_SEARCHED_ATTEMPTS}
    ) looked_through ORDER BY created_at LIMIT $1::integer`,
};

/** Lists the attempts whose outcome has been open for longest, including those of requests under way. */
export async function listOldestOpenAttempts(database: Database, limit: number): Promise<OpenAttempt[]> {
  return (await database.query<OpenAttempt>(OLDEST_OPEN, [limit])).rows;
}

const TROUBLED = {
  name: 'list_troubled_webhooks',
  text: `
    SELECT w.account_id AS "accountId", w.id, a.name AS "accountName", w.url, w.active, w.disabled_reason AS "disabledReason",
      w.failing_since AS "failingSince"
    FROM webhook w JOIN account a ON a.id = w.account_id
    WHERE w.failing_since IS NOT NULL AND w.active OR w.disabled_reason IS NOT NULL AND NOT w.active
    ORDER BY w.failing_since LIMIT $1`,
};

/** Lists the webhooks that have been failing, longest first, and those that were turned off for failing. */
export async function listTroubledWebhooks(database: Database, limit: number): Promise<TroubledWebhook[]> {
  const { rows } = await database.query<Nullable<TroubledWebhook>>(TROUBLED, [limit]);
  return rows.map(withoutNulls);
}

const COUNT_PENDING = {
  name: 'count_pending_deliveries',
  text: 'SELECT count(*)::integer AS n FROM (SELECT FROM delivery WHERE due_at IS NOT NULL LIMIT $1::integer) open',
};

/** Counts pending deliveries, up to `most`. */
export async function countPendingDeliveries(database: Database, most: number): Promise<number> {
  const { rows } = await database.query<{ n: number }>(COUNT_PENDING, [most]);
  return rows[0]?.n ?? 0;
}
