import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database, Statement } from '#src/store/engine/database.ts';
import type { PagePosition } from '#src/store/tables/list-payments.ts';
import {
  findPossibleDuplicates,
  lookThroughPayments,
  MAX_LOOKED_AT,
  type PaymentConditions,
} from '#src/store/tables/look-through-payments.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { openTables, type Tables } from '../support/tables.ts';

const OTHER = '22222222-2222-4222-8222-222222222222';
const PAYER = '00000000-0000-4000-8000-000000000007';
const ALL: PaymentConditions = { accountId: ACCOUNT_ONE, from: undefined, before: undefined };

let test: TestDatabase;
let database: Database;
let tables: Tables;

// Two accounts with 20,000 payments each: a payment in a hundred is of one payer, and one in two hundred has a dispute.
beforeAll(async () => {
  test = await createTestDatabase();
  database = openTestDatabase(test.url, 2);
  tables = await openTables(test.url);
  await tables.query(
    `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, merchant_order_id,
       created_at, country, currency, amount_minor_units, method_type, category, card_brand, customer_id,
       payer_email_hash, payer_document_hash, card_last_four)
     SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid,
       CASE WHEN n % 2 = 0 THEN $1::uuid ELSE $2::uuid END, n::text, '', '',
       CASE WHEN n % 1000 < 2 THEN 'ERROR' ELSE 'SUCCEEDED' END, n::text::bytea, 'order-' || lpad((n / 4)::text, 5, '0'),
       timestamptz '2026-01-01Z' + n * interval '1 minute', CASE WHEN n % 10000 = 0 THEN 'BR' ELSE 'US' END, 'USD', n,
       CASE WHEN n % 500 = 0 THEN 'PIX' ELSE 'CARD' END, 'CARD', 'VISA',
       CASE WHEN n % 100 = 0 THEN $3::uuid END, CASE WHEN n % 100 = 0 THEN $3::uuid END,
       CASE WHEN n % 100 = 50 THEN $3::uuid END, '1111'
     FROM generate_series(1, 40000) n`,
    [ACCOUNT_ONE, OTHER, PAYER],
  );
  await tables.query(
    `INSERT INTO transaction (account_id, id, payment_id, type, connection_id, connection_identity, status,
       amount_minor_units, currency, capture, succeeded_at, check_at)
     SELECT account_id, id, id, 'PURCHASE',
       CASE WHEN amount_minor_units % 20000 = 0 THEN 'rare' ELSE 'common' END, 'x',
       CASE WHEN amount_minor_units % 2000 = 2 THEN 'PENDING' ELSE 'SUCCEEDED' END, 1, 'USD', true,
       CASE WHEN amount_minor_units % 2000 <> 2 THEN created_at + interval '1 day' END,
       CASE WHEN amount_minor_units % 2000 = 2 THEN now() END
     FROM payment`,
  );
  await tables.query(
    `INSERT INTO dispute (account_id, id, payment_id, connection_id, connection_identity, stage, status, reason,
       amount_minor_units, currency, sequence, opened_at, updated_at)
     SELECT account_id, id, id, 'common', 'x', 'CHARGEBACK', 'WON', 'OTHER', 1, 'USD', 1, created_at, created_at
     FROM payment WHERE amount_minor_units % 200 = 0 OR amount_minor_units % 4 = 1`,
  );
  await tables.query('VACUUM ANALYZE payment, transaction, dispute');
});
afterAll(async () => {
  await tables?.close();
  await database?.close();
  await test?.drop();
});

/** Reads every page of a search. @returns the numbers of the payments, and the pages that ended at the limit. */
async function readAll(
  conditions: Partial<PaymentConditions>,
  wanted = 20,
  matches?: (record: Uint8Array) => boolean,
) {
  const numbers: number[] = [];
  let stopped = 0;
  for (let after: PagePosition | undefined; ; ) {
    const page = await lookThroughPayments(database, { ...ALL, ...conditions }, { after, wanted, matches });
    numbers.push(...page.found.map(({ record }) => Number(Buffer.from(record).toString())));
    stopped += page.stoppedAt ? 1 : 0;
    after = page.stoppedAt ?? (page.found.length === wanted ? page.found.at(-1) : undefined);
    if (!after) return { numbers, stopped };
  }
}

