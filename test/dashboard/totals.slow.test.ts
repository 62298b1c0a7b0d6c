import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { ageOut } from '#src/server/age-out.ts';
import { writeRecentTotals } from '#src/server/write-totals.ts';
import type { Database } from '#src/store/engine/database.ts';
import { type Merchant, merchantOne, type Operator, signIn } from '../support/dashboard.ts';
import { openTestDatabase } from '../support/database.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE, cardPayment, walletPayment, withField } from '../support/payment-requests.ts';
import { earlier } from '../support/tables.ts';

onService();

let operator: Operator;
let merchant: Merchant;
let database: Database;
beforeAll(async () => {
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  merchant = merchantOne(server);
  database = openTestDatabase(server.databaseUrl, 2);
});
afterAll(() => database?.close());
beforeEach(() => tables.query('TRUNCATE payment, transaction, payment_total, recent_payment_total'));

const totals = () =>
  tables.query(
    `SELECT connection_id, method_type, currency, outcome, payments, approved_minor_units::text AS approved, refunds,
       refunded_minor_units::text AS refunded
     FROM payment_total WHERE outcome <> 'NIGHT' ORDER BY outcome, method_type`,
  );

const recentTotals = () =>
  tables.query('SELECT kind, name, outcome, payments FROM recent_payment_total ORDER BY kind, name, outcome');

/** Makes two captured payments, one of which is refunded in part; an authorization, a decline, and a payer who has yet to act. */
async function makePayments(): Promise<void> {
  await merchant.pay();
  const refunded = await merchant.pay();
  await merchant.call(`/v1/payments/${refunded.id}/refund`, { amount: { currency: 'USD', value: 4 } });
  const capture = 'payment_method.detail.card.capture';
  const number = 'payment_method.detail.card.card_data.number';
  await merchant.call('/v1/payments', withField(cardPayment(), capture, false));
  await merchant.call('/v1/payments', withField(cardPayment(), number, '4000000000000002'));
  await merchant.call('/v1/payments', walletPayment());
}

it('totals count payments by outcome and only the money that moved; writing them again, or twice at once, changes nothing', async () => {
  await makePayments();
  await writeRecentTotals(database, new Date());
  const first = await totals();
  expect(first).toEqual([
    expect.objectContaining({
      outcome: 'APPROVED',
      payments: 3,
      approved: '2000',
      refunds: 1,
      refunded: '400',
    }),
    expect.objectContaining({ outcome: 'DECLINED', payments: 1, approved: '0' }),
    expect.objectContaining({ outcome: 'OPEN', payments: 1, approved: '0' }),
  ]);
  const firstRecent = await recentTotals();
  expect(firstRecent).toEqual([
    { kind: 'CODE', name: 'DO_NOT_HONOR', outcome: 'DECLINED', payments: 1 },
    { kind: 'COUNTRY', name: 'CO', outcome: 'OPEN', payments: 1 },
    { kind: 'COUNTRY', name: 'US', outcome: 'APPROVED', payments: 3 },
    { kind: 'COUNTRY', name: 'US', outcome: 'DECLINED', payments: 1 },
  ]);
  await Promise.all([writeRecentTotals(database, new Date()), writeRecentTotals(database, new Date())]);
  expect(await totals()).toEqual(first);
  expect(await recentTotals()).toEqual(firstRecent);
});

it('more payments than a statement reads are all counted, and an outcome that is unknown counts as such', async () => {
  await tables.query(
    `WITH p AS (
       INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, method_type, currency,
         country, created_at)
       SELECT gen_random_uuid(), $1, 'key-' || n, '', '', 'PENDING', '', 'CARD', 'USD', 'US',
         date_trunc('hour', now()) + make_interval(secs => n / 100)
       FROM generate_series(1, 12000) n RETURNING id, created_at)
     INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units,
       currency, capture, check_at, awaits_payer)
     SELECT gen_random_uuid(), id, $1, 'one', 'a', 'PENDING', 100, 'USD', true, now() + interval '1 hour',
       created_at >= date_trunc('hour', now()) + interval '1 minute' FROM p`,
    [ACCOUNT_ONE],
  );
  await tables.query('ANALYZE payment, transaction');
  await writeRecentTotals(database, new Date());
  expect(await totals()).toMatchObject([
    { outcome: 'OPEN', payments: 6_001 },
    { outcome: 'UNKNOWN', payments: 5_999 },
  ]);
});

