import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { run } from '#src/commands/export.ts';
import { databaseUrl, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { readCsv } from '../support/read-csv.ts';
import { runCommand } from '../support/run-command.ts';

const directory = mkdtempSync(join(tmpdir(), 'payments-export-'));
afterAll(() => rmSync(directory, { recursive: true }));

onOwnDatabase({});
beforeAll(async () => {
  await tables.query(
    `WITH p AS (
       INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record)
       SELECT gen_random_uuid(), $1, 'key-' || n, '', '', 'SUCCEEDED', '' FROM generate_series(1, 3) n RETURNING id)
     INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units,
       currency, capture, succeeded_at)
     SELECT gen_random_uuid(), id, $1, 'a', 'a', 'SUCCEEDED', 1001, 'KWD', true, '2026-09-15T12:00:00Z' FROM p`,
    [ACCOUNT_ONE],
  );
});

const command = (...args: string[]) =>
  runCommand(run, { DATABASE_URL: databaseUrl(), ACTOR: 'Ada' }, ...args, '--directory', directory);
const audited = async () =>
  (await tables.query('SELECT action, detail FROM audit_log ORDER BY id')).map(
    ({ action, detail }) => `${action} ${detail}`,
  );

it('the export command writes a file that its owner alone can read, and prints and records its rows and sums', async () => {
  const name = 'movements-2026-09-01-2026-10-01-UTC.csv';
  const { code, stdout } = await command('movements', 'month=2026-09', 'currency=KWD');
  expect([code, stdout]).toEqual([0, `${join(directory, name)}: 3 rows, KWD 3.003\n`]);
  expect(readCsv(readFileSync(join(directory, name), 'utf8'))).toHaveLength(3);
  expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
  expect(await audited()).toEqual(['export currency=KWD', 'exported 3 rows, KWD 3.003']);
  rmSync(join(directory, name));
});

it('a file that breaks off is removed, and recorded as broken off', async () => {
  await tables.query('ALTER TABLE movement_correction RENAME COLUMN amount_minor_units TO away');
  const { code, stderr } = await command('movements', 'month=2026-09');
  await tables.query('ALTER TABLE movement_correction RENAME COLUMN away TO amount_minor_units');
  expect([code, stderr]).toEqual([1, expect.stringContaining('No file: ')]);
  expect(readdirSync(directory)).toEqual([]);
  expect((await audited()).at(-1)).toBe('export-broke-off it failed after 0 rows');
});

it.each([
  [
    ['money'],
    'The first argument must be one of movements, transactions, payments, disputes, settlement, differences.',
  ],
  [['movements', 'month'], 'every argument must be <parameter>=<value>'],
  [['movements', 'month=2026-09', 'month=2026-08'], 'month: must be given once.'],
  [['movements', 'from=2026-09-01', 'to=2026-09-30'], 'to: is not a parameter of an export: use before'],
  [['movements', 'month=2026-09', 'include=payer'], 'include: is only for calls with a key.'],
  [
    ['movements', 'month=2026-09', 'account_id=11111111-1111-4111-8111-000000000000'],
    'account_id: is unknown',
  ],
])('the export command refuses %o', async (args, message) => {
  const { code, stderr } = await command(...args);
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
});