const numbers = (where: (n: number) => boolean) =>
  Array.from({ length: 20_000 }, (_, i) => 40_000 - 2 * i).filter(where);

describe('a search through 20,000 payments of an account', () => {
  it.each<[string, Partial<PaymentConditions>, (n: number) => boolean, number]>([
    ['an e-mail address', { payerEmailHash: PAYER }, (n) => n % 100 === 0, 0],
    [
      'a document and a status',
      { payerDocumentHash: PAYER, status: 'ERROR' },
      (n) => n % 100 === 50 && n % 1000 < 2,
      0,
    ],
    [
      'a customer and an amount',
      { customerId: PAYER, leastMinorUnits: '39000' },
      (n) => n % 100 === 0 && n >= 39_000,
      0,
    ],
    ['an order', { merchantOrderId: 'order-00077', currency: 'USD' }, (n) => Math.trunc(n / 4) === 77, 0],
    ['a prefix', { orderPrefix: 'order-0007' }, (n) => n >= 280 && n < 320, 0],
    ['a prefix of most orders', { orderPrefix: 'order-', country: 'BR' }, (n) => n % 10_000 === 0, 2],
    ['a prefix of a pattern', { orderPrefix: 'order_' }, () => false, 0],
    [
      'a text of the record',
      { recordText: '777', leastMinorUnits: '5' },
      (n) => String(n).includes('777'),
      2,
    ],
    ['a method', { methodType: 'PIX', currency: 'USD' }, (n) => n % 500 === 0, 0],
    ['a status', { status: 'ERROR', currency: 'USD' }, (n) => n % 1000 < 2, 0],
    ['a rare country', { country: 'BR' }, (n) => n % 10_000 === 0, 2],
    ['a rare connection', { connectionId: 'rare' }, (n) => n % 20_000 === 0, 2],
    ['unknown outcomes', { unknownOutcome: 'true' }, (n) => n % 2000 === 2, 0],
    ['disputes', { disputed: 'true' }, (n) => n % 200 === 0, 0],
    ['disputes of the payer', { disputed: 'true', payerEmailHash: PAYER }, (n) => n % 200 === 0, 0],
    [
      'a period of success',
      { succeeded: '2026-01-03T00:00:00.000000Z 2026-01-03T01:00:00.000000Z' },
      (n) => n >= 1440 && n < 1500,
      0,
    ],
  ])('%s finds every payment once, newest first', async (_name, conditions, where, stopped) => {
    expect(await readAll(conditions)).toEqual({ numbers: numbers(where), stopped });
  });

  it('a test of records reads on until a page is full, and stops after 10,000 payments', async () => {
    const isRare = (record: Uint8Array) => Number(Buffer.from(record).toString()) % 8000 === 0;
    const first = await lookThroughPayments(database, ALL, { after: undefined, wanted: 20, matches: isRare });
    expect([first.found.length, first.stoppedAt?.id]).toEqual([3, '00000000-0000-4000-8000-000000020002']);
    expect(await readAll({}, 20, isRare)).toEqual({ numbers: numbers((n) => n % 8000 === 0), stopped: 2 });
    expect(MAX_LOOKED_AT).toBe(10_000);
  });
});

