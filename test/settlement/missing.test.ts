import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readMercadoPagoSettlement } from '#src/connectors/mercado-pago/settlement.ts';
import { importSettlement } from '#src/settlement/import-settlement.ts';
import { matchSettlement } from '#src/settlement/match-settlement.ts';
import { settledAccount } from '#src/settlement/settled-connection.ts';
import { MIGRATIONS, migrate } from '#src/store/engine/migrate.ts';
import { readCoverage } from '#src/store/tables/settlement-coverage.ts';
import { createTestDatabase, openTestDatabase } from '../support/database.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { openTables } from '../support/tables.ts';

onOwnDatabase({
  empties:
    'payment, transaction, settlement_file, settlement_line, settlement_match, settlement_difference, settlement_progress, settlement_coverage, audit_log',
});

const CATALOGUE = {
  catalogue: { connections: [{ id: 'm', connector: 'mercado-pago', agreedFees: [] }] },
  connections: new Map([['m', { identity: 'mercado-pago 1', accountCurrency: 'ARS' }]]),
};

/** Stores a success of a day of 2026, such as 09-12. @returns its id. */
async function succeeded(day: string): Promise<string> {
  const id = `01999999-aaaa-7bbb-8ccc-${day.replace('-', '')}00${ACCOUNT_ONE.slice(-6)}`;
  await tables.query(
    `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record)
     VALUES ($1, $2, $3, '', '', 'SUCCEEDED', '')`,
    [id, ACCOUNT_ONE, id],
  );
  await tables.query(
    `INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, type,
       amount_minor_units, currency, capture, provider_payment_id, succeeded_at)
     VALUES ($1, $1, $2, 'm', 'mercado-pago 1', 'SUCCEEDED', 'PURCHASE', 10000, 'ARS', true, $3, $4)`,
    [id, ACCOUNT_ONE, id, `2026-${day}T12:00:00Z`],
  );
  return id;
}

const SETTLEMENT =
  'SOURCE_ID,TRANSACTION_TYPE,TRANSACTION_AMOUNT,TRANSACTION_CURRENCY,TRANSACTION_DATE,SETTLEMENT_NET_AMOUNT,SETTLEMENT_CURRENCY';
const approved = (day: string, id = `of-${day}`, type = 'SETTLEMENT') =>
  `${id},${type},100.00,ARS,2026-${day}T12:00:00.000Z,95.00,ARS`;
const RELEASE =
  'DATE,SOURCE_ID,DESCRIPTION,NET_CREDIT_AMOUNT,NET_DEBIT_AMOUNT,GROSS_AMOUNT,MP_FEE_AMOUNT,TAXES_AMOUNT';
const released = (day: string, id = `of-${day}`) =>
  `2026-${day}T12:00:00.000Z,${id},payment,95.00,0,100.00,-5.00,0`;

/** Imports a report. @returns the days of the successes that are missing. */
async function missingAfter(...lines: readonly string[]): Promise<string[]> {
  const bytes = Buffer.from(lines.join('\n'));
  const file = {
    name: 'report.csv',
    open: () =>
      (async function* () {
        yield bytes;
      })(),
  };
  const connection = {
    id: 'm',
    identity: 'mercado-pago 1',
    read: readMercadoPagoSettlement,
    currency: 'ARS',
  };
  await importSettlement(database, connection, file, { actor: 'Ada' });
  const account = settledAccount(CATALOGUE, 'mercado-pago 1');
  if (!account) throw new Error('no account');
  await matchSettlement(database, account);
  const rows = await tables.query(
    `SELECT to_char(t.succeeded_at AT TIME ZONE 'UTC', 'MM-DD') AS day FROM settlement_difference d
     JOIN transaction t ON t.account_id = d.account_id AND t.id::text = d.subject
     WHERE d.kind = 'missing_at_provider' AND d.ended_at IS NULL ORDER BY 1`,
  );
  return rows.map(({ day }) => String(day));
}

