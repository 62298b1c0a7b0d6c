import { beforeEach, expect, it } from 'vitest';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { MAX_SETTLED, readOpenNews, settleServed } from '#src/store/tables/open-news.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';
import { UNKNOWN } from '../support/outcomes.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { earlier, lockWaits } from '../support/tables.ts';
import {
  asked,
  checkAt,
  dueInS,
  failures,
  LEASE_S,
  notify,
  pass,
  pays,
  queued,
  results,
  saysWhatIsSo,
  startOver,
  statusOf,
} from './notified-payments.ts';

onOperatedPayments({ empties: 'payment, transaction, notification' });
beforeEach(startOver);

it.each([false, true])(
  'one look-up settles all notifications of a transaction that came before the look-up (already final: %s)',
  async (isFinal) => {
    const payment = await payments.pay({ wallet: !isFinal });
    await notify(payment, 100);
    if (!isFinal) pays(payment);
    // Two processes check at once.
    await Promise.all([checkAt()(), checkAt()()]);
    expect(asked).toHaveLength(1);
    expect(await queued()).toBe(0);
    expect(results).toHaveLength(100);
    expect(await statusOf(payment)).toBe('SUCCEEDED');
  },
);

it('one look-up settles a burst of notifications, in statements of at most 1,000 each', async () => {
  const payment = await payments.pay();
  await notify(payment);
  await payments.tables.query(
    `INSERT INTO notification (account_id, connection_id, deduplication_key, subject, transaction_id, body, query, received_at, check_at)
     SELECT account_id, connection_id, 'storm-' || n, 0, transaction_id, body, query, received_at, NULL
     FROM notification, generate_series(1, $1) n`,
    [2 * MAX_SETTLED + 1],
  );
  await checkAt()();
  expect(asked).toHaveLength(1);
  expect(await queued()).toBe(0);
  expect(results).toHaveLength(2 * MAX_SETTLED + 2);
  const commits = await payments.tables.query(
    'SELECT count(*)::integer AS n FROM notification GROUP BY xmin',
  );
  expect(Math.max(...commits.map(({ n }) => Number(n)))).toBe(MAX_SETTLED);
});

it('a notification that another process has locked is still settled', async () => {
  const payment = await payments.pay({ wallet: true });
  await notify(payment, 2);
  pays(payment);
  const [looking, answers] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const check = checkAt(async (query) => {
    looking.resolve();
    await answers.promise;
    return saysWhatIsSo(query);
  });
  let over: Promise<unknown> | undefined;
  await payments.database.transaction(async (run) => {
    await run('SELECT 1 FROM notification WHERE account_id = $1 LIMIT 1 FOR UPDATE', [ACCOUNT_ONE]);
    over = check();
    await looking.promise;
    answers.resolve();
    await Promise.race([over, run('SELECT pg_sleep(0.3)')]);
  });
  await over;
  expect(await queued()).toBe(0);
});

it('a notification that another process settles during a look-up keeps its result', async () => {
  const payment = await payments.pay();
  const transactionId = payment.transactions?.id ?? '';
  await notify(payment, 2);
  const [one, other] = await readOpenNews(payments.database, ACCOUNT_ONE, transactionId);
  if (!one || !other) throw new Error('the notifications are not stored');
  let settling: Promise<number> | undefined;
  await payments.database.transaction(async (run) => {
    const settle =
      "UPDATE notification SET result = 'applied', settled_at = now() WHERE deduplication_key = $1";
    await run(settle, [other.deduplicationKey]);
    settling = settleServed(payments.database, transactionId, one, 'unchanged', true);
    await expect.poll(() => lockWaits(payments.tables)).toBe(1);
  });
  expect(await settling).toBe(1);
  const result = 'SELECT result FROM notification WHERE deduplication_key = $1';
  expect(await payments.tables.query(result, [one.deduplicationKey])).toEqual([{ result: 'unchanged' }]);
  expect(await payments.tables.query(result, [other.deduplicationKey])).toEqual([{ result: 'applied' }]);
});

