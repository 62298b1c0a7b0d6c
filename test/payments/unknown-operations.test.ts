import { create } from '@bufbuild/protobuf';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type Payment,
  Payment_Status,
  Payment_SubStatus_Value,
  Transaction_Status,
} from '#gen/payments/v1/payment_pb.js';
import {
  CancelPaymentRequestSchema,
  CapturePaymentRequestSchema,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { cancelPayment, capturePayment, refundPayment } from '#src/payments/operate/payment-operations.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import type { Database } from '#src/store/engine/database.ts';
import { ConnectionLostError, DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { notified } from '../support/news.ts';
import { restBody } from '../support/stored-responses.ts';
import type { Behaviour } from './ledger-provider.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction, notification' });
afterEach(() => {
  payments.provider.next.length = 0;
});

type Verb = 'capture' | 'refund' | 'cancel';

function operate(verb: Verb, { id }: Payment, amount?: string, key?: string, deps = payments.deps) {
  const init = { paymentId: id, ...(amount && { amount: { currency: 'USD', value: { value: amount } } }) };
  const caller = payments.caller(key);
  if (verb === 'capture') return capturePayment(deps, create(CapturePaymentRequestSchema, init), caller);
  if (verb === 'refund') return refundPayment(deps, create(RefundPaymentRequestSchema, init), caller);
  return cancelPayment(deps, create(CancelPaymentRequestSchema, { paymentId: id }), caller);
}

const standing = (payment: Payment) => getPayment(payments.deps, payment.id, payments.caller());
const stateOf = ({ status, subStatus }: Payment) =>
  `${Payment_Status[status]}/${Payment_SubStatus_Value[subStatus]}`;

/** Checks open outcomes at a connection. */
async function check(connection: ProviderConnection, deps = payments.deps): Promise<void> {
  await payments.makeDue();
  await checkDue({ ...deps, connections: () => new Map([['ledger', connection]]) });
}

const versionOf = async ({ id }: Payment) =>
  (await payments.tables.query('SELECT version FROM payment WHERE id = $1', [id]))[0]?.version;

/** Checks open outcomes until the provider has reported everything. */
async function checkAll(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await payments.makeDue();
    await checkDue(payments.deps);
  }
}