it('in the first month of Mercado Pago’s settlement reports, what has no line is missing, but for a week at both ends', async () => {
  for (const day of ['09-05', '09-12', '09-25']) await succeeded(day);
  const settled = await succeeded('09-13');
  expect(
    await missingAfter(SETTLEMENT, approved('09-01'), approved('09-13', settled), approved('09-30')),
  ).toEqual(['09-12']);
});

it('Mercado Pago’s release reports leave out the month before the release', async () => {
  for (const day of ['07-20', '08-10', '08-20', '09-12']) await succeeded(day);
  expect(await missingAfter(RELEASE, released('07-01'), released('07-31'))).toEqual([]);
  expect(await missingAfter(RELEASE, released('08-01'), released('09-12'), released('09-30'))).toEqual([
    '08-10',
    '08-20',
  ]);
});

it('each kind of report is compared with its own time, and a line of either settles', async () => {
  for (const day of ['08-10', '09-05', '09-12']) await succeeded(day);
  const late = await succeeded('09-14');
  expect(await missingAfter(RELEASE, released('07-01'), released('09-30', late))).toEqual(['08-10']);
  expect(await missingAfter(SETTLEMENT, approved('09-01'), approved('09-30'))).toEqual(['08-10', '09-12']);
});

it('a refund with the time of an old payment covers no time', async () => {
  await succeeded('07-15');
  const refund = approved('06-01', 'of-june', 'REFUND');
  expect(await missingAfter(SETTLEMENT, refund, approved('09-01'), approved('09-30'))).toEqual([]);
});

it('the time that earlier releases have covered is kept', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'coverage-'));
  for (const name of readdirSync(MIGRATIONS).filter((one) => one < '0020')) {
    cpSync(join(MIGRATIONS, name), join(directory, name));
  }
  const own = await createTestDatabase({ empty: true });
  const before = openTestDatabase(own.url, 1);
  await migrate(before, directory);
  const rows = await openTables(own.url);
  await rows.query(
    `INSERT INTO settlement_line (account_id, connection_identity, line_key, connection_id, file_id, line_number, report, kind,
       raw_kind, gross, fee, tax, net, settlement_currency, occurred_at, result)
     SELECT '00000000-0000-0000-0000-000000000000', identity, n, 's', gen_random_uuid(), 1, report, kind, kind, 1, 0, 0, 1,
       'USD', at::timestamptz, result
     FROM (VALUES ('a', '1', '', 'payment', '2026-09-01Z', 'matched'), ('a', '2', '', 'payment', '2026-09-30Z', 'unmatched'),
       ('a', '3', '', 'refund', '2026-06-01Z', 'matched'), ('a', '4', '', 'payment', '2026-10-30Z', NULL),
       ('b', '5', 'release', 'payment', '2026-08-01Z', 'matched'), ('b', '6', 'settlement', 'payment', '2026-08-02Z', 'matched'))
       AS l (identity, n, report, kind, at, result)`,
  );
  await rows.query(
    `INSERT INTO settlement_progress (account_id, connection_identity, covered_from, covered_until, compared_until)
     SELECT '00000000-0000-0000-0000-000000000000', identity, '2026-06-01Z', '2026-09-30Z', '2026-09-28Z'
     FROM unnest(ARRAY['a', 'b']) AS i (identity)`,
  );
  await migrate(before, MIGRATIONS);
  const [from, until, comparedUntil] = ['01', '30', '28'].map((day) => new Date(`2026-09-${day}Z`));
  expect(await readCoverage(before, 'a')).toEqual([{ report: '', from, until, comparedUntil }]);
  const time = (at: string) => ({ from: new Date(at), until: new Date(at), comparedUntil: undefined });
  expect(await readCoverage(before, 'b')).toEqual([
    { report: 'release', ...time('2026-08-01Z') },
    { report: 'settlement', ...time('2026-08-02Z') },
  ]);
  await rows.close();
  await before.close();
  await own.drop();
  rmSync(directory, { recursive: true });
});
