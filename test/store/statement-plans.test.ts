import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { postponeCheck, promptCheck, takeDue, takeUnaskable } from '#src/store/engine/checks.ts';
import type { Database, Run, Statement } from '#src/store/engine/database.ts';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import { finishDelivery, redeliverFailed } from '#src/store/tables/deliveries.ts';
import {
  readDisputes,
  readMovements,
  readPayments,
  readTransactions,
  sumTransactions,
} from '#src/store/tables/exported-rows.ts';
import { findNotifiedTransaction } from '#src/store/tables/notifications.ts';
import { countLatestTransactions } from '#src/store/tables/open-work.ts';
import { findOwnTransaction } from '#src/store/tables/own-transaction.ts';
import { readPaymentState } from '#src/store/tables/payment-state.ts';
import { sumRecentTotals, sumTotals } from '#src/store/tables/payment-totals.ts';
import { listRecordedPayments } from '#src/store/tables/recorded-payments.ts';
import { addUpPayments, listDeclined } from '#src/store/tables/replace-totals.ts';
import { lockResponsesOf } from '#src/store/tables/replayed-calls.ts';
import { findPaymentsById, findPaymentsByReference } from '#src/store/tables/search-payments.ts';
import { closeDeliveries } from '#src/store/tables/webhooks.ts';
import { attemptToClaim, changeOf } from '../support/claimed-rows.ts';
import { openShowing } from '../support/nested-plans.ts';
import { databaseUrl, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

// PostgreSQL's own plans. A distributed engine plans these statements for its nodes.
const it = test.skipIf(process.env.CITUS_URL);

onOwnDatabase({ empties: 'vaulted_token' });

/** Collects the statements that the store's functions run. Each statement returns one row. */
const statements = new Map<string, Statement>();
const collector = {
  query: async (statement: Statement) => {
    statements.set(statement.name, statement);
    return { rows: [{ accountId: ACCOUNT_ONE, id: ACCOUNT_ONE, attemptId: ACCOUNT_ONE }] };
  },
  roundTripMs: () => 0,
} as unknown as Database;

beforeAll(async () => {
  // The data is like that after a normal day: many transactions, hardly any of them due.
  await tables.query(
    `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record)
     SELECT gen_random_uuid(), $1, 'key-' || n, '', '', 'SUCCEEDED', '' FROM generate_series(1, 5000) n`,
    [ACCOUNT_ONE],
  );
  await tables.query(
    `INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units,
       currency, capture)
     SELECT gen_random_uuid(), id, account_id, 'scripted', 'scripted', 'SUCCEEDED', 100, 'USD', true FROM payment`,
  );
  await tables.query(
    `INSERT INTO delivery (account_id, id, webhook_id, event_id, status, due_at)
     SELECT account_id, gen_random_uuid(), $1, id, 'DELIVERED', NULL FROM payment`,
    [randomUUID()],
  );
  await tables.query('VACUUM (ANALYZE) payment, transaction, delivery');
  const { claim } = attemptToClaim();
  const { accountId, transactionId } = claim;
  await postponeCheck(collector, { accountId, transactionId, fence: 1 }, 10);
  const news = { accountId, transactionId, deduplicationKey: 'one', subject: 0, kind: 'return' } as const;
  await promptCheck(collector, news, 2);
  await readPaymentState(collector, accountId, claim.paymentId);
  for (const by of [{ transactionId: claim.transactionId }, { providerPaymentId: 'one' }]) {
    const notification = {
      connectionId: 'scripted',
      transactionId: undefined,
      providerPaymentId: undefined,
      ...by,
    };
    await findNotifiedTransaction(collector, notification);
  }
  const connection = { connectionId: 'scripted', identity: 'scripted' };
  await takeDue(collector, connection, { limit: 10, leaseS: 10 });
  await takeUnaskable(collector, [connection], { dueForS: 10, leaseS: 10 });
  await findOwnTransaction(collector, claim.paymentId);
  const period = { accountId, from: '2026-01-01T00:00:00Z', until: '2026-02-01T00:00:00Z' };
  await readMovements(collector, period, undefined);
  await readTransactions(collector, accountId, [claim.paymentId]);
  await readPayments(collector, period, undefined);
  await readDisputes(collector, period, undefined);
  await sumTransactions(collector, accountId, [claim.paymentId]);
  await countLatestTransactions(collector);
  const hours = { accountId, from: new Date(0), before: new Date(1) };
  const position = { createdAt: period.from, id: accountId };
  await addUpPayments(collector, hours, position);
  for await (const _ of listDeclined(collector, hours));
  const figures = { starts: [hours.from], before: hours.before, past: hours };
  for (const account of [undefined, accountId]) {
    await sumTotals(collector, figures, account);
    await sumRecentTotals(collector, figures, account);
  }
  await findPaymentsById(collector, claim.paymentId);
  const all = {
    accountIds: [ACCOUNT_ONE],
    methodType: undefined,
    status: undefined,
    from: undefined,
    before: undefined,
  };
  await listRecordedPayments(collector, { accountId: undefined, since: undefined }, undefined);
  await listRecordedPayments(collector, { accountId: ACCOUNT_ONE, since: undefined }, undefined);
  await findPaymentsByReference(collector, all, ['scripted'], 'one');
  const result = { responseStatus: 200, error: undefined, retryInS: undefined };
  const delivery = { id: claim.paymentId, attempts: 1, leasedUntil: '2026-01-31T09:08:07.000001Z' };
  await finishDelivery(collector, { accountId: ACCOUNT_ONE, url: '' }, delivery, result);
  const webhook = { accountId: ACCOUNT_ONE, webhookId: claim.paymentId };
  await redeliverFailed(collector, webhook, new Date(0), 10);
  await closeDeliveries(collector, webhook);
});

/** Plans that read more transactions than needed. */
const AMONG_MANY = /transaction_check|transaction_open|Seq Scan/;

const planOf = async (name: string) => {
  const rows = await tables.query(`EXPLAIN (GENERIC_PLAN) ${statements.get(name)?.text}`);
  return rows.map((row) => row['QUERY PLAN']).join('\n');
};

it.each([
  'postpone_check',
  'prompt_transactions',
  'take_due_transactions',
  'find_notified_transaction',
  'find_transaction_of_provider_payment',
])(
  'the statement %s finds its transaction by an index on ids, without reading all due transactions',
  async (name) => {
    const plan = await planOf(name);
    expect(plan).toMatch(/transaction_by_id|transaction_pkey|transaction_provider_payment_id/);
    expect(plan).not.toMatch(AMONG_MANY);
  },
);

it.each(['find_due_transactions', 'find_unaskable_attempts'])(
  'the statement %s reads due transactions by an index',
  async (name) => {
    const plan = await planOf(name);
    expect(plan).toMatch(/transaction_check|transaction_open/);
    expect(plan).not.toMatch(/Seq Scan/);
  },
);

it('the statements that read stored payments to route them again find them by indexes on ids', async () => {
  expect(await planOf('list_newest_attempts')).toContain('transaction_by_id');
  expect(await planOf('list_newest_attempts_of_account')).toMatch(/transaction_by_id|transaction_pkey/);
  expect(await planOf('read_recorded_payments')).toContain('payment_pkey');
});

it.each(['read_payment_state', 'find_own_transaction', 'read_found_payments'])(
  'the statement %s finds its payments by account and id',
  async (name) => {
    const plan = await planOf(name);
    expect(plan).toContain('payment_pkey');
    expect(plan).not.toContain('Seq Scan on payment');
  },
);

it('the statements that search references and ids find transactions by indexes', async () => {
  expect(await planOf('find_payments_by_merchant_reference')).toContain('transaction_by_merchant_reference');
  expect(await planOf('find_payments_by_provider_payment')).toContain('transaction_provider_payment_id');
  const plan = await planOf('find_payment_of_id');
  expect(plan).toContain('transaction_payment');
  expect(plan).not.toContain('Seq Scan');
});

it('the statement read_payment_state finds transactions by an index on their payment', async () => {
  expect(await planOf('read_payment_state')).toContain('transaction_payment');
});

it('the statements of exports read a page by indexes, whatever the size of the tables', async () => {
  for (const [name, indexes] of [
    ['count_latest_transactions', /transaction_by_id/],
    ['export_movements', /transaction_by_success[\s\S]*movement_correction_by_time[\s\S]*payment_pkey/],
    ['export_transactions', /transaction_payment/],
    ['export_payments', /payment_by_time/],
    ['export_disputes', /dispute_by_time[\s\S]*payment_pkey/],
    ['export_payment_sums', /transaction_payment/],
  ] as const) {
    const plan = await planOf(name);
    expect(plan).toMatch(indexes);
    expect(plan).not.toContain('Seq Scan on payment');
    expect(plan).not.toContain('Seq Scan on transaction');
  }
});

it('the totals of the figures are added up from payments by their time, and read by their hours', async () => {
  for (const [name, indexes] of [
    ['end_totals_part', /payment_by_time/],
    ['add_up_totals', /payment_by_time[\s\S]*transaction_payment|transaction_payment[\s\S]*payment_by_time/],
    ['list_declined_payments', /payment_by_status/],
    ['sum_payment_totals', /payment_total_by_hour|payment_total_pkey/],
    ['sum_payment_totals_of_account', /payment_total_pkey/],
    ['sum_recent_payment_totals_of_account', /recent_payment_total_pkey/],
    ['sum_recent_payment_totals', /recent_payment_total_by_hour|recent_payment_total_pkey/],
  ] as const) {
    const plan = await planOf(name);
    expect(plan).toMatch(indexes);
    expect(plan).not.toContain('Seq Scan');
  }
});

it('a change, alone or with others, finds its rows by id with a generic plan', async () => {
  const showing = await openShowing(databaseUrl());
  const [row] = await tables.query('SELECT payment_id, id FROM transaction LIMIT 1');
  const changed = { paymentId: String(row?.payment_id), transactionId: String(row?.id) };
  const other = { id: changed.transactionId, checkInS: 1 };
  await writeChange(showing.database, changeOf(changed, 'PLAIN'));
  await writeChange(showing.database, changeOf(changed, 'WITH MORE', { version: 1, other }));
  await writeChange(showing.database, changeOf(changed, 'OUTDATED', { other }));
  await showing.close();
  const plans = showing.nested
    .map(({ plan }) => JSON.stringify(plan))
    .filter((plan) => /"(payment|transaction)"/.test(plan));
  expect(plans.length).toBeGreaterThanOrEqual(5);
  for (const plan of plans) {
    expect(plan).toMatch(/payment_pkey|transaction_pkey|transaction_by_id/);
    expect(plan).not.toMatch(AMONG_MANY);
    // A generic plan contains parameters instead of values.
    expect(plan).not.toContain(changed.paymentId);
  }
});

it('the statement finish_delivery finds its delivery by id, without reading all due deliveries', async () => {
  const plan = await planOf('finish_delivery');
  expect(plan).toContain('delivery_pkey');
  expect(plan).not.toMatch(/delivery_due|Seq Scan on delivery/);
});

it.each([
  ['redeliver_failed', 'delivery_failed'],
  ['close_deliveries_of_no_webhook', 'delivery_due'],
])('the statement %s finds the deliveries of its webhook by the index %s', async (name, index) => {
  const plan = await planOf(name);
  expect(plan).toContain(index);
  expect(plan).not.toMatch(/delivery_of_webhook|Seq Scan on delivery/);
});

it('the responses that contain a customer are found by an index, even among many stored calls', async () => {
  await tables.query(
    `INSERT INTO replayed_call (account_id, method, idempotency_key, request_hash, request_shape, customer_id)
     SELECT account_id, 'CreateCustomer', id, '', '', id FROM payment`,
  );
  await tables.query('VACUUM (ANALYZE) replayed_call');
  let statement = '';
  const run = async (text: string) => {
    statement = text;
    return { rows: [] };
  };
  await lockResponsesOf(run as unknown as Run, ACCOUNT_ONE, randomUUID());
  const plan = await tables.query(`EXPLAIN (GENERIC_PLAN) ${statement}`);
  expect(JSON.stringify(plan)).toContain('Index Scan using replayed_call_of_customer');
});
