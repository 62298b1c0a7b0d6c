import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { writeRecentTotals } from '#src/server/write-totals.ts';
import type { Database } from '#src/store/engine/database.ts';
import { type Merchant, merchantOne, type Operator, signIn } from '../support/dashboard.ts';
import { openTestDatabase } from '../support/database.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { cardPayment, walletPayment, withField } from '../support/payment-requests.ts';

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
beforeEach(() => tables.query('TRUNCATE payment, transaction, payment_total'));

const totals = () =>
  tables.query(
    `SELECT connection_id, method_type, currency, outcome, payments, approved_minor_units::text AS approved, refunds,
       refunded_minor_units::text AS refunded
     FROM payment_total WHERE outcome <> 'NIGHT' ORDER BY outcome, method_type`,
  );

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
  await Promise.all([writeRecentTotals(database, new Date()), writeRecentTotals(database, new Date())]);
  expect(await totals()).toEqual(first);
});

it('a payment that changes later moves from one total to another, once a day up to 35 days back', async () => {
  await merchant.call('/v1/payments', walletPayment());
  await tables.query("UPDATE payment SET created_at = created_at - interval '30 days'");
  await writeRecentTotals(database, new Date());
  expect(await totals()).toMatchObject([{ outcome: 'OPEN', payments: 1 }]);
  await tables.query("UPDATE payment SET status = 'EXPIRED'");
  await writeRecentTotals(database, new Date());
  expect(await totals()).toMatchObject([{ outcome: 'OPEN' }]);
  await writeRecentTotals(database, new Date(Date.now() + 86_400_000));
  expect(await totals()).toMatchObject([{ outcome: 'FAILED', payments: 1 }]);
});

it('the page shows a period against the time before, with the numbers of its chart in a table', async () => {
  await makePayments();
  await tables.query(
    "UPDATE payment SET created_at = created_at - interval '26 hours' WHERE status = 'DECLINED' OR status = 'READY_TO_PAY'",
  );
  await writeRecentTotals(database, new Date());
  const page = await text('/figures?span=24h');
  expect(page).toMatch(/Approved payments<\/p><p class="value">3<\/p><p class="quiet">before: 0/);
  expect(page).toMatch(/Approval rate<\/p><p class="value">100.0 %<\/p><p class="quiet">before: 0.0 %/);
  expect(page).toContain('USD 20.00');
  expect(page).toContain('USD 4.00');
  const week = await text('/figures?span=7d');
  expect(week).toMatch(/Approval rate<\/p><p class="value">75.0 %/);
  expect(week.match(/<rect/g)?.length).toBe(28 * 4);
  const empty = await text('/figures?from=2026-01-01&before=2026-02-01');
  expect(empty).toContain('Nothing in this period.');
  const wrong = await text('/figures?from=2026-01-01');
  expect(wrong).toContain('before: is required');
});

async function text(path: string): Promise<string> {
  const response = await operator.get(path);
  expect(response.status).toBe(200);
  return response.text();
}
