import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import {
  CancelOrRefundPaymentRequestSchema,
  CancelPaymentRequestSchema,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { alarmingOutcome } from '#src/connectors/kit/provider-answer.ts';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import {
  cancelOrRefundPayment,
  cancelPayment,
  refundPayment,
} from '#src/payments/operate/payment-operations.ts';
import type { Behaviour } from './ledger-provider.ts';
import { CODE } from './model/kept-payment.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction, notification' });

const idOf = (payment: Payment) => payment.transactionsHistory[0]?.id ?? '';

/** Checks everything that is due. @returns for each look-up, true if it asked to close. */
async function checkAll(over: Partial<ProviderConnection> = {}): Promise<boolean[]> {
  const asked: boolean[] = [];
  const own = { ...payments.provider.connection, ...over };
  const lookUp = async (query: LookUp) => {
    asked.push(query.close);
    return own.lookUp?.(query) as Promise<Outcome>;
  };
  const connections = new Map([['ledger', { ...own, lookUp }]]);
  await payments.makeDue();
  await checkDue({ ...payments.deps, connections: () => connections });
  return asked;
}

/** Makes a code, to whose creation the provider reacts. */
async function made(behaviour: Behaviour, code: 'PIX' | 'OXXO' = 'PIX'): Promise<Payment> {
  payments.provider.next.push(behaviour);
  return payments.pay({ code });
}

/** Makes a code and pays it. */
async function paid(code: 'PIX' | 'OXXO'): Promise<Payment> {
  const payment = await made('does it', code);
  payments.provider.paysCode(idOf(payment));
  await checkAll();
  expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  return payment;
}

const refund = ({ id }: Payment, value = '') => {
  const amount = value ? { amount: { currency: 'USD', value: { value } } } : {};
  const request = create(RefundPaymentRequestSchema, { paymentId: id, ...amount });
  return refundPayment(payments.deps, request, payments.caller());
};
const cancel = ({ id }: Payment) =>
  cancelPayment(payments.deps, create(CancelPaymentRequestSchema, { paymentId: id }), payments.caller());
const cancelOrRefund = ({ id }: Payment) =>
  cancelOrRefundPayment(
    payments.deps,
    create(CancelOrRefundPaymentRequestSchema, { paymentId: id }),
    payments.caller(),
  );

describe('a code whose creation was lost', () => {
  it('is shown once it is found, and is not closed, whatever its age', async () => {
    const payment = await made('does it, unanswered');
    expect(await payments.stateOf(payment)).toBe('PENDING/PENDING_PROVIDER_CONFIRMATION');
    expect(await checkAll()).toEqual([false]);
    expect(await payments.stateOf(payment)).toBe('READY_TO_PAY/CREATED');
    expect(payments.provider.isPayable(idOf(payment))).toBe(true);
  });

  it('is looked up before it is closed, if its provider does not know it', async () => {
    const payment = await made('never hears of it');
    expect(await checkAll()).toEqual([false, true]);
    expect(await payments.stateOf(payment)).toBe('ERROR/ERROR');
  });

  it('is not closed while its provider’s answer needs review', async () => {
    const payment = await made('never hears of it');
    const alarm = alarmingOutcome('another amount');
    expect(await checkAll({ lookUp: async () => alarm })).toEqual([false]);
    expect(await payments.stateOf(payment)).toBe('PENDING/PENDING_PROVIDER_CONFIRMATION');
  });

  it('is canceled technically where there is no look-up, and stays unknown', async () => {
    const payment = await made('never hears of it');
    const sent: string[] = [];
    const technicalCancel = {
      afterMs: 0,
      send: async ({ transactionId }: LookUp) => sent.push(transactionId) > 0,
    };
    const own = { ...payments.provider.connection, technicalCancel, lookUp: undefined };
    await payments.makeDue();
    await checkDue({ ...payments.deps, connections: () => new Map([['ledger', own]]) });
    expect(sent).toEqual([idOf(payment)]);
    expect(await payments.stateOf(payment)).toBe('PENDING/PENDING_PROVIDER_CONFIRMATION');
  });

  it('is not closed before the deadline of its creation', async () => {
    await made('never hears of it');
    expect(await checkAll({ deadlineMs: 3_600_000 })).toEqual([false]);
  });
});

describe('the operations on a code follow the terms of its method', () => {
  it('a code is canceled while it is open', async () => {
    const payment = await made('does it');
    await cancel(payment);
    expect(await payments.stateOf(payment)).toBe('CANCELED/CANCELED');
    expect(payments.provider.isPayable(idOf(payment))).toBe(false);
  });

  it('a code of which a part is paid is not canceled', async () => {
    const payment = await made('does it');
    const received = { minorUnits: 4_000n, currency: 'USD' };
    const part: Outcome = { ...CODE, received };
    await checkAll({ lookUp: async () => part });
    await expect(cancel(payment)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
    expect(payments.provider.isPayable(idOf(payment))).toBe(true);
  });

  it('is refunded in parts, up to its amount', async () => {
    const payment = await paid('PIX');
    await refund(payment, '60');
    await expect(refund(payment, '60')).rejects.toMatchObject({ reason: 'INVALID_AMOUNT' });
    await refund(payment, '40');
    expect(await payments.stateOf(payment)).toBe('REFUNDED/REFUNDED');
  });

  it.each([
    ['a cancel', () => made('does it', 'OXXO'), cancel, 'READY_TO_PAY/CREATED'],
    ['a refund', () => paid('OXXO'), refund, 'SUCCEEDED/APPROVED'],
    ['a refund of a part', () => paid('OXXO'), (own: Payment) => refund(own, '1'), 'SUCCEEDED/APPROVED'],
    ['a cancel-or-refund', () => paid('OXXO'), cancelOrRefund, 'SUCCEEDED/APPROVED'],
  ])(
    '%s that the method does not offer is refused, although cards have it',
    async (...[, begin, ask, state]) => {
      const payment = await begin();
      const { length } = payments.provider.moved;
      await expect(ask(payment)).rejects.toMatchObject({ reason: 'OPERATION_NOT_SUPPORTED' });
      expect(await payments.stateOf(payment)).toBe(state);
      expect(payments.provider.moved).toHaveLength(length);
    },
  );
});
