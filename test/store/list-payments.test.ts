import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '#src/store/engine/database.ts';
import { listPayments, type PagePosition, type PaymentFilter } from '#src/store/tables/list-payments.ts';
import { claimAttempt } from '../support/claimed-rows.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { openTables, type Tables } from '../support/tables.ts';

const ALL: PaymentFilter = {
  accountId: ACCOUNT_ONE,
  merchantOrderId: undefined,
  status: undefined,
  from: undefined,
  before: undefined,
};

let test: TestDatabase;
let database: Database;
let tables: Tables;

beforeAll(async () => {
  test = await createTestDatabase();
  database = openTestDatabase(test.url, 8);
  tables = await openTables(test.url);
});
afterAll(async () => {
  await tables.close();
  await database.close();
  await test.drop();
});

/** Reads every page of a list and returns the ids. @param between runs after each page. */
async function readAll(filter: PaymentFilter, size: number, between = async () => {}): Promise<string[]> {
  const ids: string[] = [];
  let after: PagePosition | undefined;
  for (;;) {
    const page = await listPayments(database, filter, after, size);
    ids.push(...page.map(({ id }) => id));
    after = page.at(-1);
    if (!after) return ids;
    await between();
  }
}

describe('pages of payments', () => {
  it('pages of payments contain each payment once, newest first, while others are inserted and changed', async () => {
    await Promise.all(Array.from({ length: 60 }, () => claimAttempt(database)));
    // Payments with the same microsecond are ordered by their ids.
    await tables.query(
      `UPDATE payment SET created_at = (SELECT min(created_at) FROM payment WHERE account_id = $1)
       WHERE account_id = $1 AND hashtext(id::text) > 0`,
      [ACCOUNT_ONE],
    );
    const before = await tables.query('SELECT id FROM payment ORDER BY created_at DESC, id DESC');
    let inserting = true;
    const inserted = [0, 1, 2].map(async () => {
      for (let count = 0; ; count++) {
        await claimAttempt(database);
        if (!inserting) return count + 1;
      }
    });
    let pages = 0;
    const listed = await readAll(ALL, 7, async () => {
      pages += 1;
      // Other payments after each page.
      const some = "UPDATE payment SET status = 'SUCCEEDED' WHERE hashtextextended(id::text, $1) % 3 = 0";
      await tables.query(some, [pages]);
    });
    inserting = false;
    const counts = await Promise.all(inserted);
    expect(Math.min(...counts)).toBeGreaterThan(0);
    const known = new Set(before.map(({ id }) => id));
    expect(listed.filter((id) => known.has(id))).toEqual(before.map(({ id }) => id));
    expect(new Set(listed).size).toBe(listed.length);
  });
});

describe('lists of 40,000 payments of two accounts', () => {
  const OTHER = '22222222-2222-4222-8222-222222222222';

  beforeAll(async () => {
    await tables.query('TRUNCATE payment');
    await tables.query(
      `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, merchant_order_id, created_at)
       SELECT gen_random_uuid(), CASE WHEN n % 2 = 0 THEN $1::uuid ELSE $2::uuid END, n::text, '', '',
         CASE WHEN n % 1000 < 2 THEN 'ERROR' ELSE 'SUCCEEDED' END, repeat('x', 500)::bytea,
         'order-' || n / 4, timestamptz '2026-01-01Z' + n * interval '1 minute'
       FROM generate_series(1, 40000) n`,
      [ACCOUNT_ONE, OTHER],
    );
    await tables.query('VACUUM ANALYZE payment');
  });

  const from = '2026-01-05T00:00:00.000000Z';
  // Reads PostgreSQL's own plans.
  it.skipIf(process.env.CITUS_URL).each<[string, Partial<PaymentFilter>, string]>([
    ['no filter', {}, 'payment_by_time'],
    ['a time', { from, before: '2026-01-06T00:00:00.000000Z' }, 'payment_by_time'],
    ['an order', { merchantOrderId: 'order-77' }, 'payment_by_order_text'],
    ['a rare status', { status: 'ERROR' }, 'payment_by_status'],
    // Either index reads one page.
    ['a status that nearly all payments have', { status: 'SUCCEEDED' }, 'payment_by_(status|time)'],
    ['a status that no payment has', { status: 'CHARGEBACK' }, 'payment_by_status'],
    ['a status and a time', { status: 'ERROR', from }, 'payment_by_status'],
    ['an order and a status', { merchantOrderId: 'order-77', status: 'ERROR' }, 'payment_by_order_text'],
  ])('a list with %s reads only its own index', async (_name, filter, index) => {
    const after = { createdAt: '2026-01-20T00:00:00.000000Z', id: ACCOUNT_ONE };
    for (const position of [undefined, after]) {
      for (const mode of ['force_custom_plan', 'force_generic_plan']) {
        const plan = await planOf({ ...ALL, ...filter }, position, mode);
        const scans = scansOf(plan);
        expect(scans.map((scan) => scan['Index Name']).join(), mode).toMatch(new RegExp(`^${index}$`));
        const { 'Actual Rows': rows, 'Rows Removed by Filter': removed = 0 } = scans[0] as Plan;
        expect(rows + removed, mode).toBeLessThanOrEqual(101);
        expect(JSON.stringify(plan)).not.toContain('"Sort');
      }
    }
  });

  type Plan = {
    readonly Plans?: readonly Plan[];
    readonly 'Node Type': string;
    readonly 'Index Name'?: string;
    readonly 'Actual Rows': number;
    readonly 'Rows Removed by Filter'?: number;
  };

  /** Returns PostgreSQL's plan for the statement of a list. */
  async function planOf(filter: PaymentFilter, after: PagePosition | undefined, mode: string): Promise<Plan> {
    let plan: Plan | undefined;
    await tables.query(`SET plan_cache_mode = ${mode}`);
    const explaining = {
      query: async ({ text }: { text: string }, values: readonly unknown[]) => {
        await tables.query('DEALLOCATE ALL');
        await tables.query(`PREPARE list AS ${text}`);
        const literals = values.map((value) => `'${String(value)}'`).join();
        const [row] = await tables.query(`EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE list (${literals})`);
        plan = (row as { 'QUERY PLAN': [{ Plan: Plan }] })['QUERY PLAN'][0].Plan;
        return { rows: [] };
      },
    } as unknown as Database;
    await listPayments(explaining, filter, after, 21);
    if (!plan) throw new Error('listPayments ran no statement');
    return plan;
  }

  function scansOf(plan: Plan): Plan[] {
    const own = plan['Node Type'].includes('Scan') && plan['Node Type'] !== 'Subquery Scan' ? [plan] : [];
    return [...own, ...(plan.Plans ?? []).flatMap(scansOf)];
  }
});