it('a notification that comes during a look-up waits for another look-up', async () => {
  const payment = await payments.pay({ wallet: true });
  const [begun, told] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = checkAt(async (query) => {
    const outcome = await saysWhatIsSo(query);
    begun.resolve();
    await told.promise;
    return outcome;
  });
  await notify(payment);
  const first = slow();
  await begun.promise;
  // The payer pays after the provider has answered that the payment is unpaid.
  pays(payment);
  await notify(payment, 5);
  expect(await checkAt()()).toBe(0);
  const [row] = await payments.tables.query(
    `SELECT extract(epoch FROM t.check_at - n.received_at)::float8 AS apart_s
     FROM transaction t JOIN notification n USING (account_id) ORDER BY n.received_at OFFSET 1 LIMIT 1`,
  );
  // Two look-ups that notifications prompt are at least two seconds apart.
  expect(row?.apart_s).toBeGreaterThan(1.99);
  expect(await dueInS(payment)).toBeLessThanOrEqual(2);
  told.resolve();
  await first;
  expect([asked.length, await queued(), await statusOf(payment)]).toEqual([1, 5, 'READY_TO_PAY']);
  expect(await dueInS(payment)).toBeLessThanOrEqual(2);
  await pass(2);
  await checkAt()();
  expect([asked.length, await queued(), await statusOf(payment)]).toEqual([2, 0, 'SUCCEEDED']);
});

it('a notification that comes after a settled one is looked up two seconds after that one was settled', async () => {
  const payment = await payments.pay({ wallet: true });
  await notify(payment);
  await checkAt()();
  await notify(payment, 3);
  // The pause between two look-ups has not ended, however busy the machine is.
  await pass(-60);
  expect(await checkAt()()).toBe(0);
  await pass(62);
  await checkAt()();
  expect([asked.length, await queued()]).toEqual([2, 0]);
});

it('each provider id that notifications name gets its own look-up, one after the other', async () => {
  const payment = await payments.pay({ wallet: true });
  for (const providerPaymentId of ['a', 'b', 'c']) await notify(payment, 3, { providerPaymentId });
  for (let round = 1; round <= 3; round++) {
    await checkAt()();
    expect([asked.length, await queued()]).toEqual([round, 9 - 3 * round]);
    expect(await dueInS(payment)).toBeLessThanOrEqual(round < 3 ? 2 : 60);
    await pass(2);
  }
  expect(asked.map(({ hint }) => hint?.providerPaymentId).sort()).toEqual(['a', 'b', 'c']);
});

it('a notification whose look-up the provider does not answer delays no other notification', async () => {
  const payment = await payments.pay({ wallet: true });
  await notify(payment, 1, { providerPaymentId: 'silent' });
  await notify(payment, 1, { providerPaymentId: 'known' });
  for (let round = 1; round <= 3; round++) {
    await checkAt(async (query) =>
      query.hint?.providerPaymentId === 'silent' ? UNKNOWN : saysWhatIsSo(query),
    )();
    await pass(2);
  }
  expect(asked.map(({ hint }) => hint?.providerPaymentId)).toContain('known');
  expect(await queued()).toBe(1);
});

it('a second provider id is looked up within two seconds, however old its notification is', async () => {
  const payment = await payments.pay({ wallet: true });
  for (const providerPaymentId of ['one', 'another']) await notify(payment, 1, { providerPaymentId });
  await payments.tables.query(`UPDATE notification SET received_at = ${earlier('received_at', '1 hour')}`);
  await checkAt()();
  expect([asked.length, results, await queued()]).toEqual([1, ['unchanged'], 1]);
  const [row] = await payments.tables.query(
    'SELECT extract(epoch FROM check_at - now())::float8 AS due_in_s FROM transaction',
  );
  expect(row?.due_in_s).toBeGreaterThan(0);
  expect(row?.due_in_s).toBeLessThanOrEqual(2);
  await payments.makeDue();
  await checkAt()();
  expect(new Set(asked.map(({ hint }) => hint?.providerPaymentId))).toEqual(new Set(['one', 'another']));
  expect(await queued()).toBe(0);
});

