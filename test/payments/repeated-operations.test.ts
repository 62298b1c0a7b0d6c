import { describe, expect, it } from 'vitest';
import { restBody } from '../support/stored-responses.ts';
import { capture, idOf, onOperatedPayments, payments, refund, undo } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction' });

it('an operation that moves money is refused without a key and a reference, and nothing is sent', async () => {
  const [authorized, purchased] = [await payments.pay({ capture: false }), await payments.pay()];
  const moved = payments.provider.moved.length;
  for (const [operate, payment] of [
    [capture, authorized],
    [refund, purchased],
    [undo, purchased],
  ] as const) {
    await expect((async () => operate(payment, { key: null }))()).rejects.toMatchObject({
      reason: 'IDEMPOTENCY_KEY_MISSING',
      fields: [{ field: 'x-idempotency-key' }],
    });
  }
  expect(payments.provider.moved).toHaveLength(moved);
});

it('the key made from a reference contains the payment id in lower case, as every release stores it', async () => {
  const payment = await payments.pay();
  await refund({ ...payment, id: payment.id.toUpperCase() }, { reference: 'r-1', key: null });
  const [row] = await payments.tables.query(
    "SELECT idempotency_key, merchant_reference FROM transaction WHERE type = 'REFUND'",
  );
  expect(row).toEqual({ idempotency_key: `\u0001${payment.id}\u0001r-1`, merchant_reference: 'r-1' });
});

describe('a repeated operation', () => {
  it('an operation repeated with its key or merchant_reference gets the same bytes; another is refused', async () => {
    const payment = await payments.pay();
    const first = await refund(payment, { amount: '10', key: 'refund-1' });
    const again = await refund(payment, { amount: '10', key: 'refund-1' });
    expect(again.replayed).toBe(true);
    expect(Buffer.compare(restBody(again), restBody(first))).toBe(0);
    await expect(refund(payment, { amount: '11', key: 'refund-1' })).rejects.toMatchObject({
      reason: 'IDEMPOTENCY_KEY_REUSED',
      fields: [{ field: 'x-idempotency-key' }],
    });
    const byReference = await refund(payment, { amount: '20', reference: 'r-2', key: null });
    expect((await refund(payment, { amount: '20', reference: 'r-2', key: null })).replayed).toBe(true);
    await expect(refund(payment, { amount: '21', reference: 'r-2', key: null })).rejects.toMatchObject({
      reason: 'IDEMPOTENCY_KEY_REUSED',
      fields: [{ field: 'merchant_reference' }],
    });
    expect(byReference.record.amount?.refunded?.value).toBe('30.00');
  });

  it.each([
    ['first without a key', null, 'refund-1'],
    ['first with a key', 'refund-1', null],
  ])(
    'an operation sent twice with one merchant_reference, only once with a key, is made once: %s',
    async (_what, first, second) => {
      const payment = await payments.pay();
      const asked = { amount: '10', reference: 'r-1' };
      const made = await refund(payment, { ...asked, key: first });
      const again = await refund(payment, { ...asked, key: second });
      expect([again.replayed, Buffer.compare(restBody(again), restBody(made))]).toEqual([true, 0]);
      await expect(refund(payment, { ...asked, amount: '11', key: second })).rejects.toMatchObject({
        reason: 'IDEMPOTENCY_KEY_REUSED',
        fields: [{ field: 'merchant_reference' }],
      });
      expect(payments.provider.bookOf(idOf(payment)).refunded).toBe(1_000n);
    },
  );

  it('a merchant_reference that is used again with another key is refused, and nothing is sent', async () => {
    const payment = await payments.pay();
    const asked = { amount: '10', reference: 'r-1' };
    await refund(payment, { ...asked, key: 'refund-1' });
    await expect(refund(payment, { ...asked, key: 'refund-2' })).rejects.toMatchObject({
      reason: 'IDEMPOTENCY_KEY_REUSED',
      fields: [{ field: 'merchant_reference', message: 'was already used with another x-idempotency-key' }],
    });
    expect(payments.provider.bookOf(idOf(payment)).refunded).toBe(1_000n);
    // Another payment, or another operation, has its own references.
    await refund(await payments.pay(), { ...asked, key: 'refund-3' });
    expect((await undo(payment, { reference: 'r-1' })).replayed).toBe(false);
  });

  it('twenty concurrent requests with one merchant_reference, half of them with keys, make one refund', async () => {
    const payment = await payments.pay();
    const answers = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        refund(payment, { amount: '10', reference: 'r-1', key: i % 2 === 0 ? null : `refund-${i}` }),
      ),
    );
    for (const answer of answers) {
      if (answer.status === 'rejected')
        expect(answer.reason).toMatchObject({ reason: 'IDEMPOTENCY_KEY_REUSED' });
    }
    expect(answers.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThanOrEqual(10);
    expect(payments.provider.bookOf(idOf(payment)).refunded).toBe(1_000n);
  });

  it('an operation repeated in upper case, or by a longer path to its transaction, is the same request', async () => {
    const authorized = await payments.pay({ capture: false });
    const upper = { ...authorized, id: authorized.id.toUpperCase() };
    const id = idOf(authorized);
    const captured = await capture(authorized, { key: 'c' });
    for (const [of, transactionId] of [
      [authorized, id],
      [authorized, id.toUpperCase()],
      [upper, ''],
      [upper, id],
    ] as const) {
      expect((await capture(of, { key: 'c', transactionId })).replayed).toBe(true);
    }
    const refunded = await refund(authorized, { key: 'r', transactionId: id.toUpperCase() });
    expect((await refund(upper, { key: 'r' })).replayed).toBe(true);
    // The service chose the only capture, so its ID requests the same.
    const transactionId = captured.record.transactions?.id ?? '';
    expect((await refund(authorized, { key: 'r', transactionId })).replayed).toBe(true);
    expect((await refund(authorized, { key: 'r', transactionId: id })).replayed).toBe(true);
    // A refund's own ID stands for the capture that it refunded.
    const own = refunded.record.transactions?.id ?? '';
    expect((await refund(authorized, { key: 'r', transactionId: own })).replayed).toBe(true);
  });

  it('a refund sent a hundred times at once with one key is made once', async () => {
    const payment = await payments.pay();
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => refund(payment, { amount: '10', key: 'one' })),
    );
    expect(new Set(answers.map((answer) => `${restBody(answer)}`)).size).toBe(1);
    expect(payments.provider.bookOf(payment.transactions?.id ?? '').refunded).toBe(1_000n);
  });
});
