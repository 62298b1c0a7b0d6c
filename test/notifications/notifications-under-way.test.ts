import { randomUUID } from 'node:crypto';
import { beforeEach, expect, it } from 'vitest';
import { type Payment, Payment_Status } from '#gen/payments/v1/payment_pb.js';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import {
  type ProcessDeps,
  processDue,
  startNotifications,
} from '#src/payments/check/process-notifications.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { insertNotification } from '#src/store/tables/notifications.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';

const UNKNOWN: Outcome = { kind: 'unknown', detail: 'silence', providerData: undefined };

/** The result of each notification, in the order in which they were processed. */
let results: string[];

onOperatedPayments();
beforeEach(() => {
  results = [];
});

function depsOf(
  connections: Readonly<Record<string, Partial<ProviderConnection>>>,
  leaseMarginMs = 5_000,
): ProcessDeps {
  const opened = Object.entries(connections).map(
    ([id, over]) => [id, { ...payments.provider.connection, ...over }] as const,
  );
  return {
    ...payments.deps,
    schedule: { ...payments.deps.schedule, leaseMarginMs },
    connections: () => new Map(opened),
    processed: { settled: (_id, result) => results.push(result), failed: (error) => Promise.reject(error) },
  };
}

/** Stores a notification as it comes, due at once. */
function notified({ transactions }: Payment, connectionId = 'ledger'): Promise<void> {
  return insertNotification(payments.database, {
    connectionId,
    deduplicationKey: randomUUID(),
    subjects: [{ transactionId: transactions?.id, reference: undefined, dispute: undefined }],
    ...{ body: Buffer.alloc(0), query: '', headers: '{}' },
  });
}

it('a notification with which a replica dies is due again once the lease of a transaction would be over', async () => {
  const [asked, told] = [Promise.withResolvers<void>(), Promise.withResolvers<Outcome>()];
  const lookUp = () => {
    asked.resolve();
    return told.promise;
  };
  await notified(await payments.pay({ wallet: true }));
  const processed = processDue(depsOf({ ledger: { deadlineMs: 2_000, lookUp } }, 5_000));
  await asked.promise;
  const [row] = await payments.tables.query(
    'SELECT extract(epoch FROM process_at - now())::float8 AS due_in_s FROM notification',
  );
  expect(row?.due_in_s).toBeLessThanOrEqual(7);
  told.resolve(UNKNOWN);
  await processed;
  expect(results).toEqual(['unchanged']);
});

it('a notification is not delayed by those of another connection, whose provider hangs', async () => {
  const other = await payments.pay({ wallet: true });
  await payments.tables.query("UPDATE transaction SET connection_id = 'other' WHERE payment_id = $1", [
    other.id,
  ]);
  payments.provider.payerPays(other.transactions?.id ?? '');
  const told = Promise.withResolvers<Outcome>();
  for (let i = 0; i < 50; i++) await notified(await payments.pay({ wallet: true }));
  await notified(other, 'other');
  const deps = depsOf({ ledger: { lookUp: () => told.promise }, other: {} }, 60_000);
  const running = startNotifications(deps, { intervalMs: 10 });
  await expect.poll(() => results).toEqual(['applied']);
  expect((await getPayment(payments.deps, other.id, payments.caller())).status).toBe(
    Payment_Status.SUCCEEDED,
  );
  told.resolve(UNKNOWN);
  await expect.poll(() => results.length).toBe(51);
  await running.stop();
});
