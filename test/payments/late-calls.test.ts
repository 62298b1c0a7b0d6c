import { create } from '@bufbuild/protobuf';
import { afterEach, describe, expect, it } from 'vitest';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { RefundPaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { refundPayment } from '#src/payments/operate/payment-operations.ts';
import type { Database } from '#src/store/engine/database.ts';
import { clock, onMovedClock } from '../support/process-clock.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction, notification' });
onMovedClock();

afterEach(() => {
  payments.provider.next.length = 0;
});

/** Refunds a payment in a process that stands still for a time between its claim and its call. */
async function refundDelayed(
  { id }: Payment,
  delayMs: number,
  meanwhile: () => Promise<void> = async () => {},
) {
  const query = async (...[statement, values]: Parameters<Database['query']>) => {
    const result = await payments.database.query(statement, values);
    if (statement.name !== 'claim_operation') return result;
    clock.aheadMs += delayMs;
    await meanwhile();
    return result;
  };
  const deps = { ...payments.deps, database: { ...payments.database, query } as Database };
  const { record } = await refundPayment(
    deps,
    create(RefundPaymentRequestSchema, { paymentId: id }),
    payments.caller(),
  );
  return record;
}

const STATUS = "SELECT status FROM transaction WHERE type = 'REFUND'";
const statusOfRefund = async () => (await payments.tables.query(STATUS))[0]?.status;

/** Lets another worker take and check everything that is open. */
async function checkElsewhere(connection: ProviderConnection): Promise<void> {
  await payments.makeDue();
  await checkDue({ ...payments.deps, connections: () => new Map([['ledger', connection]]) });
}

describe('a process that stands still between the claim of an operation and its call', () => {
  const leaseMarginMs = 60_000;

  it('still sends the operation within half the margin of its lease', async () => {
    const payment = await payments.pay();
    await refundDelayed(payment, leaseMarginMs / 2 - 5_000);
    expect(await statusOfRefund()).toBe('SUCCEEDED');
  });

  it('does not send the operation later: another worker may have recorded that it never happened', async () => {
    const payment = await payments.pay();
    const movedBefore = payments.provider.moved.length;
    await refundDelayed(payment, leaseMarginMs, () => checkElsewhere(payments.provider.connection));
    expect(payments.provider.moved).toHaveLength(movedBefore);
    expect(await statusOfRefund()).toBe('ERROR');
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });

  it('does not record as never sent what another worker has repeated at the provider', async () => {
    const payment = await payments.pay();
    const { connection } = payments.provider;
    const repeatOperation = async (query: LookUp) => {
      if (query.of.kind !== 'refund' || !connection.refund) throw new Error(query.of.kind);
      payments.provider.next.push('does it, unanswered');
      return connection.refund({ ...query.of, ...query, isWhole: true });
    };
    const repeating = { ...connection, lookUp: undefined, repeatOperation };
    await refundDelayed(payment, leaseMarginMs, () => checkElsewhere(repeating));
    expect(await statusOfRefund()).toBe('PENDING');
    await checkElsewhere(connection);
    expect(await statusOfRefund()).toBe('SUCCEEDED');
    expect(await payments.stateOf(payment)).toBe('REFUNDED/REFUNDED');
  });
});
