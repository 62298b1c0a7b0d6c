import { afterEach, beforeEach, expect, it } from 'vitest';
import { readConfig } from '#src/config.ts';
import { apiClients } from './support/api-clients.ts';
import { sandboxCatalogue } from './support/catalogues.ts';
import { createTestDatabase, type TestDatabase } from './support/database.ts';
import { cardPayment, headersOne } from './support/payment-requests.ts';
import { startTestServer, type TestServer } from './support/server.ts';
import { openTables, type Tables } from './support/tables.ts';

const RESET_AFTER_CHARGE = '4000000000002008';
const CATALOGUE = sandboxCatalogue(10_000);
/** The same connection with another provider account. */
const REPOINTED = CATALOGUE.replace('timeout_ms: 10000', 'timeout_ms: 10000\n      account_id: elsewhere');
const WARNING = 'unknown outcomes at connection sandbox-one cannot be looked up';

let test: TestDatabase;
let tables: Tables;
let server: TestServer | undefined;

beforeEach(async () => {
  test = await createTestDatabase();
  tables = await openTables(test.url);
});
afterEach(async () => {
  await stop();
  await tables?.close();
  await test?.drop();
});

const keys = { vaultKeys: new Map([['test-1', Buffer.alloc(32, 1)]]), hashKey: Buffer.alloc(32, 2) };

async function start(catalogue: string, firstCheckMs: number): Promise<TestServer> {
  const { checkSchedule } = readConfig({});
  // The provider's notifications go nowhere, because each would cause a look-up.
  const publicUrl = 'http://127.0.0.1:1';
  const schedule = { ...checkSchedule, firstCheckMs };
  const config = { publicUrl, checkSchedule: schedule, recoveryIntervalMs: 20 };
  server = await startTestServer({ catalogue, keys, databaseUrl: test.url, config });
  return server;
}

async function stop(): Promise<void> {
  await server?.close();
  server = undefined;
}

/** Makes a payment that is charged but whose outcome is unknown. */
async function payUnknown({ url }: TestServer): Promise<void> {
  const clients = apiClients(url);
  const { record } = await clients.create('rest', cardPayment(RESET_AFTER_CHARGE), headersOne());
  clients.close();
  expect(JSON.parse(record).status).toBe('PENDING');
}

const makeDue = () => tables.query('UPDATE transaction SET check_at = now() WHERE check_at IS NOT NULL');
const warnings = ({ logLines }: TestServer) => logLines.filter((line) => line.includes(WARNING)).length;
const statusOf = async () => (await tables.query('SELECT status FROM payment'))[0]?.status;

it('an open outcome is looked up after a restart, even if the mounted sandbox has another port', async () => {
  await payUnknown(await start(CATALOGUE, 60_000));
  await stop();
  await makeDue();
  const next = await start(CATALOGUE, 60_000);
  await expect.poll(statusOf).toBe('SUCCEEDED');
  expect(warnings(next)).toBe(0);
});

it('a connection that has another provider account after a restart is reported and not queried', async () => {
  await payUnknown(await start(CATALOGUE, 60_000));
  await stop();
  await makeDue();
  const repointed = await start(REPOINTED, 60_000);
  expect(warnings(repointed)).toBe(1);
  const metrics = await (await fetch(`${repointed.url}/metrics`)).text();
  expect(metrics).toContain('payment_unaskable_outcomes{connection="sandbox-one",reason="other_account"} 1');
  expect(metrics).toContain('payment_open_outcomes 1');
  expect(metrics).toContain('payment_open_follow_ups{kind="refund"} 0');

  // The warning is logged again after each reload.
  repointed.replaceCatalogue(REPOINTED.replace('name: Cards elsewhere', 'name: Reloaded'));
  await expect.poll(() => warnings(repointed)).toBe(2);
  // No worker has taken the transaction since its outcome was written.
  expect(await tables.query('SELECT status, fence FROM transaction')).toEqual([
    { status: 'PENDING', fence: 1 },
  ]);
  await stop();

  await start(CATALOGUE, 60_000);
  await expect.poll(statusOf).toBe('SUCCEEDED');
});