it('possible duplicates have the payer, order, amount and day in common, and may have taken money', async () => {
  const id = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
  await tables.query(
    `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, merchant_order_id,
       created_at, currency, amount_minor_units, payer_email_hash, payer_document_hash)
     SELECT ('00000000-0000-4000-8000-' || lpad((50000 + n)::text, 12, '0'))::uuid, $1, 'twin ' || n, '', '',
       status, '', o, timestamptz '2026-06-01Z' + hours * interval '1 hour', currency, amount, email, document
     FROM (VALUES (1, 'SUCCEEDED', 'T', 0, 'USD', 100, $2::uuid, NULL::uuid), (2, 'PENDING', 'T', 23, 'USD', 100, $2, NULL),
       (3, 'DECLINED', 'T', 1, 'USD', 100, $2, NULL), (4, 'SUCCEEDED', 'U', 1, 'USD', 100, $2, NULL),
       (5, 'SUCCEEDED', 'T', 1, 'EUR', 100, $2, NULL), (6, 'SUCCEEDED', 'T', 1, 'USD', 101, $2, NULL),
       (7, 'SUCCEEDED', 'T', 1, 'USD', 100, NULL, $2), (8, 'SUCCEEDED', 'T', 2, 'USD', 100, NULL, $2),
       (9, 'REFUNDED', 'T', 40, 'USD', 100, $2, NULL)) twin (n, status, o, hours, currency, amount, email, document)`,
    [ACCOUNT_ONE, OTHER],
  );
  const all = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => id(50_000 + n));
  const found = await findPossibleDuplicates(database, ACCOUNT_ONE, all);
  const twins = Object.fromEntries(
    [...found].map(([one, others]) => [Number(one.slice(-1)), others.map((o) => Number(o.slice(-1))).sort()]),
  );
  expect(twins).toEqual({ 1: [2], 2: [1, 9], 9: [2], 7: [8], 8: [7] });
  expect(await findPossibleDuplicates(database, OTHER, all)).toEqual(new Map());
});

// Reads PostgreSQL's own plans.
describe.skipIf(process.env.CITUS_URL)('the statements of a search', () => {
  it.each<[string, Partial<PaymentConditions>, string]>([
    ['an e-mail address', { payerEmailHash: PAYER, status: 'ERROR' }, 'payment_by_payer_email'],
    ['a document', { payerDocumentHash: PAYER }, 'payment_by_payer_document'],
    ['a customer', { customerId: PAYER }, 'payment_by_customer'],
    ['an order', { merchantOrderId: 'order-00077' }, 'payment_by_order_text'],
    ['last digits', { cardLastFour: '1111' }, 'payment_by_last_four'],
    ['a prefix', { orderPrefix: 'order-0007' }, 'payment_by_order_text'],
    ['a method', { methodType: 'PIX' }, 'payment_by_method'],
    ['cards', { methodType: 'CARD' }, 'payment_by_time'],
    ['a status', { status: 'ERROR' }, 'payment_by_status'],
    ['unknown outcomes', { unknownOutcome: 'true' }, 'transaction_open'],
    ['success', { succeeded: '2026-01-03T00:00:00Z 2026-01-03T01:00:00Z' }, 'transaction_by_success'],
    ['disputes', { disputed: 'true' }, 'dispute_of_payment'],
    ['a country and a connection', { country: 'BR', connectionId: 'x' }, 'payment_by_time'],
  ])('%s reads its index, and never a whole table', async (_name, conditions, index) => {
    const plans: string[] = [];
    const explaining = {
      query: async ({ text, isPrepared = true }: Statement, values: readonly unknown[]) => {
        await tables.query(
          `SET plan_cache_mode = ${isPrepared ? 'force_generic_plan' : 'force_custom_plan'}`,
        );
        await tables.query('DEALLOCATE ALL');
        await tables.query(`PREPARE looked AS ${text}`);
        const literals = values.map((value) =>
          value === null ? 'NULL' : Array.isArray(value) ? `'{${value.join()}}'` : `'${String(value)}'`,
        );
        const rows = await tables.query(
          `EXPLAIN (ANALYZE, COSTS off, TIMING off) EXECUTE looked (${literals})`,
        );
        plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
        return { rows: [] };
      },
    } as unknown as Database;
    await lookThroughPayments(
      explaining,
      { ...ALL, ...conditions },
      { after: undefined, wanted: 20, matches: undefined },
    );
    await findPossibleDuplicates(explaining, ACCOUNT_ONE, [PAYER]);
    expect(plans[0]).toContain(index);
    expect(plans.at(-1)).toMatch(/payment_by_payer_email.*payment_by_payer_document/s);
    for (const plan of plans) {
      expect(plan).not.toContain('Seq Scan on');
      const read = [...plan.matchAll(/rows=(\d+)/g)].map(([, rows]) => Number(rows));
      expect(Math.max(...read), plan).toBeLessThanOrEqual(1000);
    }
  });
});
