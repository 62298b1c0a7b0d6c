import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { type Payment, Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { RefundPaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { refundPayment } from '#src/payments/operate/payment-operations.ts';
import { notified } from '../support/news.ts';
import { UNKNOWN } from '../support/outcomes.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction, notification' });

/** Refunds a whole payment, and runs a hook between the provider's refund and its response. */
async function refundWhile(meanwhile: (transactionId: string) => Promise<unknown>) {
  const payment = await payments.pay();
  const counted: (Payment_Status | string)[] = [];
  const { connection } = payments.provider;
  const held: ProviderConnection = {
    ...connection,
    async refund(operation) {
      const outcome = (await connection.refund?.(operation)) ?? UNKNOWN;
      await meanwhile(operation.transactionId);
      return outcome;
    },
  };
  const observer = {
    ...payments.deps.observer,
    replayed: () => counted.push('replayed'),
    operated: ({ record }: { record: Payment }) => counted.push(record.status),
  };
  const deps = { ...payments.deps, connections: () => new Map([['ledger', held]]), observer };
  const request = create(RefundPaymentRequestSchema, { paymentId: payment.id });
  const { replayed } = await refundPayment(deps, request, payments.caller());
  return { replayed, counted };
}

it('an operation whose outcome another worker learned first is counted as made, not as replayed', async () => {
  let checked = 0;
  const made = await refundWhile(async () => {
    // Simulates the end of the operation's lease.
    await payments.makeDue();
    checked = await checkDue(payments.deps);
  });
  expect([made, checked]).toEqual([{ replayed: false, counted: [Payment_Status.REFUNDED] }, 1]);
});

it('no notification overtakes an operation that is being sent', async () => {
  let result: unknown;
  const made = await refundWhile(async (transactionId) => {
    result = await notified(payments.deps, 'ledger', { transactionId });
    const open = await payments.tables.query(
      "SELECT FROM transaction WHERE id = $1 AND status = 'PENDING' AND response IS NULL AND fence = 0",
      [transactionId],
    );
    expect(open).toHaveLength(1);
  });
  expect([made, result]).toEqual([{ replayed: false, counted: [Payment_Status.REFUNDED] }, 'waiting']);
});

it('a repeat of an operation is counted as replayed, not as made', async () => {
  const payment = await payments.pay();
  const counted: string[] = [];
  const observer = {
    ...payments.deps.observer,
    replayed: () => counted.push('replayed'),
    operated: () => counted.push('made'),
  };
  const request = create(RefundPaymentRequestSchema, { paymentId: payment.id });
  const caller = payments.caller();
  const made = await refundPayment({ ...payments.deps, observer }, request, caller);
  const again = await refundPayment({ ...payments.deps, observer }, request, caller);
  expect([made.replayed, again.replayed, counted]).toEqual([false, true, ['made', 'replayed']]);
});
