import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Handed } from '#src/payments/check/checker.ts';
import { type RouteDeps, receiveNotification, routeDueNews } from '#src/payments/check/news.ts';
import type { Database } from '#src/store/engine/database.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { insertNotification } from '#src/store/tables/notifications.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';
import { interleave } from '../support/interleave.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

/* Notifications while nodes of a distributed database are slow or unavailable. */

onOperatedPayments({ empties: 'payment, transaction, notification' });

const REFERENCE = 'find_transaction_of_provider_payment';
const news = () =>
  payments.tables.query('SELECT transaction_id, check_at IS NOT NULL AS searched FROM notification');

/** Receives a notification. @returns how often a transaction was sought by the provider's id, and the checker's work. */
async function receive(database: Database, subject: { transactionId?: string; providerPaymentId?: string }) {
  let searches = 0;
  const wakes: Handed[] = [];
  const connection: ProviderConnection = {
    ...payments.provider.connection,
    readNotification: async () => ({ kind: 'about', deduplicationKey: randomUUID(), subjects: [subject] }),
  };
  await receiveNotification(
    {
      ...payments.deps,
      database: interleave(database, { before: { [REFERENCE]: () => searches++ } }),
      connections: () => new Map([['ledger', connection]]),
      nowMs: () => Date.now(),
      wake: (handed) => wakes.push(handed),
      notifications: { received: () => {} },
    },
    'ledger',
    { header: () => undefined, query: '', body: Buffer.alloc(0) },
  );
  return { searches, wakes };
}

it('a notification with only the provider’s id is acknowledged before nodes of a distributed database are searched', async () => {
  const distributed = { ...payments.database, isDistributed: true };
  const payment = await payments.pay();
  const transactionId = payment.transactions?.id ?? '';
  expect(await receive(distributed, { providerPaymentId: 'r-1' })).toEqual({
    searches: 0,
    wakes: [expect.objectContaining({ accountId: NIL_UUID, connectionId: 'ledger', subject: 0 })],
  });
  expect(await news()).toEqual([{ transaction_id: null, searched: true }]);
  await payments.tables.query('DELETE FROM notification');
  expect(await receive(distributed, { transactionId, providerPaymentId: 'r-1' })).toEqual({
    searches: 0,
    wakes: [expect.objectContaining({ accountId: ACCOUNT_ONE, id: transactionId, inS: 0 })],
  });
  // Its check is due, so that nothing is left to search.
  expect(await news()).toEqual([{ transaction_id: transactionId, searched: false }]);
  const single = { ...payments.database, isDistributed: false };
  expect((await receive(single, { providerPaymentId: 'r-1' })).searches).toBe(1);
});

it('news whose node is unavailable stays due and delays no other news, but a fault stops the search', async () => {
  for (const providerPaymentId of ['r-1', 'r-2']) {
    await insertNotification(payments.database, {
      ...{ connectionId: 'ledger', deduplicationKey: randomUUID(), subjects: [{ providerPaymentId }] },
      ...{ body: Buffer.alloc(0), query: '', headers: '{}' },
    });
  }
  const searchWith = async (error: Error) => {
    let searches = 0;
    const fail = (nth: number) => {
      searches += 1;
      if (nth === 1) throw error;
    };
    const database = interleave(payments.database, { before: { [REFERENCE]: fail } });
    const deps: RouteDeps = { ...payments.deps, database };
    await payments.tables.query('UPDATE notification SET check_at = now()');
    const failure = await routeDueNews(deps, 'ledger').then(
      () => undefined,
      (thrown: Error) => thrown,
    );
    return { searches, failure };
  };
  const gone = new DatabaseUnavailableError(new Error('refused'));
  expect(await searchWith(gone)).toEqual({ searches: 2, failure: undefined });
  expect(await news()).toEqual(Array(2).fill({ transaction_id: null, searched: true }));
  const fault = new TypeError('a fault of ours');
  expect(await searchWith(fault)).toEqual({ searches: 1, failure: fault });
});
