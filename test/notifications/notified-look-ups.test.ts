import { randomUUID } from 'node:crypto';
import { beforeEach, expect, it } from 'vitest';
import { type Payment, Payment_Status } from '#gen/payments/v1/payment_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/connector.ts';
import type { Dispute } from '#src/connectors/dispute-report.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { type ProcessDeps, processDue } from '#src/payments/check/process-notifications.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { insertNotification, MAX_SETTLED, settleServed } from '#src/store/tables/notifications.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';

const UNKNOWN: Outcome = { kind: 'unknown', detail: 'silence', providerData: undefined };

/** Every look-up, in order. */
let asked: LookUp[];
/** The result of each notification that was settled, in order. */
let results: string[];
let failures: unknown[];

onOperatedPayments({ empties: 'payment, transaction, notification' });
beforeEach(() => {
  [asked, results, failures] = [[], [], []];
});

type Says = (query: LookUp) => Promise<Outcome>;

/** A process that processes notifications; each look-up is noted. */
function processAt(
  lookUp: Says = async (query) => (await payments.provider.connection.lookUp?.(query)) ?? UNKNOWN,
) {
  const connection: ProviderConnection = {
    ...payments.provider.connection,
    lookUp: (query) => {
      asked.push(query);
      return lookUp(query);
    },
  };
  const deps: ProcessDeps = {
    ...payments.deps,
    connections: () => new Map([['ledger', connection]]),
    processed: {
      settled: (_id, result) => result === 'waiting' || results.push(result),
      failed: (error) => failures.push(error),
    },
  };
  return () => processDue(deps);
}

/** Stores notifications of one payment, as they come. */
async function notify(
  { transactions }: Payment,
  times = 1,
  told: { transactionId?: string; reference?: string; dispute?: Dispute } = {},
) {
  for (let i = 0; i < times; i++) {
    await insertNotification(payments.database, {
      connectionId: 'ledger',
      deduplicationKey: randomUUID(),
      subjects: [{ transactionId: transactions?.id, reference: undefined, dispute: undefined, ...told }],
      ...{ body: Buffer.alloc(0), query: '', headers: '{}' },
    });
  }
}

/** Lets time pass, for the database: what waits is due, and every look-up was so many seconds ago. */
async function pass(seconds: number) {
  await payments.tables.query(
    `UPDATE transaction SET notified_look_up_at = notified_look_up_at - make_interval(secs => $1)`,
    [seconds],
  );
  await payments.tables.query('UPDATE notification SET process_at = now() WHERE process_at IS NOT NULL');
}

const queued = async () =>
  (await payments.tables.query('SELECT 1 FROM notification WHERE process_at IS NOT NULL')).length;
const statusOf = async ({ id }: Payment) =>
  Payment_Status[(await getPayment(payments.deps, id, payments.caller())).status];
const pays = ({ transactions }: Payment) => payments.provider.payerPays(transactions?.id ?? '');

it.each([false, true])(
  'one look-up serves every notification of a transaction that came before it began (already final: %s)',
  async (isFinal) => {
    const payment = await payments.pay({ wallet: !isFinal });
    await notify(payment, 100);
    if (!isFinal) pays(payment);
    // Two processes at once, each with its own batch.
    await Promise.all([processAt()(), processAt()()]);
    expect(asked).toHaveLength(1);
    expect(await queued()).toBe(0);
    expect(results).toHaveLength(100);
    expect(await statusOf(payment)).toBe('SUCCEEDED');
  },
);

it('one look-up serves a storm of notifications, which no statement settles at once', async () => {
  const payment = await payments.pay();
  await notify(payment);
  await payments.tables.query(
    `INSERT INTO notification (account_id, connection_id, deduplication_key, subject, transaction_id, body, query, received_at)
     SELECT account_id, connection_id, 'storm-' || n, 0, transaction_id, body, query, received_at
     FROM notification, generate_series(1, $1) n`,
    [2 * MAX_SETTLED + 1],
  );
  await processAt()();
  expect(asked).toHaveLength(1);
  expect(await queued()).toBe(0);
  expect(results).toHaveLength(2 * MAX_SETTLED + 2);
  const commits = await payments.tables.query(
    'SELECT count(*)::integer AS n FROM notification GROUP BY xmin',
  );
  expect(Math.max(...commits.map(({ n }) => Number(n)))).toBe(MAX_SETTLED);
});

