import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { type AgedRows, deleteAged } from '#src/store/engine/aged-rows.ts';
import { countOpenAttempts, countOpenLater, promptCheck, takeUnaskable } from '#src/store/engine/checks.ts';
import type { Database, Statement } from '#src/store/engine/database.ts';
import { DUE, findDueWork } from '#src/store/engine/due-work.ts';
import { readServiceFacts } from '#src/store/tables/diagnosis.ts';
import { listPayments } from '#src/store/tables/list-payments.ts';
import { takeDueNews } from '#src/store/tables/notifications.ts';
import { type OpenNews, readOpenNews, settleServed } from '#src/store/tables/open-news.ts';
import { listOldestOpenAttempts } from '#src/store/tables/open-work.ts';
import { findPaymentsByReference, searchPayments } from '#src/store/tables/search-payments.ts';
import { onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

// PostgreSQL's own plans. A distributed engine plans these statements for its nodes.
const it = test.skipIf(process.env.CITUS_URL);

onOwnDatabase({});

const STORMED = randomUUID();
/** Number of open transactions. */
const OPEN = 10_000;

beforeAll(async () => {
  // A provider has stopped responding: its newest transactions are open. All payments have the same order and
  // reference.
  await tables.query(
    `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, response,
       merchant_order_id, card_last_four, method_type)
     SELECT gen_random_uuid(), $1, 'key-' || n, '', '', CASE n WHEN 1 THEN 'IN_DISPUTE' ELSE 'SUCCEEDED' END, '', '', 'one order', '4242',
       CASE n % 2 WHEN 1 THEN 'PIX' ELSE 'CARD' END
     FROM generate_series(1, 20000) n`,
    [ACCOUNT_ONE],
  );
  await tables.query(
    `INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units,
       currency, capture, merchant_reference, reference, check_at, updated_at)
     SELECT gen_random_uuid(), id, account_id, 'silent', 'silent', 'PENDING', 100, 'USD', true, 'ours', 'theirs',
       CASE WHEN n > 10000 THEN now() - interval '1 minute' * (1 + random()) END, now() + interval '1 second'
     FROM (SELECT id, account_id, row_number() OVER () AS n FROM payment) p`,
  );
  await tables.query(
    `INSERT INTO notification (account_id, connection_id, deduplication_key, subject, transaction_id, body, query, check_at, settled_at)
     SELECT $1, 'silent', n, 0, $2, '', '', CASE WHEN n > 10000 THEN now() END, CASE WHEN n <= 10000 THEN now() END
     FROM generate_series(1, 20000) n`,
    [ACCOUNT_ONE, STORMED],
  );
  await tables.query(
    `INSERT INTO event (account_id, id, type, payment_id, sequence, record, relayed_at)
     SELECT account_id, gen_random_uuid(), '', id, 1, '', now() FROM payment`,
  );
  await tables.query(
    `INSERT INTO delivery (account_id, id, webhook_id, event_id, due_at)
     SELECT account_id, gen_random_uuid(), $1, id, NULL FROM event`,
    [randomUUID()],
  );
  await tables.query(
    `INSERT INTO replayed_call (account_id, method, idempotency_key, request_hash, request_shape)
     SELECT account_id, method, id, '', '' FROM payment, (VALUES ('CreateCustomer'), ('CreateToken')) AS calls (method)`,
  );
  await tables.query(
    `INSERT INTO one_time_token (account_id, id, card, fingerprint, expires_at) SELECT account_id, id, '', id, now() FROM payment`,
  );
  await tables.query(
    `INSERT INTO single_use (account_id, object_id, payment_id) SELECT account_id, id, id FROM payment`,
  );
  await tables.query(
    `INSERT INTO vaulted_token (account_id, id, type, connection_id, active, status)
     SELECT account_id, id, 'WALLET', 'c', false, 'EXPIRED' FROM payment`,
  );
  await tables.query(
    `INSERT INTO checkout_session (account_id, id, payment_id, expires_at) SELECT account_id, id, id, now() FROM payment`,
  );
  await tables.query('VACUUM (ANALYZE)');
});

/** Cursor values for the tables whose key is not an id. */
const KEYS: Readonly<Partial<Record<AgedRows, string[]>>> = {
  calls: ['', ''],
  token_calls: ['', ''],
  notifications: ['', '', '0'],
};

/** A statement of the store with its values. */
type Call = { readonly statement: Statement; readonly values: readonly unknown[] };

async function callOf(work: (database: Database) => Promise<unknown>): Promise<Call> {
  let call: Call | undefined;
  const query = async (statement: Statement, values: readonly unknown[] = []) => {
    call = { statement, values };
    return { rows: [] };
  };
  // The caller may fail on a result without rows.
  const run = (text: string, values: readonly unknown[]) => query({ name: '', text }, values);
  const transaction = (within: (given: typeof run) => Promise<unknown>) => within(run);
  await work({ query, transaction, roundTripMs: () => 0 } as unknown as Database).catch(() => {});
  if (!call) throw new Error('no statement was run');
  return call;
}

/** The generic plan of a statement. */
async function keptPlan({ statement }: Call): Promise<string> {
  const rows = await tables.query(`EXPLAIN (GENERIC_PLAN) ${statement.text}`);
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

/** A node of an executed plan. */
type Node = {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Node[];
};

/**
 * Executes a statement with its generic plan.
 *
 * @param tooLargeFor turns off plan steps that the planner would not choose for larger tables, such as 'sort'.
 * @returns the nodes of the plan.
 */
async function carriedOut({ statement, values }: Call, ...tooLargeFor: string[]): Promise<Node[]> {
  const settings = tooLargeFor.map((way) => `; SET enable_${way} = off`);
  await tables.query(`SET plan_cache_mode = force_generic_plan${settings.join('')}`);
  const rows = await tables.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${statement.text}`, values);
  await tables.query('RESET ALL');
  const nodes = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodes)];
  const plans = rows.flatMap((row) => row['QUERY PLAN'] as { Plan: Node }[]);
  return plans.flatMap(({ Plan }) => nodes(Plan));
}

/** Returns the largest number of rows that a node touched. */
function mostTouched(nodes: readonly Node[]): number {
  const touched = (node: Node) =>
    (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
  return Math.max(...nodes.map(touched));
}

const everything = {
  accountIds: [ACCOUNT_ONE],
  methodType: undefined,
  status: undefined,
  from: undefined,
  before: undefined,
};
const served: OpenNews = {
  ...{ accountId: ACCOUNT_ONE, connectionId: 'silent', deduplicationKey: '1', subject: 0 },
  ...{ providerPaymentId: undefined, dispute: undefined, body: Buffer.alloc(0), query: '', headers: '{}' },
  ...{
    kind: 'notification',
    receivedAt: new Date(),
    ageMs: 0,
    isTried: false,
    readAt: '2999-01-01T00:00:00Z',
  },
};

it.each<[AgedRows, string]>([
  ['one_time_tokens', 'one_time_token_age'],
  ['calls', 'replayed_call_by_age'],
  ['token_calls', 'replayed_call_of_token_by_age'],
  ['checkout_sessions', 'checkout_session_by_age'],
  ['notifications', 'notification_by_age'],
  ['deliveries', 'delivery_by_age'],
  ['events', 'event_by_age'],
  ['ended_methods', 'vaulted_token_ended_by_age'],
])('old %s are found by an index on their age, oldest first', async (what, index) => {
  const cursor = ['2020-01-01', STORMED, ...(KEYS[what] ?? [STORMED])];
  for (const after of [undefined, cursor]) {
    const plan = await keptPlan(
      await callOf((database) => deleteAged(database, what, 30, { dryRun: true, after })),
    );
    expect(plan).toContain(`Index Scan using ${index}`);
    expect(plan).not.toMatch(/-> +Sort /);
  }
});

it.each<[string, (database: Database) => Promise<unknown>]>([
  ['watch', (database) => countOpenAttempts(database, 100_000)],
  ['overview', (database) => listOldestOpenAttempts(database, 10)],
  ['doctor', readServiceFacts],
])('the %s finds open transactions without reading older ones', async (_who, work) => {
  const nodes = await carriedOut(await callOf(work), 'sort');
  const ofTransactions = nodes.filter((node) => node['Relation Name'] === 'transaction');
  expect(mostTouched(ofTransactions)).toBeLessThanOrEqual(OPEN);
});

it('the count of transactions that stay open after their call reads no attempts with unknown outcomes', async () => {
  const call = await callOf((database) => countOpenLater(database, 100_000));
  const nodes = await carriedOut(call, 'seqscan');
  expect(mostTouched(nodes.filter((node) => node['Relation Name'] === 'transaction'))).toBe(0);
});

it('the search for attempts that cannot be looked up reads only open transactions, and no payments', async () => {
  const work = (database: Database) => takeUnaskable(database, [], { dueForS: 1, leaseS: 1 });
  const nodes = await carriedOut(await callOf(work), 'seqscan', 'hashjoin', 'mergejoin');
  const read = new Set(nodes.flatMap((node) => node['Relation Name'] ?? []));
  expect(read).toEqual(new Set(['transaction']));
  expect(mostTouched(nodes)).toBeLessThanOrEqual(OPEN);
});

it('a search for due notifications reads no more rows than it takes, and none of other connections', async () => {
  const pauses = { share: 0.3, firstS: 2, longestS: 3_600 };
  const taking = (connectionId: string) =>
    callOf((database) => takeDueNews(database, connectionId, 10, pauses));
  expect(mostTouched(await carriedOut(await taking('silent')))).toBeLessThanOrEqual(10);
  expect(mostTouched(await carriedOut(await taking('another')))).toBe(0);
});

it('the search for due work reads at most a thousand rows of each queue, and none of connections without due work', async () => {
  const searching = (...ids: string[]) => callOf((database) => findDueWork(database, ids, []));
  for (const node of await carriedOut(await searching('silent', 'another'), 'seqscan'))
    expect(mostTouched([node])).toBeLessThanOrEqual(1_000);
  const others = Array.from({ length: 1_000 }, (_, i) => `other-${i}`);
  expect(mostTouched(await carriedOut(await searching(...others), 'seqscan'))).toBeLessThanOrEqual(1);
});

it('taking ten due notifications reads ten rows and the keys, even among many due ones', async () => {
  const keys = Array.from({ length: 10 }, (_, i) => String(10_001 + i));
  const given = [keys.map(() => 'silent'), keys, keys.map(() => 0)];
  const values = [ACCOUNT_ONE, ...given, 0.3, 2, 3_600];
  await tables.query('BEGIN');
  const nodes = await carriedOut({ statement: DUE.notifications.take, values }, 'seqscan');
  await tables.query('ROLLBACK');
  const ofNews = nodes.filter((node) => node['Relation Name'] === 'notification');
  expect(ofNews.length).toBeGreaterThan(1);
  expect(mostTouched(ofNews)).toBe(10);
});

it('taking a due enrollment reads one row, even among many stored methods', async () => {
  const values = [ACCOUNT_ONE, [STORMED]];
  const plan = await keptPlan({ statement: DUE.enrollments.take, values });
  expect(plan).toContain('Index Scan using vaulted_token_pkey');
  expect(plan).not.toMatch(/vaulted_token_check|Seq Scan on vaulted_token/);
});

it('a check reads at most 20 notifications about its transaction', async () => {
  const call = await callOf((database) => readOpenNews(database, ACCOUNT_ONE, STORMED));
  expect(mostTouched(await carriedOut(call))).toBeLessThanOrEqual(20);
});

it('a notification that makes a check due reads at most two notifications', async () => {
  const [row] = await tables.query('SELECT id FROM transaction LIMIT 1');
  const news = { accountId: ACCOUNT_ONE, transactionId: STORMED, deduplicationKey: '1', subject: 0 };
  await tables.query('BEGIN');
  await tables.query('UPDATE transaction SET fence = 1, id = $1 WHERE id = $2', [STORMED, row?.id]);
  const call = await callOf((database) => promptCheck(database, { ...news, kind: 'notification' }, 2));
  const nodes = await carriedOut(call, 'seqscan');
  await tables.query('ROLLBACK');
  const ofNews = nodes.filter((node) => node['Relation Name'] === 'notification');
  expect(ofNews).not.toEqual([]);
  expect(mostTouched(ofNews)).toBeLessThanOrEqual(2);
});

it('a check settles at most 1,000 notifications at once, without reading settled ones', async () => {
  const call = await callOf((database) => settleServed(database, STORMED, served, 'unchanged', true));
  expect(mostTouched(await carriedOut(call, 'seqscan', 'hashjoin', 'mergejoin'))).toBe(1_000);
});

it('a search for a reference that many payments share reads at most 1,000 transactions', async () => {
  const call = await callOf((database) => findPaymentsByReference(database, everything, ['silent'], 'ours'));
  expect(mostTouched(await carriedOut(call))).toBeLessThanOrEqual(1_000);
});

const byOrder = { accountId: ACCOUNT_ONE, merchantOrderId: 'one order', status: 'IN_DISPUTE' };
const noTime = { from: undefined, before: undefined };
const noText = { merchantOrderId: undefined, cardLastFour: undefined };
const found = { ...everything, ...noText, status: 'IN_DISPUTE' };

it.each<[string, (database: Database) => Promise<unknown>]>([
  ['list', (database) => listPayments(database, { ...byOrder, ...noTime }, undefined, 10)],
  ['search', (database) => searchPayments(database, { ...found, merchantOrderId: 'one order' }, undefined)],
  ['method search', (database) => searchPayments(database, { ...found, methodType: 'PIX' }, undefined)],
  ['card search', (database) => searchPayments(database, { ...found, cardLastFour: '4242' }, undefined)],
])(
  'the %s is planned for its values and finds a rare status by the index on statuses',
  async (_what, work) => {
    const { statement, values } = await callOf(work);
    expect(statement.isPrepared).toBe(false);
    const plan = JSON.stringify(await tables.query(`EXPLAIN ${statement.text}`, values));
    expect(plan).toContain('using payment_by_status');
  },
);

it('a search for a method without payments reads none, and one for cards reads in the order of time', async () => {
  const search = { ...everything, ...noText };
  const boleto = await callOf((database) =>
    searchPayments(database, { ...search, methodType: 'BOLETO' }, undefined),
  );
  expect(mostTouched(await carriedOut(boleto))).toBe(0);
  const cards = await callOf((database) =>
    searchPayments(database, { ...search, methodType: 'CARD' }, undefined),
  );
  const plan = JSON.stringify(await tables.query(`EXPLAIN ${cards.statement.text}`, cards.values));
  expect(plan).toMatch(/payment_by_time/);
});
