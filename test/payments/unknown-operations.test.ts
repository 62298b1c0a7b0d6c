import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
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
import type { LookUp, ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { followUpNow } from '#src/payments/check/follow-up.ts';
import { recoverDue } from '#src/payments/check/recover-payments.ts';
import { createPayment } from '#src/payments/create/create-payment.ts';
import { cancelPayment, capturePayment, refundPayment } from '#src/payments/operate/payment-operations.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import type { Database } from '#src/store/engine/database.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { restBody } from '../support/stored-responses.ts';
import type { Behaviour } from './ledger-provider.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction' });
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

/** Looks up what is open, until the provider has told of everything that it will tell. */
async function recover(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await payments.makeDue();
    await recoverDue(payments.deps);
  }
}

describe('an operation whose outcome is not known', () => {
  it('and whose process died is answered PENDING where no look-up will ever tell', async () => {
    const payment = await payments.pay();
    payments.provider.next.push('does it, unanswered');
    const { record } = await operate('refund', payment, '100', 'refund-1');
    // As a process leaves it that dies before its second commit.
    await payments.tables.query(
      "UPDATE transaction SET response = NULL, response_record = NULL WHERE type = 'REFUND'",
    );
    await expect(operate('refund', payment, '100', 'refund-1')).rejects.toMatchObject({
      reason: 'REQUEST_IN_PROGRESS',
    });
    const mute = { ...payments.provider.connection, lookUp: undefined };
    const followedUp = () => followUpNow(payments.deps, mute, record.transactions?.id ?? '');
    expect(await followedUp()).toBe('applied');
    const again = await operate('refund', payment, '100', 'refund-1');
    expect([again.replayed, stateOf(again.record)]).toEqual([true, 'REFUNDED/PENDING_PROVIDER_CONFIRMATION']);
    expect(await followedUp()).toBe('unchanged');
  });

  it('and that may never have been sent is sent again where there is no look-up, and becomes what that is answered', async () => {
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
    expect(await followUpNow(payments.deps, mute, record.transactions?.id ?? '')).toBe('applied');
    expect(repeated).toMatchObject([
      { transactionId: record.transactions?.id, money: { minorUnits: 10_000n }, of: { kind: 'refund' } },
    ]);
    const after = await standing(payment);
    expect([stateOf(after), after.amount?.refunded?.value]).toEqual(['REFUNDED/REFUNDED', '100.00']);
  });

  it.each<[string, Behaviour]>([
    ['the provider says that it has yet to decide', 'delays it'],
    ['a look-up has learned nothing', 'never hears of it'],
  ])('and whose process died is answered PENDING once %s', async (_what, behaviour) => {
    const payment = await payments.pay();
    payments.provider.next.push(behaviour);
    const { record } = await operate('refund', payment, '40', 'refund-1');
    await payments.tables.query(
      "UPDATE transaction SET response = NULL, response_record = NULL WHERE type = 'REFUND'",
    );
    const { connection } = payments.provider;
    const deps = { ...payments.deps, schedule: { ...payments.deps.schedule, closingMarginMs: 60_000 } };
    const followedUp = () => followUpNow(deps, connection, record.transactions?.id ?? '');
    expect(await followedUp()).toBe('applied');
    const again = await operate('refund', payment, '40', 'refund-1');
    expect([again.replayed, again.record.transactions?.status]).toEqual([true, Transaction_Status.PENDING]);
    expect(await followedUp()).toBe('unchanged');
  });

  it('is answered PENDING even if a notification about it comes before its own answer', async () => {
    const payment = await payments.pay();
    const { connection } = payments.provider;
    payments.provider.next.push('delays it');
    const notified: ProviderConnection = {
      ...connection,
      async refund(operation) {
        const outcome = await (connection.refund as NonNullable<typeof connection.refund>)(operation);
        await followUpNow(payments.deps, connection, operation.transactionId);
        return outcome;
      },
    };
    const deps = { ...payments.deps, connections: () => new Map([['ledger', notified]]) };
    const { record } = await operate('refund', payment, '40', 'refund-1', deps);
    expect(record.transactions?.status).toBe(Transaction_Status.PENDING);
  });

  it('is answered PENDING, once, even if a look-up that learned nothing takes it from its own call', async () => {
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
        await followUpNow(payments.deps, mute, operation.transactionId, { hint: {} });
        return outcome;
      },
    };
    const deps = { ...payments.deps, connections: () => new Map([['ledger', mute]]) };
    const first = await operate('cancel', payment, undefined, 'cancel-1', deps);
    expect(stateOf(first.record)).toBe('CANCELED/PENDING_PROVIDER_CONFIRMATION');
    const followedUp = () => followUpNow(payments.deps, mute, first.record.transactions?.id ?? '');
    expect(await followedUp()).toBe('unchanged');

    await recover();
    expect(stateOf(await standing(payment))).toBe('CANCELED/CANCELED');
    const again = await operate('cancel', payment, undefined, 'cancel-1', deps);
    expect(again.replayed).toBe(true);
    expect(Buffer.compare(restBody(again), restBody(first))).toBe(0);
  });

  it('and whose claim may have been committed is never answered as if it had not been accepted', async () => {
    const payment = await payments.pay();
    const { database } = payments;
    let isAway = false;
    const query: Database['query'] = async (statement, values) => {
      if (isAway) throw new DatabaseUnavailableError(new Error('connect ECONNREFUSED'));
      const result = await database.query(statement, values);
      if (statement.name !== 'claim_operation') return result as never;
      isAway = true;
      throw new Error('Connection terminated unexpectedly');
    };
    const deps = { ...payments.deps, database: { ...database, query } };
    await expect(operate('refund', payment, '100', 'refund-1', deps)).rejects.toMatchObject({
      reason: 'REQUEST_IN_PROGRESS',
    });
    await recover();
    const { record } = await operate('refund', payment, '100', 'refund-1');
    expect(record.transactions?.status).toBe(Transaction_Status.ERROR);
    expect(payments.provider.moved).not.toContain(`refund ${record.transactions?.id}`);
  });

  it('is PENDING, keeps its amount reserved and keeps others out, and becomes what the provider says', async () => {
    const payment = await payments.pay();
    payments.provider.next.push('does it, unanswered');
    const first = await operate('refund', payment, '100', 'refund-1');
    expect(stateOf(first.record)).toBe('REFUNDED/PENDING_PROVIDER_CONFIRMATION');
    expect(first.record.transactions?.status).toBe(Transaction_Status.PENDING);
    expect(first.record.amount?.refunded?.value).toBe('0.00');
    await expect(operate('refund', payment, '1')).rejects.toMatchObject({ reason: 'OPERATION_IN_PROGRESS' });

    await recover();
    const after = await standing(payment);
    expect(stateOf(after)).toBe('REFUNDED/REFUNDED');
    expect(after.amount?.refunded?.value).toBe('100.00');
    const again = await operate('refund', payment, '100', 'refund-1');
    expect(again.replayed).toBe(true);
    expect(Buffer.compare(restBody(again), restBody(first))).toBe(0);
  });

  it('leaves the payment as it was once the provider says that it never happened', async () => {
    const payment = await payments.pay({ capture: false });
    payments.provider.next.push('never hears of it');
    const { record } = await operate('cancel', payment);
    expect(stateOf(record)).toBe('CANCELED/PENDING_PROVIDER_CONFIRMATION');
    await recover();
    const after = await standing(payment);
    expect(stateOf(after)).toBe('SUCCEEDED/APPROVED');
    expect(after.transactions?.status).toBe(Transaction_Status.ERROR);
    expect(stateOf((await operate('capture', payment)).record)).toBe('SUCCEEDED/CAPTURED');
  });

  it('that the provider has only received is PENDING until it is done', async () => {
    const payment = await payments.pay();
    payments.provider.next.push('delays it');
    await operate('refund', payment, '40');
    await recover();
    expect((await standing(payment)).amount?.refunded?.value).toBe('0.00');
    payments.provider.settleDelayed();
    await recover();
    const after = await standing(payment);
    expect(stateOf(after)).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
    expect(after.amount?.refunded?.value).toBe('40.00');
  });
});