it('a notification that another process has just locked, to postpone it, is served all the same', async () => {
  const payment = await payments.pay({ wallet: true });
  await notify(payment, 2);
  pays(payment);
  const [looking, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<Outcome>()];
  const processing = processAt(() => {
    looking.resolve();
    return answered.promise;
  });
  let over: Promise<unknown> | undefined;
  await payments.database.transaction(async (run) => {
    await run('SELECT FROM notification LIMIT 1 FOR UPDATE');
    over = processing();
    await looking.promise;
    answered.resolve(UNKNOWN);
    await Promise.race([over, run('SELECT pg_sleep(0.3)')]);
  });
  await over;
  expect(await queued()).toBe(0);
});

it('a notification that another process has settled while a look-up was to serve it keeps its result', async () => {
  const payment = await payments.pay();
  const transactionId = payment.transactions?.id ?? '';
  await notify(payment, 2);
  const all = await payments.tables.query(
    'SELECT account_id, deduplication_key AS key, now()::text AS at FROM notification ORDER BY received_at',
  );
  const [one, other] = all.map(({ key }) => String(key));
  const served = {
    ...{ accountId: String(all[0]?.account_id), connectionId: 'ledger', deduplicationKey: String(one) },
    ...{ subject: 0, transactionId, reference: undefined, dispute: undefined },
  };
  const lookUp = { transactionId, begunAt: String(all[0]?.at) };
  let settling: Promise<number> | undefined;
  await payments.database.transaction(async (run) => {
    await run("UPDATE notification SET result = 'applied', process_at = NULL WHERE deduplication_key = $1", [
      other,
    ]);
    settling = settleServed(payments.database, served, lookUp);
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await expect.poll(() => payments.tables.query(waiting)).toHaveLength(1);
  });
  expect(await settling).toBe(0);
  const result = 'SELECT result FROM notification WHERE deduplication_key = $1';
  expect(await payments.tables.query(result, [other])).toEqual([{ result: 'applied' }]);
});

it('a notification that names both a transaction and a reference is about the transaction', async () => {
  const payment = await payments.pay();
  const transactionId = randomUUID();
  await payments.tables.query("UPDATE transaction SET reference = 'theirs'");
  await notify(payment, 1, { transactionId, reference: 'theirs' });
  await notify(payment, 1, { transactionId: undefined, reference: 'theirs' } as { reference: string });
  const named = await payments.tables.query(
    'SELECT transaction_id AS id FROM notification ORDER BY received_at',
  );
  expect(named).toEqual([{ id: transactionId }, { id: payment.transactions?.id }]);
});

it('a notification that comes after a look-up has begun waits, and then gets one that begins after it came', async () => {
  const payment = await payments.pay({ wallet: true });
  const [begun, told] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = processAt(async (query) => {
    const outcome = await payments.provider.connection.lookUp?.(query);
    begun.resolve();
    await told.promise;
    return outcome ?? UNKNOWN;
  });
  await notify(payment);
  const first = slow();
  await begun.promise;
  // The payer pays while the provider's answer, that they did not, is on its way.
  pays(payment);
  await notify(payment, 5);
  await processAt()();
  const [row] = await payments.tables.query(
    `SELECT max(extract(epoch FROM process_at - now()))::float8 AS due_in_s,
       min(extract(epoch FROM process_at - begun.at))::float8 AS apart_s
     FROM notification n, (SELECT max(notified_look_up_at) AS at FROM transaction) AS begun
     WHERE n.received_at > begun.at`,
  );
  expect(row?.apart_s).toBeGreaterThan(1.99);
  expect(row?.due_in_s).toBeLessThanOrEqual(2);
  told.resolve();
  await first;
  expect([asked.length, await queued(), await statusOf(payment)]).toEqual([1, 5, 'READY_TO_PAY']);
  // However long this takes on a busy machine, the time between two look-ups is not over.
  await pass(-60);
  await processAt()();
  expect(asked).toHaveLength(1);
  await pass(62);
  await processAt()();
  expect([asked.length, await queued(), await statusOf(payment)]).toEqual([2, 0, 'SUCCEEDED']);
});

