import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import type { Database, Run, Statement } from '#src/store/engine/database.ts';
import {
  findOwnTransaction,
  postponeFollowUp,
  restoreFollowUp,
  takeDueFollowUps,
  takeFollowUp,
} from '#src/store/engine/follow-ups.ts';
import { finishGrouped } from '#src/store/engine/grouped-payments.ts';
import {
  postponeLookUp,
  readOpenAttempt,
  takeDueAttempts,
  takeOpenAttempt,
  takeUnansweredAttempts,
} from '#src/store/engine/look-ups.ts';
import { beginNextAttempt } from '#src/store/engine/next-attempt.ts';
import { type Finish, finishPayment } from '#src/store/engine/payments.ts';
import { finishDelivery, redeliverFailed } from '#src/store/tables/deliveries.ts';
import { beginNotifiedLookUp, findNotifiedTransaction } from '#src/store/tables/notifications.ts';
import { lockResponsesOf } from '#src/store/tables/replayed-calls.ts';
import { findPaymentsById, findPaymentsByReference } from '#src/store/tables/search-payments.ts';
import { closeDeliveries } from '#src/store/tables/webhooks.ts';
import { attemptToClaim } from '../support/open-attempts.ts';
import { onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'vaulted_token' });

/** Collects the statements that the store would run. */
const statements = new Map<string, Statement>();
const collector = {
  query: async (statement: Statement) => {
    statements.set(statement.name, statement);
    return { rows: [] };
  },
} as unknown as Database;

beforeAll(async () => {
  // As after a day without trouble: many transactions, and hardly any due.
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
  const finish: Finish = {
    ...{ ...claim, status: 'SUCCEEDED', transactionStatus: 'SUCCEEDED', answer: new Uint8Array(), fence: 0 },
    ...{ lookUpInS: undefined, event: 'payment.purchase', vault: undefined },
  };
  const due = { transactionId: claim.transactionId, fence: 1 };
  await Promise.all([1, 2, 3].map(() => finishGrouped(collector, finish)));
  await finishPayment(collector, { ...finish, vault: { token: claim.paymentId, fate: 'drop' } });
  await beginNextAttempt(collector, { ...claim, last: claim, next: claim });
  await takeOpenAttempt(collector, claim.transactionId, 10);
  await readOpenAttempt(collector, claim.transactionId);
  await postponeLookUp(collector, due, 10);
  await takeFollowUp(collector, claim.transactionId, 10);
  await postponeFollowUp(collector, due, 10);
  await restoreFollowUp(collector, { ...due, scheduledAt: '2026-01-31T09:08:07.000001Z' });
  for (const by of [{ transactionId: claim.transactionId }, { reference: 'one' }]) {
    const notification = { connectionId: 'scripted', transactionId: undefined, reference: undefined, ...by };
    await findNotifiedTransaction(collector, notification);
    await beginNotifiedLookUp(collector, notification, 2);
  }
  await takeDueAttempts(collector, []);
  await takeDueFollowUps(collector, []);
  await takeUnansweredAttempts(collector, [], { dueForS: 10, leaseS: 10 });
  await findOwnTransaction(collector, claim.paymentId);
  await findPaymentsById(collector, claim.paymentId);
  const all = { accountIds: [ACCOUNT_ONE], status: undefined, from: undefined, before: undefined };
  await findPaymentsByReference(collector, all, ['scripted'], 'one');
  const result = { responseStatus: 200, error: undefined, retryInS: undefined };
  const delivery = { id: claim.paymentId, attempts: 1, leasedUntil: '2026-01-31T09:08:07.000001Z' };
  await finishDelivery(collector, { accountId: ACCOUNT_ONE, url: '' }, delivery, result);
  const webhook = { accountId: ACCOUNT_ONE, webhookId: claim.paymentId };
  await redeliverFailed(collector, webhook, new Date(0), 10);
  await closeDeliveries(collector, webhook);
});

const planOf = async (name: string) => {
  const rows = await tables.query(`EXPLAIN (GENERIC_PLAN) ${statements.get(name)?.text}`);
  return rows.map((row) => row['QUERY PLAN']).join('\n');
};

it.each([
  'finish',
  'finish_many',
  'finish_dropping_card',
  'begin_next_attempt',
  'take_open_attempt',
  'read_open_attempt',
  'postpone_look_up',
  'take_follow_up',
  'postpone_follow_up',
  'restore_follow_up',
  'find_notified_transaction',
  'find_referred_transaction',
  'begin_notified_look_up',
  'begin_referred_look_up',
])('the statement %s finds its transaction by its id, not among all that are due', async (name) => {
  const plan = await planOf(name);
  expect(plan).toMatch(/transaction_by_id|transaction_pkey|transaction_reference/);
  expect(plan).not.toMatch(
    /transaction_look_up|transaction_follow_up|transaction_open_follow_up|Seq Scan on (transaction|payment)/,
  );
});

it.each([
  'take_due_attempts',
  'take_due_follow_ups',
  'take_unanswered_attempts',
  'take_open_attempt',
  'read_open_attempt',
  'find_own_transaction',
  'find_payments_by_id',
  'find_payments_by_reference',
])('the statement %s finds its payments by their account and id', async (name) => {
  const plan = await planOf(name);
  expect(plan).toContain('payment_pkey');
  expect(plan).not.toContain('Seq Scan on payment');
});

it('the statement finish_delivery finds its delivery by its id, not among all that are due', async () => {
  const plan = await planOf('finish_delivery');
  expect(plan).toContain('delivery_pkey');
  expect(plan).not.toMatch(/delivery_due|Seq Scan on delivery/);
});

it.each([
  ['redeliver_failed', 'delivery_failed'],
  ['close_deliveries_of_no_webhook', 'delivery_due'],
])('the statement %s reads no delivery of its webhook that is done with, by %s', async (name, index) => {
  const plan = await planOf(name);
  expect(plan).toContain(index);
  expect(plan).not.toMatch(/delivery_of_webhook|Seq Scan on delivery/);
});

it('the responses that tell of a customer are found by their index, however many calls are kept', async () => {
  await tables.query(
    `INSERT INTO replayed_call (account_id, method, idempotency_key, request_hash, request_shape, response)
     SELECT account_id, 'CreateCustomer', id, '', '', '\x0a24' || id::text::bytea FROM payment`,
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