it('an account whose payments cannot be added up does not keep the others from their figures', async () => {
  await merchant.pay();
  const number = 'payment_method.detail.card.card_data.number';
  await merchant.call('/v1/payments', withField(cardPayment(), number, '4000000000000002'));
  const other = '00000000-0000-4000-8000-000000000001';
  // Accounts have their turn in the order of their creation.
  await tables.query("INSERT INTO account (id, name, created_at) VALUES ($1, 'First', '2020-01-01Z')", [
    other,
  ]);
  await tables.query(
    `WITH p AS (
       INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record)
       VALUES (gen_random_uuid(), $1, 'key', '', '', 'DECLINED', '\\xff') RETURNING id)
     INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units,
       currency, capture)
     SELECT gen_random_uuid(), id, $1, 'one', 'a', 'DECLINED', 100, 'USD', true FROM p`,
    [other],
  );
  await expect(writeRecentTotals(database, new Date())).rejects.toThrow();
  expect(await totals()).toMatchObject([{ outcome: 'APPROVED' }, { outcome: 'DECLINED' }]);
});

it('totals by country and code are kept for three days, the others for 400', async () => {
  await makePayments();
  await writeRecentTotals(database, new Date());
  await tables.query(`UPDATE payment_total SET hour = ${earlier('hour', '399 days')}`);
  await tables.query(`UPDATE recent_payment_total SET hour = ${earlier('hour', '2 days')}`);
  await ageOut(database);
  expect([await totals(), await recentTotals()].map(({ length }) => length)).toEqual([3, 4]);
  await tables.query(`UPDATE payment_total SET hour = ${earlier('hour', '2 days')}`);
  await tables.query(`UPDATE recent_payment_total SET hour = ${earlier('hour', '2 days')}`);
  await ageOut(database);
  expect([await totals(), await recentTotals()]).toEqual([[], []]);
});

it('a payment that changes later moves from one total to another, once a day up to 35 days back', async () => {
  await merchant.call('/v1/payments', walletPayment());
  await tables.query(`UPDATE payment SET created_at = ${earlier('created_at', '30 days')}`);
  await writeRecentTotals(database, new Date());
  expect(await totals()).toMatchObject([{ outcome: 'OPEN', payments: 1 }]);
  await tables.query("UPDATE payment SET status = 'EXPIRED'");
  await writeRecentTotals(database, new Date());
  expect(await totals()).toMatchObject([{ outcome: 'OPEN' }]);
  await writeRecentTotals(database, new Date(Date.now() + 86_400_000));
  expect(await totals()).toMatchObject([{ outcome: 'FAILED', payments: 1 }]);
});

it('the page shows a period against the time before, with the numbers of its charts in tables', async () => {
  await makePayments();
  await tables.query(
    `UPDATE payment SET created_at = ${earlier('created_at', '26 hours')} WHERE status = 'DECLINED' OR status = 'READY_TO_PAY'`,
  );
  await writeRecentTotals(database, new Date());
  const page = await text('/figures?span=24h');
  expect(tile(page, 'Approved payments')).toBe('3 before: 0');
  expect(tile(page, 'Approval rate')).toBe('100.0 % before: 0.0 %');
  expect(tile(page, 'Declined')).toBe('0 before: 1');
  expect(tile(page, 'Refunds')).toBe('1 before: 0');
  expect(rows(page, 'Approved money')[1]).toEqual(['USD', '3 0', '20.00 0.00', '4.00 0.00']);
  expect(rows(page, 'By country')).toEqual([
    ['US', '3 1', '100.0 % 0.0 %', '0 0'],
    ['CO', '0 1', '– –', '0 0'],
  ]);
  const week = await text('/figures?span=7d');
  expect(tile(week, 'Approval rate')).toBe('75.0 % before: –');
  expect(rows(week, 'Payments over time').length).toBeGreaterThanOrEqual(25);
  expect(week).not.toContain('By country');
  const empty = await text('/figures?from=2026-01-01&before=2026-02-01');
  expect(empty).toContain('Nothing in this period.');
});