it('notifications that name other references are each looked up by their own, one after the other', async () => {
  const payment = await payments.pay({ wallet: true });
  for (const reference of ['a', 'b', 'c']) await notify(payment, 3, { reference });
  for (let round = 1; round <= 3; round++) {
    await processAt()();
    expect([asked.length, await queued()]).toEqual([round, 9 - 3 * round]);
    await pass(2);
  }
  expect(asked.map(({ hint }) => hint?.reference).sort()).toEqual(['a', 'b', 'c']);
});

it('notifications of other transactions wait for nothing', async () => {
  for (let i = 0; i < 3; i++) await notify(await payments.pay({ wallet: true }));
  await processAt()();
  expect(asked).toHaveLength(3);
});

it('a dispute neither waits for a look-up, nor is settled by one', async () => {
  const payment = await payments.pay();
  await notify(payment, 2);
  await processAt()();
  await notify(payment, 1, { dispute: { stage: 'opened' } });
  await processAt()();
  expect(await statusOf(payment)).toBe('IN_DISPUTE');
  // It waits for an operation to end, and a look-up comes first.
  await notify(payment, 1, { dispute: { stage: 'lost' } });
  await payments.tables.query(
    "UPDATE notification SET process_at = now() + interval '1 minute' WHERE dispute = 'lost'",
  );
  await notify(payment);
  await payments.tables.query('UPDATE transaction SET notified_look_up_at = NULL');
  await processAt()();
  expect([asked.length, await queued()]).toEqual([2, 1]);
  await pass(0);
  await processAt()();
  expect(await statusOf(payment)).toBe('CHARGEBACK');
});

it('a notification whose look-up broke off is looked up again, and so are those that it would have served', async () => {
  const payment = await payments.pay({ wallet: true });
  await notify(payment, 3);
  pays(payment);
  await processAt(() => Promise.reject(new Error('killed')))();
  expect([failures.length, asked.length, await queued()]).toEqual([1, 1, 3]);
  await pass(2);
  await processAt()();
  expect([asked.length, await queued(), await statusOf(payment)]).toEqual([2, 0, 'SUCCEEDED']);
});

/** A payment that has expired here, and that no schedule has looked up any more. */
async function expired(): Promise<Payment> {
  const payment = await payments.pay({ wallet: true });
  await payments.tables.query("UPDATE transaction SET status = 'EXPIRED', follow_up_at = NULL");
  return payment;
}

it('a notification about a payment that is final here is tried again while the provider does not answer', async () => {
  const payment = await expired();
  await notify(payment, 3);
  await processAt(async () => UNKNOWN)();
  expect([asked.length, results, await queued()]).toEqual([1, ['unanswered'], 3]);
  pays(payment);
  await pass(2);
  await processAt()();
  expect([asked.length, await queued(), await statusOf(payment)]).toEqual([2, 0, 'SUCCEEDED']);
});

it('two look-ups that the provider leaves without an answer at once do not settle each other', async () => {
  const payment = await expired();
  await notify(payment, 2);
  const [first, second] = [Promise.withResolvers<Outcome>(), Promise.withResolvers<Outcome>()];
  const one = processAt(() => first.promise)();
  await expect.poll(() => asked.length).toBe(1);
  await pass(2);
  const another = processAt(() => second.promise)();
  await expect.poll(() => asked.length).toBe(2);
  first.resolve(UNKNOWN);
  await one;
  second.resolve(UNKNOWN);
  await another;
  expect(await queued()).toBe(2);
});
