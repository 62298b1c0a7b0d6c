import type pg from 'pg';
import { ACCOUNT_ID } from './request.ts';

/** The bytes of every stored payment. */
export type StoredBytes = { readonly record: Uint8Array; readonly answer: Uint8Array };

/** Accounts among which stored payments are shared out, the benchmark's among them, and the days over which they are spread. */
const ACCOUNTS = 100;
const DAYS = 90;
const BATCH = 20_000;

/** Fills a database of any release with payments that succeeded, each with its transaction. */
export async function storePayments(
  client: pg.Client,
  count: number,
  { record, answer }: StoredBytes,
): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT column_name AS name FROM information_schema.columns
     WHERE table_schema = 'public' AND (table_name, column_name) IN (('payment', 'merchant_order_id'), ('transaction', 'account_id'))`,
  );
  const has = (name: string, text: string) => (rows.some((row) => row.name === name) ? `, ${text}` : '');
  const fill = `
    WITH made AS (
      INSERT INTO payment (id, account_id, idempotency_key, request_hash, status, record, answer, created_at
        ${has('merchant_order_id', 'merchant_order_id')})
      SELECT gen_random_uuid(), CASE n % ${ACCOUNTS} WHEN 0 THEN '${ACCOUNT_ID}'
          ELSE 'acc00000-0000-4000-8000-' || lpad((n % ${ACCOUNTS})::text, 12, '0') END::uuid,
        'stored-' || n, sha256(n::text::bytea), 'SUCCEEDED', $3, $4,
        now() - interval '${DAYS} days' * (1 - n::float8 / $5::float8) ${has('merchant_order_id', "'order-' || n")}
      FROM generate_series($1::integer, $2::integer) AS n
      RETURNING id, account_id, created_at
    )
    INSERT INTO transaction (id, payment_id, connection_id, connection_identity, status, amount_minor_units, currency,
      capture, created_at ${has('account_id', 'account_id')})
    SELECT gen_random_uuid(), id, 'bench', 'bench', 'SUCCEEDED', 1000, 'USD', true, created_at
      ${has('account_id', 'account_id')}
    FROM made`;
  await client.query('SET synchronous_commit = off');
  for (let first = 1; first <= count; first += BATCH) {
    await client.query(fill, [first, Math.min(first + BATCH - 1, count), record, answer, count]);
  }
  await client.query('RESET synchronous_commit');
  await client.query('VACUUM (ANALYZE) payment, transaction');
  await client.query('CHECKPOINT');
}