describe('an operation with an unknown outcome', () => {
  it('an operation whose process died is PENDING if no look-up can ever learn more', async () => {
    const payment = await payments.pay();
    payments.provider.next.push('does it, unanswered');
    await operate('refund', payment, '100', 'refund-1');
    // The state that a process leaves if it dies before its second commit.
    await payments.tables.query(
      "UPDATE transaction SET response = NULL, response_record = NULL WHERE type = 'REFUND'",
    );
    await expect(operate('refund', payment, '100', 'refund-1')).rejects.toMatchObject({
      reason: 'REQUEST_IN_PROGRESS',
    });
    const mute = { ...payments.provider.connection, lookUp: undefined };
    await check(mute);
    const again = await operate('refund', payment, '100', 'refund-1');
    expect([again.replayed, stateOf(again.record)]).toEqual([true, 'REFUNDED/PENDING_PROVIDER_CONFIRMATION']);
    const version = await versionOf(payment);
    await check(mute);
    expect(await versionOf(payment)).toBe(version);
  });

  it('an operation that may never have been sent is sent again if there is no look-up', async () => {
    const payment = await payments.pay();
    payments.provider.next.push('never hears of it');
    const { record } = await operate('refund', payment, '100', 'refund-1');
    expect(stateOf(record)).toBe('REFUNDED/PENDING_PROVIDER_CONFIRMATION');
    const repeated: LookUp[] = [];
    const repeatOperation = async (query: LookUp): Promise<Outcome> => {
      repeated.push(query);
      if (query.of.kind !== 'refund' || !connection.refund) throw new Error(query.of.kind);
      return connection.refund({ ...query.of, ...query, isWhole: true });
    };
    const { connection } = payments.provider;
    const mute = { ...connection, lookUp: undefined, repeatOperation };
    await check(mute);
    expect(repeated).toMatchObject([
      { transactionId: record.transactions?.id, money: { minorUnits: 10_000n }, of: { kind: 'refund' } },
    ]);
    const after = await standing(payment);
    expect([stateOf(after), after.amount?.refunded?.value]).toEqual(['REFUNDED/REFUNDED', '100.00']);
  });

  it.each<[string, Behaviour]>([
    ['the provider says that it has yet to decide', 'delays it'],
    ['a look-up has learned nothing', 'never hears of it'],
  ])('an operation whose process died gets the response PENDING once %s', async (_what, behaviour) => {
    const payment = await payments.pay();
    payments.provider.next.push(behaviour);
    await operate('refund', payment, '40', 'refund-1');
    await payments.tables.query(
      "UPDATE transaction SET response = NULL, response_record = NULL WHERE type = 'REFUND'",
    );
    const { connection } = payments.provider;
    const deps = { ...payments.deps, schedule: { ...payments.deps.schedule, closingMarginMs: 60_000 } };
    await check(connection, deps);
    const again = await operate('refund', payment, '40', 'refund-1');
    expect([again.replayed, again.record.transactions?.status]).toEqual([true, Transaction_Status.PENDING]);
    const version = await versionOf(payment);
    await check(connection, deps);
    expect(await versionOf(payment)).toBe(version);
  });

  it("a notification before the provider's response leaves an operation PENDING, to be checked later", async () => {
    const payment = await payments.pay();
    const { connection } = payments.provider;
    payments.provider.next.push('delays it');
    let result = '';
    const notifying: ProviderConnection = {
      ...connection,
      async refund(operation) {
        const outcome = await (connection.refund as NonNullable<typeof connection.refund>)(operation);
        payments.provider.settleDelayed();
        result = await notified(payments.deps, 'ledger', { transactionId: operation.transactionId });
        return outcome;
      },
    };
    const deps = { ...payments.deps, connections: () => new Map([['ledger', notifying]]) };
    const { record } = await operate('refund', payment, '40', 'refund-1', deps);
    expect([result, record.transactions?.status]).toEqual(['waiting', Transaction_Status.PENDING]);
    await payments.tables.query('UPDATE notification SET check_at = now()');
    await checkDue(payments.deps);
    expect(stateOf(await standing(payment))).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
    expect(await payments.tables.query('SELECT result FROM notification')).toEqual([{ result: 'applied' }]);
  });

  it('an operation is written as PENDING once, even if a check claims it after the lease of its own call', async () => {
    const payment = await payments.pay({ capture: false });
    const { connection } = payments.provider;
    const mute: ProviderConnection = {
      ...connection,
      lookUp: async () => ({
        kind: 'unknown',
        detail: 'another amount',
        providerData: undefined,
        alarm: true,
      }),
      async cancel(operation) {
        payments.provider.next.push('does it, unanswered');
        const outcome = await (connection.cancel as NonNullable<typeof connection.cancel>)(operation);
        await check(mute);
        return outcome;
      },
    };
    const deps = { ...payments.deps, connections: () => new Map([['ledger', mute]]) };
    const first = await operate('cancel', payment, undefined, 'cancel-1', deps);
    expect(stateOf(first.record)).toBe('CANCELED/PENDING_PROVIDER_CONFIRMATION');
    const version = await versionOf(payment);
    await check(mute);
    expect(await versionOf(payment)).toBe(version);

    await checkAll();
    expect(stateOf(await standing(payment))).toBe('CANCELED/CANCELED');
    const again = await operate('cancel', payment, undefined, 'cancel-1', deps);
    expect(again.replayed).toBe(true);
    expect(Buffer.compare(restBody(again), restBody(first))).toBe(0);
  });

  it('an operation whose claim may have been committed is never reported as not accepted', async () => {
    const payment = await payments.pay();
    const { database } = payments;
    let isAway = false;
    const query: Database['query'] = async (statement, values) => {
      if (isAway) throw new DatabaseUnavailableError(new Error('connect ECONNREFUSED'));
      const result = await database.query(statement, values);
      if (statement.name !== 'claim_operation') return result as never;
      isAway = true;
      throw new ConnectionLostError(new Error('Connection terminated unexpectedly'));
    };
    const deps = { ...payments.deps, database: { ...database, query } };
    await expect(operate('refund', payment, '100', 'refund-1', deps)).rejects.toMatchObject({
      reason: 'REQUEST_IN_PROGRESS',
    });
    await checkAll();
    const { record } = await operate('refund', payment, '100', 'refund-1');
    expect(record.transactions?.status).toBe(Transaction_Status.ERROR);
    expect(payments.provider.moved).not.toContain(`refund ${record.transactions?.id}`);
  });

  it('a repeated operation is in progress, and never refused, while the transaction that it names cannot be read', async () => {
    const payment = await payments.pay();
    const { record } = await operate('refund', payment, '100', 'refund-1');
    const { database } = payments;
    const query: Database['query'] = async (statement, values) => {
      if (statement.name === 'read_payment_state') throw new DatabaseUnavailableError(new Error('refused'));
      return database.query(statement, values);
    };
    const amount = { currency: 'USD', value: { value: '100' } };
    const init = { paymentId: payment.id, amount, transactionId: record.transactions?.id ?? '' };
    const request = create(RefundPaymentRequestSchema, init);
    const caller = payments.caller('refund-1');
    await expect(
      refundPayment({ ...payments.deps, database: { ...database, query } }, request, caller),
    ).rejects.toMatchObject({ reason: 'REQUEST_IN_PROGRESS' });
    expect(await refundPayment(payments.deps, request, caller)).toMatchObject({ replayed: true });
  });

  it('an operation with an unknown outcome is PENDING, reserves its amount, and blocks others until reported', async () => {
    const payment = await payments.pay();
    payments.provider.next.push('does it, unanswered');
    const first = await operate('refund', payment, '100', 'refund-1');
    expect(stateOf(first.record)).toBe('REFUNDED/PENDING_PROVIDER_CONFIRMATION');
    expect(first.record.transactions?.status).toBe(Transaction_Status.PENDING);
    expect(first.record.amount?.refunded?.value).toBe('0.00');
    await expect(operate('refund', payment, '1')).rejects.toMatchObject({ reason: 'OPERATION_IN_PROGRESS' });

    await checkAll();
    const after = await standing(payment);
    expect(stateOf(after)).toBe('REFUNDED/REFUNDED');
    expect(after.amount?.refunded?.value).toBe('100.00');
    const again = await operate('refund', payment, '100', 'refund-1');
    expect(again.replayed).toBe(true);
    expect(Buffer.compare(restBody(again), restBody(first))).toBe(0);
  });

  it('an operation that the provider reports as never made leaves the payment unchanged', async () => {
    const payment = await payments.pay({ capture: false });
    payments.provider.next.push('never hears of it');
    const { record } = await operate('cancel', payment);
    expect(stateOf(record)).toBe('CANCELED/PENDING_PROVIDER_CONFIRMATION');
    await checkAll();
    const after = await standing(payment);
    expect(stateOf(after)).toBe('SUCCEEDED/APPROVED');
    expect(after.transactions?.status).toBe(Transaction_Status.ERROR);
    expect(stateOf((await operate('capture', payment)).record)).toBe('SUCCEEDED/CAPTURED');
  });

  it('an operation that the provider has only received is PENDING until it is made', async () => {
    const payment = await payments.pay();
    payments.provider.next.push('delays it');
    await operate('refund', payment, '40');
    await checkAll();
    expect((await standing(payment)).amount?.refunded?.value).toBe('0.00');
    payments.provider.settleDelayed();
    await checkAll();
    const after = await standing(payment);
    expect(stateOf(after)).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
    expect(after.amount?.refunded?.value).toBe('40.00');
  });
});
