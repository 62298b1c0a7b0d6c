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
