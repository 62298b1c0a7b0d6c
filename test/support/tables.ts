import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { EVENT_TYPES } from '#src/webhooks/events.ts';
import { ACCOUNT_ONE } from './payment-requests.ts';

/** Direct access to a database, bypassing the service. */
export type Tables = {
  query(sql: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  /** Counts the rows that a payment writes, including the sandbox provider's ledger. */
  counts(): Promise<Counts>;
  close(): Promise<void>;
};

export type Counts = {
  readonly payments: number;
  readonly transactions: number;
  readonly tokens: number;
  readonly charges: number;
};

/** Selects the backends that wait for a lock of the current backend: others may wait in other tests' databases. */
export const WAITING =
  'SELECT pid FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))';

/**
 * Returns SQL for a column's time minus an interval, which may be negative. It computes in UTC, because a distributed
 * database refuses an update that depends on the session's time zone.
 */
export const earlier = (column: string, interval: string): string =>
  `(${column} AT TIME ZONE 'UTC' - interval '${interval}') AT TIME ZONE 'UTC'`;

/** Assignments that make a transaction older by an interval: it was sent, and its payer's time ends, that much earlier. */
export const older = (interval: string): string =>
  `created_at = ${earlier('created_at', interval)}, payer_due_at = ${earlier('payer_due_at', interval)}`;

/**
 * Makes every write to a table fail with an SQLSTATE, as PostgreSQL itself would, unless the row meets a condition. A
 * check raises the error, since distributed tables have no triggers.
 *
 * @returns a function that mends the table.
 */
export async function failWrites(
  { query }: Pick<Tables, 'query'>,
  table: string,
  sqlState: string,
  unless = 'false',
): Promise<() => Promise<void>> {
  await query(`CREATE FUNCTION fail() RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'made to fail' USING ERRCODE = '${sqlState}'; END $$`);
  await query(`ALTER TABLE ${table} ADD CONSTRAINT fails CHECK (${unless} OR fail()) NOT VALID`);
  return async () => {
    await query(`ALTER TABLE ${table} DROP CONSTRAINT fails`);
    await query('DROP FUNCTION fail()');
  };
}

const LOCK_WAITS = `
  SELECT count(*)::int AS waiting FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock'`;

/** Counts the statements that wait for a lock, on all nodes of a distributed database. */
export async function lockWaits({ query }: Pick<Tables, 'query'>): Promise<unknown> {
  const [row] = await query(
    process.env.CITUS_URL
      ? `SELECT sum(result::int)::int AS waiting FROM run_command_on_all_nodes($$${LOCK_WAITS}$$)`
      : LOCK_WAITS,
  );
  return row?.waiting;
}

/** Opens a database on one connection. */
export async function openTables(databaseUrl: string): Promise<Tables> {
  const client = new pg.Client(databaseUrl);
  // The test that drops its database drops this connection too.
  client.on('error', () => {});
  await client.connect();
  const query: Tables['query'] = async (sql, values) => (await client.query(sql, values as unknown[])).rows;
  return {
    query,
    async counts() {
      const [row] = await query(`SELECT
        (SELECT count(*)::int FROM payment) AS payments,
        (SELECT count(*)::int FROM transaction) AS transactions,
        (SELECT count(*)::int FROM vaulted_token) AS tokens,
        (SELECT count(*)::int FROM sandbox.ledger) AS charges`);
      return row as Counts;
    },
    close: () => client.end(),
  };
}

/** Adds a webhook of account one for every event, so that each is stored; nothing can be sent to it. */
export async function wantEveryEvent({ query }: Pick<Tables, 'query'>): Promise<void> {
  await query(
    `INSERT INTO webhook (account_id, id, url, description, events, secret) VALUES ($1, $2, '', '', $3, '')`,
    [ACCOUNT_ONE, randomUUID(), EVENT_TYPES],
  );
}
