import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import {
  type Payment,
  Payment_Status,
  Payment_SubStatus_Value,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import { RefundPaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { refundPayment } from '#src/payments/operate/payment-operations.ts';
import { restBody } from '../support/stored-responses.ts';
import { cancel, capture, idOf, onOperatedPayments, payments, refund, undo } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction' });

/** The refusal of a refund of an amount that is only held. */
const HELD = {
  reason: 'INVALID_STATUS',
  fields: [
    {
      ...{ field: 'amount', code: 'NOT_ALLOWED' },
      message:
        'must be omitted: nothing is left to refund; nothing was sent; call cancel to release the authorization, or capture to keep part of it',
    },
  ],
};

/** A payment in a few words: its state, its last transaction and its amounts. */
function shown(record: Payment) {
  const { transactions, amount } = record;
  return [
    `${Payment_Status[record.status]}/${Payment_SubStatus_Value[record.subStatus]}`,
    `${Transaction_Type[transactions?.type ?? 0]} ${Transaction_Status[transactions?.status ?? 0]} ${transactions?.amount?.value}`,
    `captured ${amount?.captured?.value}, refunded ${amount?.refunded?.value}`,
  ].join(' ← ');
}

describe('an authorization', () => {
  it('an authorization is captured in full when no amount is given', async () => {
    const payment = await payments.pay({ capture: false });
    const { record, replayed } = await capture(payment);
    expect(replayed).toBe(false);
    expect(shown(record)).toBe(
      'SUCCEEDED/CAPTURED ← CAPTURE SUCCEEDED 100.00 ← captured 100.00, refunded 0.00',
    );
    expect(record.transactions?.parentTransactionId).toBe(payment.transactions?.id);
    expect(record.transactionsHistory.map(({ type }) => Transaction_Type[type])).toEqual([
      'PURCHASE',
      'CAPTURE',
    ]);
  });

  it('an authorization is captured in parts, then refunded in parts, from the captures that have enough left', async () => {
    const payment = await payments.pay({ capture: false });
    const first = await capture(payment, { amount: '60' });
    expect(shown(first.record)).toBe(
      'SUCCEEDED/PARTIALLY_CAPTURED ← CAPTURE SUCCEEDED 60.00 ← captured 60.00, refunded 0.00',
    );
    const second = await capture(payment, { amount: '40.00' });
    expect(shown(second.record)).toBe(
      'SUCCEEDED/CAPTURED ← CAPTURE SUCCEEDED 40.00 ← captured 100.00, refunded 0.00',
    );
    const back = await refund(payment, { amount: '50' });
    expect(shown(back.record)).toBe(
      'SUCCEEDED/PARTIALLY_REFUNDED ← REFUND SUCCEEDED 50.00 ← captured 100.00, refunded 50.00',
    );
    expect(back.record.transactions?.parentTransactionId).toBe(first.record.transactions?.id);
    const rest = await refund(payment);
    expect(shown(rest.record)).toBe(
      'REFUNDED/REFUNDED ← REFUND SUCCEEDED 50.00 ← captured 100.00, refunded 100.00',
    );
    expect(payments.provider.bookOf(payment.transactions?.id ?? '')).toMatchObject({
      captured: 10_000n,
      refunded: 10_000n,
    });
  });

  it('an authorization is released by a cancel, which needs no key; a repeat gets the first response', async () => {
    const payment = await payments.pay({ capture: false });
    const first = await cancel(payment, { key: null });
    expect(shown(first.record)).toBe(
      'CANCELED/CANCELED ← CANCEL SUCCEEDED 100.00 ← captured 0.00, refunded 0.00',
    );
    const again = await cancel(payment, { key: null });
    expect(again.replayed).toBe(true);
    expect(Buffer.compare(restBody(again), restBody(first))).toBe(0);
    await expect(capture(payment)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
    await expect(refund(payment)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  });

  it('the rest of a partly captured authorization is released by a cancel', async () => {
    const payment = await payments.pay({ capture: false });
    await capture(payment, { amount: '30' });
    const { record } = await cancel(payment);
    expect(shown(record)).toBe(
      'SUCCEEDED/PARTIALLY_CAPTURED ← CANCEL SUCCEEDED 70.00 ← captured 30.00, refunded 0.00',
    );
    await expect(capture(payment, { amount: '1' })).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  });

  it('an authorization is released by a capture that is requested as final', async () => {
    const payment = await payments.pay({ capture: false });
    await capture(payment, { amount: '10', isFinal: false });
    const { record } = await capture(payment, { amount: '20', isFinal: true });
    expect(shown(record)).toBe(
      'SUCCEEDED/PARTIALLY_CAPTURED ← CAPTURE SUCCEEDED 20.00 ← captured 30.00, refunded 0.00',
    );
    expect(payments.provider.bookOf(idOf(payment))).toMatchObject({ captured: 3_000n, released: true });
    await expect(capture(payment, { amount: '1' })).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  });

  it('an authorization is released by the last capture that its provider allows', async () => {
    const payment = await payments.pay({ capture: false });
    for (let i = 0; i < 10; i++) await capture(payment, { amount: '1' });
    expect(payments.provider.bookOf(idOf(payment))).toMatchObject({ captured: 1_000n, released: true });
    await expect(capture(payment, { amount: '1' })).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
    await expect(cancel(payment)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
    expect(shown((await refund(payment)).record)).toBe(
      'REFUNDED/REFUNDED ← REFUND SUCCEEDED 10.00 ← captured 10.00, refunded 10.00',
    );
  });

  it('an authorization is undone by a cancel, by a refund once captured, and by a cancel of the rest', async () => {
    const open = await payments.pay({ capture: false });
    expect(shown((await undo(open)).record)).toMatch(/^CANCELED.CANCELED ← CANCEL SUCCEEDED/);
    const captured = await payments.pay({ capture: false });
    const part = (await capture(captured, { amount: '60' })).record;
    const undone = (await undo(captured)).record;
    expect(shown(undone)).toMatch(/^REFUNDED.REFUNDED ← REFUND SUCCEEDED 60.00/);
    expect(undone.transactions?.parentTransactionId).toBe(idOf(part));
    await expect(undo(captured, { transactionId: idOf(part) })).rejects.toMatchObject({
      reason: 'INVALID_STATUS',
    });
    expect(shown((await undo(captured)).record)).toMatch(/^REFUNDED.REFUNDED ← CANCEL SUCCEEDED 40.00/);
    await expect(undo(captured)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
    expect(shown((await undo(await payments.pay())).record)).toMatch(
      /^REFUNDED.REFUNDED ← REFUND SUCCEEDED 100.00/,
    );
  });

  it("an authorization is undone as a whole by its own transaction's ID, and in part by a capture's ID", async () => {
    const open = await payments.pay({ capture: false });
    expect(shown((await undo(open, { transactionId: idOf(open) })).record)).toMatch(
      /^CANCELED.CANCELED ← CANCEL SUCCEEDED/,
    );
    const payment = await payments.pay({ capture: false });
    const first = (await capture(payment, { amount: '30' })).record;
    await capture(payment);
    const { record } = await undo(payment, { transactionId: idOf(first) });
    expect(shown(record)).toMatch(/^SUCCEEDED.PARTIALLY_REFUNDED ← REFUND SUCCEEDED 30.00/);
    expect(record.transactions?.parentTransactionId).toBe(idOf(first));
    await expect(undo(payment, { transactionId: idOf(first) })).rejects.toMatchObject({
      reason: 'INVALID_STATUS',
    });
    expect(shown((await undo(payment, { transactionId: idOf(payment) })).record)).toMatch(
      /^REFUNDED.REFUNDED ← REFUND SUCCEEDED 70.00/,
    );
  });
});

describe('a call that names a transaction on which it cannot act', () => {
  it.each([
    ['a purchase', true, undo],
    ['an authorization', false, undo],
    ['a purchase', true, refund],
    ['an authorization', false, cancel],
  ])(
    'an operation that names an unsuitable transaction moves no money: %s (capture: %s)',
    async (_what, isCapture, operate) => {
      const payment = await payments.pay({ capture: isCapture });
      const moved = payments.provider.moved.length;
      const other = idOf(await payments.pay());
      for (const id of [crypto.randomUUID(), 'garbage', other]) {
        await expect(operate(payment, { transactionId: id })).rejects.toMatchObject({
          reason: 'TRANSACTION_NOT_FOUND',
        });
      }
      expect(payments.provider.moved.slice(moved)).toEqual([`pay ${other}`]);
    },
  );

  it('a repeat of a cancel without a key is refused if it names another transaction', async () => {
    const payment = await payments.pay({ capture: false });
    await cancel(payment, { key: null });
    const repeated = cancel(payment, { key: null, transactionId: crypto.randomUUID() });
    await expect(repeated).rejects.toMatchObject({ reason: 'TRANSACTION_NOT_FOUND' });
  });
});

describe('a request that the payment does not allow', () => {
  it.each([
    ['more than is authorized', { amount: '100.01' }, 'INVALID_AMOUNT'],
    ['another currency', { amount: '1', currency: 'EUR' }, 'CURRENCY_NOT_ALLOWED'],
    ['an amount of zero', { amount: '0' }, 'INVALID_PARAMETERS'],
    ['another transaction', { transactionId: crypto.randomUUID() }, 'TRANSACTION_NOT_FOUND'],
    ['no key and no reference', { key: null }, 'IDEMPOTENCY_KEY_MISSING'],
  ])(
    'the refusal of an operation names the field, and uses up neither key nor amount: %s',
    async (_what, asked, reason) => {
      const payment = await payments.pay({ capture: false });
      await expect((async () => capture(payment, asked))()).rejects.toMatchObject({ reason });
      expect(shown((await capture(payment)).record)).toMatch(/^SUCCEEDED.CAPTURED/);
    },
  );

  it('a capture or cancel of a purchase is refused, and so is an operation on an unknown payment', async () => {
    const payment = await payments.pay();
    await expect(capture(payment)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
    await expect(cancel(payment)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
    for (const id of [crypto.randomUUID(), 'x', '']) {
      await expect(refund({ ...payment, id })).rejects.toMatchObject({ reason: 'PAYMENT_NOT_FOUND' });
    }
    const others = { ...payments.caller(), accountId: crypto.randomUUID() };
    const request = create(RefundPaymentRequestSchema, { paymentId: payment.id });
    await expect(refundPayment(payments.deps, request, others)).rejects.toMatchObject({
      reason: 'PAYMENT_NOT_FOUND',
    });
  });
});

describe('a cancel-or-refund with an amount', () => {
  it('cancel-or-refund with an amount refunds that amount of a purchase or of a captured authorization', async () => {
    const purchased = await payments.pay();
    expect(shown((await undo(purchased, { amount: '40' })).record)).toBe(
      'SUCCEEDED/PARTIALLY_REFUNDED ← REFUND SUCCEEDED 40.00 ← captured 0.00, refunded 40.00',
    );
    await expect(undo(purchased, { amount: '61' })).rejects.toMatchObject({ reason: 'INVALID_AMOUNT' });
    const authorized = await payments.pay({ capture: false });
    const captured = await capture(authorized, { amount: '30' });
    expect(shown((await undo(authorized, { amount: '10' })).record)).toMatch(/REFUND SUCCEEDED 10.00/);
    const transactionId = captured.record.transactions?.id ?? '';
    expect(shown((await undo(authorized, { amount: '20', transactionId })).record)).toBe(
      'REFUNDED/REFUNDED ← REFUND SUCCEEDED 20.00 ← captured 30.00, refunded 30.00',
    );
    // All captures are refunded: the rest is held.
    await expect(undo(authorized, { amount: '10' })).rejects.toMatchObject(HELD);
    expect(payments.provider.bookOf(idOf(authorized))).toMatchObject({ refunded: 3_000n, released: false });
  });

  it('cancel-or-refund with an amount chooses the capture with that amount left', async () => {
    const payment = await payments.pay({ capture: false });
    await capture(payment, { amount: '10' });
    const second = await capture(payment, { amount: '30' });
    const { record } = await undo(payment, { amount: '25' });
    expect(record.transactions?.parentTransactionId).toBe(second.record.transactions?.id);
  });

  it.each(['100', '10'])(
    'cancel-or-refund of %s is refused for an authorization, and the error names the method to call',
    async (amount) => {
      const payment = await payments.pay({ capture: false });
      await expect(undo(payment, { amount })).rejects.toMatchObject(HELD);
      expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
      expect(payments.provider.bookOf(idOf(payment)).released).toBe(false);
    },
  );

  it('cancel-or-refund with an amount is a different request from one without', async () => {
    const payment = await payments.pay();
    await undo(payment, { amount: '40', key: 'u' });
    expect((await undo(payment, { amount: '40', key: 'u' })).replayed).toBe(true);
    await expect(undo(payment, { key: 'u' })).rejects.toMatchObject({ reason: 'IDEMPOTENCY_KEY_REUSED' });
  });
});

it('the decline of an operation is shown in its transaction, and leaves the payment unchanged', async () => {
  const payment = await payments.pay({ capture: false });
  payments.provider.next.push('declines it', 'declines it');
  const { record } = await capture(payment, { amount: '50' });
  expect(shown(record)).toBe('SUCCEEDED/APPROVED ← CAPTURE DECLINED 50.00 ← captured 0.00, refunded 0.00');
  expect(record.transactions?.responseCode).toBe('INSUFFICIENT_FUNDS');
  expect(shown((await cancel(payment)).record)).toMatch(/^SUCCEEDED.APPROVED ← CANCEL DECLINED 100.00/);
  expect(shown((await capture(payment, { amount: '50' })).record)).toMatch(/^SUCCEEDED.PARTIALLY_CAPTURED/);
});

it('concurrent refunds never exceed the amount taken', async () => {
  const payment = await payments.pay();
  const answers = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) => refund(payment, { amount: '30', key: `race-${i}` })),
  );
  for (const answer of answers) {
    if (answer.status === 'rejected') {
      expect(answer.reason).toMatchObject({
        reason: expect.stringMatching(/^(OPERATION_IN_PROGRESS|INVALID_AMOUNT)$/),
      });
    }
  }
  const { refunded } = payments.provider.bookOf(payment.transactions?.id ?? '');
  expect(refunded <= 10_000n).toBe(true);
  expect(refunded > 0n).toBe(true);
});
