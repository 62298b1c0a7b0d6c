import type pg from 'pg';
import { ACCOUNT_ID } from './request.ts';

/** The bytes of every stored payment. */
export type StoredBytes = { readonly record: Uint8Array; readonly response: Uint8Array };

/**
 * The number of accounts with stored payments, including the benchmark's, and of days over which payments are spread.
 */
const ACCOUNTS = 100;
const DAYS = 90;
const BATCH = 20_000;
/**
 * For at least this many payments, indexes are dropped first and rebuilt at the end, which takes a third of the time.
 */
const BUILT_AT_THE_END = 200_000;

/**
 * Adds the accounts of the stored payments, which the dashboard searches. The benchmark's own account already exists.
 */
export async function addAccounts(client: pg.Client): Promise<void> {
  await client.query(
    `INSERT INTO account (id, name)
     SELECT ('acc00000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'Account ' || n
     FROM generate_series(1, ${ACCOUNTS - 1}) AS n`,
  );
}

/**
 * Fills a database with successful payments and their transactions.
 *
 * @param count the number of payments in the database afterwards.
 * @param options.stored the number of payments already stored.
 * @param options.most the final number of payments, over which the days are spread; `count` by default.
 */
export async function storePayments(
  client: pg.Client,
  count: number,
  { record, response }: StoredBytes,
  { stored = 0, most = count }: { readonly stored?: number; readonly most?: number } = {},
): Promise<void> {
  const responseColumn = await responseColumnOf(client);
  const succeeded = (await hasColumn(client, 'succeeded_at'))
    ? ['succeeded_at,', "CASE status WHEN 'SUCCEEDED' THEN created_at END,"]
    : ['', ''];
  const fill = `
    WITH day AS (
      SELECT n, interval '${DAYS} days' * (n::float8 / $3::float8 - 1) AS age FROM generate_series($1::integer, $2::integer) AS n
    ), made AS (
      INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, ${responseColumn}, created_at,
        merchant_order_id, card_last_four)
      SELECT uuidv7(age), CASE n % ${ACCOUNTS} WHEN 0 THEN '${ACCOUNT_ID}'
          ELSE 'acc00000-0000-4000-8000-' || lpad((n % ${ACCOUNTS})::text, 12, '0') END::uuid,
        'stored-' || n, sha256(n::text::bytea), '', CASE n % 7 WHEN 1 THEN 'DECLINED' ELSE 'SUCCEEDED' END,
        sample.record, sample.response, now() + age, 'order-' || n,
        lpad((n::bigint * 7919 % 10000)::text, 4, '0')
      FROM day, sample
      RETURNING id, account_id, status, created_at
    )
    INSERT INTO transaction (id, payment_id, connection_id, connection_identity, status, amount_minor_units, currency,
      capture, created_at, ${succeeded[0]} account_id)
    SELECT uuidv7(created_at - now()), id, 'bench', 'bench', status, 1000, 'USD', true, created_at, ${succeeded[1]} account_id
    FROM made`;
  await client.query('SET synchronous_commit = off');
  // A compressed value is copied unchanged from a table; a parameter would be compressed for each row.
  await client.query('CREATE TEMPORARY TABLE sample AS SELECT $1::bytea AS record, $2::bytea AS response', [
    record,
    response,
  ]);
  const indexes = count - stored > BUILT_AT_THE_END ? await dropIndexes(client) : [];
  for (let first = stored + 1; first <= count; first += BATCH) {
    await client.query(fill, [first, Math.min(first + BATCH - 1, count), most]);
  }
  for (const definition of indexes) await client.query(definition);
  await client.query('DROP TABLE sample');
  await client.query('RESET synchronous_commit');
  await client.query('VACUUM (ANALYZE) payment, transaction');
  await client.query('CHECKPOINT');
}

/** Returns the name of the column with a payment's response, which was `answer` at first. */
export async function responseColumnOf(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT attname AS name FROM pg_attribute
     WHERE attrelid = 'payment'::regclass AND attname IN ('answer', 'response')`,
  );
  return rows[0]?.name ?? 'response';
}

/** Reports whether transactions have a column, which those of older releases may lack. */
async function hasColumn(client: pg.Client, name: string): Promise<boolean> {
  const { rows } = await client.query(
    "SELECT FROM pg_attribute WHERE attrelid = 'transaction'::regclass AND attname = $1",
    [name],
  );
  return rows.length > 0;
}

/** Drops the indexes that belong to no constraint. @returns statements that rebuild them. */
async function dropIndexes(client: pg.Client): Promise<string[]> {
  await client.query("SET maintenance_work_mem = '1GB'");
  const { rows } = await client.query<{ name: string; definition: string }>(
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i
     WHERE i.indrelid IN ('payment'::regclass, 'transaction'::regclass)
       AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)`,
  );
  for (const { name } of rows) await client.query(`DROP INDEX ${name}`);
  return rows.map(({ definition }) => definition);
}