it('never changes the response that the creation had', async () => {
  const caller = payments.caller();
  const { request, payment, body } = await payments.payAs(caller);
  await operate('refund', payment, '10');
  const again = await createPayment(payments.deps, request, caller);
  expect(again.replayed).toBe(true);
  expect(Buffer.compare(restBody(again), body)).toBe(0);
  expect(again.record.amount?.refunded?.value).toBe('0.00');
});

const arbBehaviour = fc.constantFrom<Behaviour>(
  'does it',
  'does it',
  'does it, unanswered',
  'never hears of it',
  'declines it',
  'refuses it',
  'delays it',
);
const arbStep = fc.record({
  verb: fc.constantFrom<Verb>('capture', 'refund', 'cancel'),
  amount: fc.option(fc.integer({ min: 1, max: 12_000 }), { nil: undefined }),
  behaviour: arbBehaviour,
  recovers: fc.boolean(),
});

it('keeps the amounts of the record, the columns and the provider equal over any sequence of operations', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      fc.array(arbStep, { minLength: 1, maxLength: 7 }),
      async (capture, steps) => {
        const payment = await payments.pay({ capture });
        for (const { verb, amount, behaviour, recovers } of steps) {
          payments.provider.next.push(behaviour);
          const asked = amount === undefined ? undefined : (amount / 100).toFixed(2);
          await operate(verb, payment, asked).catch((error) => {
            payments.provider.next.length = 0;
            expect(error).toMatchObject({
              reason: expect.stringMatching(/^(INVALID_AMOUNT|INVALID_STATUS|OPERATION_IN_PROGRESS)$/),
            });
          });
          if (recovers) await recover();
        }
        payments.provider.settleDelayed();
        await recover();

        const record = await standing(payment);
        const [row] = await payments.tables.query(
          'SELECT captured_minor_units AS captured, refunded_minor_units AS refunded, open_operation FROM payment WHERE id = $1',
          [payment.id],
        );
        const book = payments.provider.bookOf(payment.transactionsHistory[0]?.id ?? '');
        const units = (decimal?: { value: string }) => BigInt((decimal?.value ?? '').replace('.', ''));
        expect(row?.open_operation).toBeNull();
        expect(units(record.amount?.refunded)).toBe(book.refunded);
        expect(BigInt(`${row?.refunded}`)).toBe(book.refunded);
        expect(units(record.amount?.captured)).toBe(capture ? 0n : book.captured);
        expect(BigInt(`${row?.captured}`)).toBe(capture ? 0n : book.captured);
        expect(book.refunded <= book.captured && book.captured <= book.authorized).toBe(true);
      },
    ),
    { numRuns: 60, seed: 20_261_122 },
  );
});
