import { beforeEach, expect, it } from 'vitest';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import { type CheckerDeps, checkDue } from '#src/payments/check/checker.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';
import { bringNews } from '../support/bring-news.ts';
import { startSearchingChecker } from '../support/searching-checker.ts';
import { dueInS, notify, pass, pays, saysWhatIsSo, statusOf } from './notified-payments.ts';

/** The result of each notification, in the order in which they were settled. */
let results: string[];

onOperatedPayments({ empties: 'payment, transaction, notification' });
beforeEach(() => {
  results = [];
});

function depsOf(
  connections: Readonly<Record<string, Partial<ProviderConnection>>>,
  leaseMarginMs = 5_000,
): CheckerDeps {
  const opened = Object.entries(connections).map(
    ([id, over]) => [id, { ...payments.provider.connection, ...over }] as const,
  );
  return {
    ...payments.deps,
    schedule: { ...payments.deps.schedule, leaseMarginMs },
    connections: () => new Map(opened),
    settled: (_id, result) => results.push(result),
  };
}

/** Makes a payment at another connection, has its payer pay, and stores a notification about the payment. */
async function paidElsewhere(): Promise<Payment> {
  const other = await payments.pay({ wallet: true });
  await payments.tables.query("UPDATE transaction SET connection_id = 'other' WHERE payment_id = $1", [
    other.id,
  ]);
  pays(other);
  await bringNews(payments.deps, 'other', { transactionId: other.transactions?.id });
  return other;
}

/** A provider that hangs until `goOn` is called, and then reports the actual state. */
function hanging() {
  const goesOn = Promise.withResolvers<void>();
  const asked: LookUp[] = [];
  const lookUp = async (query: LookUp) => {
    asked.push(query);
    await goesOn.promise;
    return saysWhatIsSo(query);
  };
  return { asked, lookUp, goOn: goesOn.resolve };
}

it('a notification that is being checked stays due after the lease, in case the checking replica dies', async () => {
  const { asked, lookUp, goOn } = hanging();
  const payment = await payments.pay({ wallet: true });
  await notify(payment);
  const checked = checkDue(depsOf({ ledger: { deadlineMs: 2_000, lookUp } }, 5_000));
  await expect.poll(() => asked).toHaveLength(1);
  // The lease covers four calls and the margin.
  expect(await dueInS(payment)).toBeLessThanOrEqual(13);
  expect(await dueInS(payment)).toBeGreaterThan(2);
  goOn();
  await checked;
  expect(results).toEqual(['unchanged']);
});

it('a notification is not delayed by those of another connection whose provider hangs', async () => {
  const { lookUp, goOn } = hanging();
  for (let i = 0; i < 50; i++) await notify(await payments.pay({ wallet: true }));
  const other = await paidElsewhere();
  const running = startSearchingChecker(depsOf({ ledger: { lookUp }, other: {} }, 60_000), {
    intervalMs: 10,
  });
  await expect.poll(() => results).toEqual(['applied']);
  expect(await statusOf(other)).toBe('SUCCEEDED');
  goOn();
  await expect.poll(() => results.length).toBe(51);
  await running.stop();
});

const FLOOD = 2_000;
const unrouted = async () =>
  (await payments.tables.query('SELECT 1 FROM notification WHERE check_at <= now()')).length;

it.each([
  ['one transaction', 'transaction_id'],
  ['no transaction of ours', 'gen_random_uuid()'],
])(
  'a flood of notifications about %s delays no other connection and causes few look-ups',
  async (_what, about) => {
    const { asked, lookUp, goOn } = hanging();
    await notify(await payments.pay({ wallet: true }));
    // These notifications are stored, and their transactions have not been searched for.
    await payments.tables.query(
      `INSERT INTO notification (connection_id, deduplication_key, subject, transaction_id, body, query, received_at)
       SELECT connection_id, 'flood-' || n, 0, ${about}, body, query, received_at
       FROM notification, generate_series(1, $1) n`,
      [FLOOD],
    );
    const other = await paidElsewhere();
    const deps = depsOf({ ledger: { lookUp }, other: {} }, 60_000);
    const first = checkDue(deps);
    await expect.poll(() => results).toEqual(['applied']);
    expect(await statusOf(other)).toBe('SUCCEEDED');
    expect(await unrouted()).toBe(FLOOD - 20);
    goOn();
    await first;
    const begunMs = performance.now();
    while ((await unrouted()) > 0) await checkDue(deps);
    await pass(2);
    await checkDue(deps);
    expect(results).toHaveLength(about === 'transaction_id' ? FLOOD + 2 : 2);
    // One look-up, and another for every two seconds that the searches take on a busy machine.
    const most = 2 + (performance.now() - begunMs) / 2_000;
    expect(asked.length).toBeLessThanOrEqual(about === 'transaction_id' ? most : 1);
  },
);
