import { randomUUID } from 'node:crypto';
import { cpSync, globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openStoredResponses } from '#src/payments/stored-response.ts';
import type { Database } from '#src/store/database.ts';
import { MIGRATIONS, migrate } from '#src/store/migrate.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/database.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../support/payment-requests.ts';

let test: TestDatabase;
let database: Database;
let directory: string;

beforeEach(async () => {
  test = await createTestDatabase({ empty: true });
  database = openTestDatabase(test.url, 2);
  directory = mkdtempSync(join(tmpdir(), 'migrations-'));
});
afterEach(async () => {
  await database.close();
  await test.drop();
  rmSync(directory, { recursive: true });
});

/** Runs the migrations up to a number. */
async function migrateTo(last: string): Promise<void> {
  for (const file of globSync(`${MIGRATIONS}/*.sql`)) {
    if (basename(file).slice(0, last.length) <= last) cpSync(file, join(directory, basename(file)));
  }
  await migrate(database, directory);
}

const query = async (text: string, values: readonly unknown[] = []) =>
  (await database.query<Record<string, unknown>>({ name: 'test', isPrepared: false, text }, values)).rows;

const addAccount = () => query("INSERT INTO account (id, name) VALUES ($1, 'Used')", [ACCOUNT_ONE]);

it('responses of a database that stored them whole are stored by their schema, and those that are whole stay readable', async () => {
  await migrateTo('0028');
  await addAccount();
  await migrateTo('0033');
  expect(await query('SELECT digest FROM response_schema')).toEqual([{ digest: Buffer.of() }]);
  await migrate(database, MIGRATIONS);
  expect(await query('SELECT digest FROM response_schema')).toEqual([]);
  const responses = await openStoredResponses(database);
  expect(responses.own).toHaveLength(9);
  // Also what a replica of the release before, which began before the migration, still stores.
  const whole = Buffer.from('{"id":"as it was"}');
  expect(await responses.body(whole, Buffer.of())).toBe(whole);
});

it('a transaction that the first releases inserted without its account gets that of its payment', async () => {
  await migrateTo('0014');
  const payments = Array.from({ length: 20 }, (_, i) => [randomUUID(), i % 2 ? ACCOUNT_ONE : ACCOUNT_TWO]);
  const insert = `INSERT INTO transaction (id, payment_id, connection_id, status, amount_minor_units, currency, capture)
    VALUES ($1, $1, 'scripted', 'SUCCEEDED', 100, 'USD', true)`;
  for (const [id, account] of payments) {
    const text = `INSERT INTO payment (id, account_id, idempotency_key, request_hash, status, record)
      VALUES ($1::uuid, $2, $1::text, '', 'SUCCEEDED', '')`;
    await query(text, [id, account]);
    await query(insert, [id]);
  }
  await migrate(database, MIGRATIONS);
  const rows = await query('SELECT payment_id, account_id FROM transaction');
  expect(rows.map(({ payment_id, account_id }) => [payment_id, account_id]).sort()).toEqual(payments.sort());
  // None is inserted without one any more: nothing would find it.
  await expect(query(insert, [randomUUID()])).rejects.toThrow('"account_id"');
});