it('notifications of different transactions do not wait for each other', async () => {
  for (let i = 0; i < 3; i++) await notify(await payments.pay({ wallet: true }));
  await checkAt()();
  expect(asked).toHaveLength(3);
});

it('a look-up does not settle a notification of a dispute', async () => {
  const payment = await payments.pay();
  await notify(payment, 2);
  await notify(payment, 1, { dispute: { stage: 'opened' } });
  await checkAt()();
  expect([asked.length, await queued(), await statusOf(payment)]).toEqual([1, 0, 'IN_DISPUTE']);
  // The dispute waits for an open operation to end, and a look-up comes first.
  await payments.tables.query('UPDATE payment SET open_operation = $1', [payment.transactions?.id]);
  await notify(payment, 1, { dispute: { stage: 'lost' } });
  await notify(payment);
  await pass(2);
  await checkAt()();
  expect([asked.length, await queued(), await statusOf(payment)]).toEqual([2, 1, 'IN_DISPUTE']);
  await payments.tables.query('UPDATE payment SET open_operation = NULL');
  await pass(2);
  await checkAt()();
  expect([await queued(), await statusOf(payment)]).toEqual([0, 'CHARGEBACK']);
});

it('notifications whose look-up failed are looked up again after the lease', async () => {
  const payment = await payments.pay({ wallet: true });
  await notify(payment, 3);
  pays(payment);
  await checkAt(() => Promise.reject(new Error('killed')))();
  expect([failures.length, asked.length, await queued()]).toEqual([1, 1, 3]);
  await pass(LEASE_S);
  await checkAt()();
  expect([asked.length, await queued(), await statusOf(payment)]).toEqual([2, 0, 'SUCCEEDED']);
});

/** Makes a payment that has expired here and that no schedule looks up. */
async function expired(): Promise<Payment> {
  const payment = await payments.pay({ wallet: true });
  await payments.tables.query(
    "UPDATE transaction SET status = 'EXPIRED', check_at = NULL, awaits_payer = false",
  );
  return payment;
}

it('a notification about a final payment is retried while the provider does not answer', async () => {
  const payment = await expired();
  await notify(payment, 3);
  await checkAt(async () => UNKNOWN)();
  expect([asked.length, results, await queued()]).toEqual([1, [], 3]);
  expect(await dueInS(payment)).toBeLessThanOrEqual(2);
  pays(payment);
  await pass(2);
  await checkAt()();
  expect([asked.length, await queued(), await statusOf(payment)]).toEqual([2, 0, 'SUCCEEDED']);
});

it('a notification is given up if the provider has left its look-ups unanswered for two days', async () => {
  const payment = await expired();
  await notify(payment, 3);
  await pass(2 * 86_400 - 60);
  await checkAt(async () => UNKNOWN)();
  expect([results, await queued()]).toEqual([[], 3]);
  await pass(3_600);
  await checkAt(async () => UNKNOWN)();
  expect([results, await queued()]).toEqual([['unanswered', 'unanswered', 'unanswered'], 0]);
  expect(await dueInS(payment)).toBeNull();
});

it("two concurrent look-ups without an answer do not settle each other's notifications", async () => {
  const payment = await expired();
  await notify(payment);
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const one = checkAt(() => first.promise.then(() => UNKNOWN))();
  await expect.poll(() => asked.length).toBe(1);
  await notify(payment);
  await pass(2);
  const another = checkAt(() => second.promise.then(() => UNKNOWN))();
  await expect.poll(() => asked.length).toBe(2);
  first.resolve();
  await one;
  second.resolve();
  await another;
  expect(await queued()).toBe(2);
});
