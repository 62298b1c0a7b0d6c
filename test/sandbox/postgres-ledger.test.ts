import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { newEntry } from '#src/sandbox/entries.ts';
import type { LedgerEntry } from '#src/sandbox/ledger.ts';
import { postgresLedger } from '#src/sandbox/postgres-ledger.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { WAITING } from '../support/tables.ts';

let database: TestDatabase;
let client: pg.Client;
beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
  client = new pg.Client(database.url);
  await client.connect();
});
afterEach(async () => {
  await client.end();
  await database.drop();
});

function entry(idempotencyKey: string, over: Partial<LedgerEntry> = {}): LedgerEntry {
  const call = { idempotencyKey, acquirer: 'ONE', account: 'acct' } as const;
  const made = newEntry({
    kind: 'charge',
    call,
    status: 'approved',
    amount: 100,
    currency: 'USD',
    fields: {},
  });
  return { ...made, ...over };
}

it('the table itself bounds captures by the amount and refunds by the captures', async () => {
  const ledger = postgresLedger(database.url);
  await ledger.prepare();
  const { entry: charge } = await ledger.record(entry('a'));
  for (const sums of [
    { captured: 101, canceled: 0, refunded: 0, captures: 1 },
    { captured: 60, canceled: 41, refunded: 0, captures: 1 },
    { captured: 60, canceled: 0, refunded: 61, captures: 1 },
    { captured: -1, canceled: 0, refunded: 0, captures: 1 },
  ]) {
    await expect(ledger.change([charge.id], () => [{ ...charge, sums }])).rejects.toThrow(/never_/);
  }
  expect(await ledger.findById(charge.id)).toEqual(charge);
  await ledger.close();
});

it('a change whose new entry has an idempotency key that is in use writes nothing', async () => {
  const ledger = postgresLedger(database.url);
  await ledger.prepare();
  const { entry: charge } = await ledger.record(entry('a'));
  const changed = { ...charge, status: 'canceled' };
  expect(await ledger.change([charge.id], () => [changed, entry('a')])).toBeUndefined();
  expect(await ledger.findById(charge.id)).toEqual(charge);
  expect(await ledger.change([charge.id], () => [entry('b'), changed])).toHaveLength(2);
  expect(await ledger.findById(charge.id)).toEqual(changed);
  await ledger.close();
});

it('the process and the ledger survive a connection that breaks during a change', async () => {
  const ledger = postgresLedger(database.url);
  await ledger.prepare();
  const { entry: charge } = await ledger.record(entry('a'));
  // The change waits for a locked row while its connection is terminated.
  await client.query('BEGIN; SELECT FROM sandbox.ledger FOR UPDATE');
  const broken = expect(ledger.change([charge.id], () => [charge])).rejects.toThrow();
  const end = `SELECT pg_terminate_backend(pid) FROM (${WAITING}) AS waiting`;
  await expect.poll(async () => (await client.query(end)).rowCount).toBe(1);
  await broken;
  await client.query('ROLLBACK');
  expect(await ledger.findById(charge.id)).toEqual(charge);
  await ledger.close();
});

it('a ledger from before there were operations still works, and its captured charges can be refunded', async () => {
  await client.query(`CREATE SCHEMA sandbox;
    CREATE TABLE sandbox.ledger (id text PRIMARY KEY, idempotency_key text NOT NULL UNIQUE, kind text NOT NULL,
      acquirer text NOT NULL, status text NOT NULL, response_code text, amount bigint NOT NULL, currency text NOT NULL,
      card_iin text, card_last_four text, answer_status integer NOT NULL, answer text NOT NULL, details text,
      created_at timestamptz NOT NULL DEFAULT now());
    INSERT INTO sandbox.ledger VALUES
      ('ch_1', 'captured', 'charge', 'ONE', 'approved', '00', 100, 'USD', '4', '1', 201, '{"captured":true}', NULL),
      ('ch_2', 'authorized', 'charge', 'ONE', 'approved', '00', 100, 'USD', '4', '1', 201, '{"captured":false}', NULL),
      ('wo_3', 'order', 'wallet_order', 'ONE', 'created', NULL, 100, 'USD', NULL, NULL, 201, '{}', '{"items":[]}')`);
  const ledger = postgresLedger(database.url);
  await ledger.prepare();
  await ledger.prepare();
  expect((await ledger.findByKey('captured'))?.sums).toMatchObject({ captured: 100 });
  expect((await ledger.findByKey('authorized'))?.sums).toMatchObject({ captured: 0 });
  expect((await ledger.findByKey('order'))?.details).toEqual({});
  await ledger.close();
});
