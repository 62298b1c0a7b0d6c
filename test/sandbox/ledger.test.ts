import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { newEntry } from '#sandbox/entries.ts';
import { LEDGER_PAGE, openLedger } from '#sandbox/ledger.ts';
import type { LedgerEntry } from '#sandbox/ledger-entry.ts';
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

it('the table’s constraints limit captures to the amount and refunds to what was captured', async () => {
  const ledger = openLedger(database.url);
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

it('a change that adds an entry with a used idempotency key writes nothing', async () => {
  const ledger = openLedger(database.url);
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
  const ledger = openLedger(database.url);
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

it('a hundred concurrent calls that record one key return the same entry, and only one reports it as new', async () => {
  const ledger = openLedger(database.url);
  await ledger.prepare();
  const recorded = await Promise.all(Array.from({ length: 100 }, () => ledger.record(entry('a'))));
  expect(new Set(recorded.map((one) => one.entry.id)).size).toBe(1);
  expect(recorded.filter(({ isNew }) => isNew)).toHaveLength(1);
  await ledger.close();
});

it('the ledger is read in pages, ordered by ID', async () => {
  const ledger = openLedger(database.url);
  await ledger.prepare();
  const ids = Array.from({ length: LEDGER_PAGE + 2 }, (_, i) => `ch_${String(i).padStart(5, '0')}`);
  await Promise.all(ids.map((id) => ledger.record(entry(id, { id }))));
  const first = await ledger.entriesAfter('');
  expect(first.map(({ id }) => id)).toEqual(ids.slice(0, LEDGER_PAGE));
  const rest = await ledger.entriesAfter(ids[LEDGER_PAGE - 1] ?? '');
  expect(rest.map(({ id }) => id)).toEqual(ids.slice(LEDGER_PAGE));
  await ledger.close();
});