it('a period, a range or a zone that cannot be read is named, and the page shows another', async () => {
  const wrong = await text('/figures?from=2026-01-01&zone=Mars/Olympus');
  expect(wrong).toContain('before: is required');
  expect(wrong).toContain('zone: must be a time zone');
});

it('totals that cannot be added up in time are not shown as zero payments without a word', async () => {
  await tables.query('BEGIN');
  await tables.query('LOCK TABLE payment_total');
  const page = await text('/figures').finally(() => tables.query('ROLLBACK'));
  expect(page).toContain('choose an account or a shorter period');
}, 15_000);

it('the codes of declined payments are counted, each with its share and the day before', async () => {
  const number = 'payment_method.detail.card.card_data.number';
  for (let i = 0; i < 3; i++)
    await merchant.call('/v1/payments', withField(cardPayment(), number, '4000000000000002'));
  await merchant.call('/v1/payments', withField(cardPayment(), number, '4000000000009995'));
  await tables.query(
    `UPDATE payment SET created_at = ${earlier('created_at', '25 hours')} WHERE id = (SELECT min(id::text)::uuid FROM payment)`,
  );
  await writeRecentTotals(database, new Date());
  const page = await text('/figures');
  expect(rows(page, 'Declines by code')).toEqual([
    ['DO NOT HONOR', '2 1', '66.7 % 100.0 %'],
    ['INSUFFICIENT FUNDS', '1 0', '33.3 % 0.0 %'],
  ]);
});

it('each number leads to a search that finds as many payments', async () => {
  await makePayments();
  await tables.query('UPDATE transaction SET check_at = NULL');
  await writeRecentTotals(database, new Date());
  const page = await text(`/figures?account_id=${ACCOUNT_ONE}&zone=Asia/Kolkata`);
  const links = [...page.matchAll(/<a href="(\/dashboard\/payments[^"]+)">(\d+)<\/a>/g)];
  expect(links.length).toBeGreaterThanOrEqual(12);
  for (const [, address = '', number = ''] of links) {
    const path = address.replaceAll('&#38;', '&').replace('/dashboard', '');
    const found = (await text(path)).match(/<tbody>(.*?)<\/tbody>/s)?.[1]?.match(/<tr/g)?.length ?? 0;
    expect({ path, found }).toEqual({ path, found: Number(number) });
  }
});

/** Returns the figure of a tile, and the figure before. */
function tile(page: string, name: string): string {
  const [, value = '', before = ''] =
    new RegExp(`>${name}</p><p class="value">(.*?)</p><p class="quiet">(.*?)</p>`, 's').exec(page) ?? [];
  return `${plain(value)} ${plain(before)}`;
}

/** Returns the cells of the table in a section. */
function rows(page: string, heading: string): string[][] {
  const [, body = ''] = new RegExp(`<h2>${heading}</h2>.*?<tbody>(.*?)</tbody>`, 's').exec(page) ?? [];
  return [...body.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = '']) =>
    [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell = '']) => plain(cell)),
  );
}

const plain = (markup: string) => markup.replaceAll('<br>', ' ').replaceAll(/<[^>]+>/g, '');

async function text(path: string): Promise<string> {
  const response = await operator.get(path);
  expect([path, response.status]).toEqual([path, 200]);
  return response.text();
}
