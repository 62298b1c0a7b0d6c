import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { lookUp, openedForEach } from '../under-test.ts';
import { FAKE_ACCESS_TOKEN } from './fake-mercado-pago.ts';
import { attemptInPesos, openMercadoPago, paid, refundOf } from './mercado-pago-under-test.ts';

const under = openedForEach(openMercadoPago);

/** A payment of 3000.50 ARS, and the look-up prompted by its notification. */
async function payment() {
  const { attempt, payment, reference } = await paid(under);
  const id = String(payment.id);
  const refundThere = (amount: number, paymentId = id) =>
    fetch(`${under.fake.url}/v1/payments/${paymentId}/refunds`, {
      method: 'POST',
      headers: { authorization: `Bearer ${FAKE_ACCESS_TOKEN}`, 'x-idempotency-key': randomUUID() },
      body: JSON.stringify({ amount }),
    });
  const told = (hint = id) => lookUp(under, attempt, reference, { hint: { providerPaymentId: hint } });
  return { attempt, payment, id, reference, refundThere, told };
}

describe('refunded amounts in look-ups at Mercado Pago', () => {
  it('a look-up after a notification reports the refunded amount, even zero, no matter who made the refund', async () => {
    const { attempt, payment: paidThere, reference, refundThere, told } = await payment();
    expect(await told()).toMatchObject({ totals: { captured: 300_050n, refunded: 0n } });
    expect(under.fake.requests.some(({ path }) => path.endsWith('/refunds'))).toBe(false);
    await under.connection.refund?.(refundOf(attempt, reference, 100_000n));
    await refundThere(10.5);
    expect(await told()).toMatchObject({ kind: 'approved', totals: { refunded: 101_050n } });
    await refundThere(1_990);
    // The payment's status also says that everything was refunded.
    Object.assign(paidThere, { transaction_amount_refunded: undefined });
    expect(await told()).toMatchObject({ kind: 'approved', totals: { refunded: 300_050n } });
  });

  it.each(['in_process', 'rejected', 'cancelled'])(
    'a look-up reports no refund with the status %s',
    async (status) => {
      const { id, refundThere, told } = await payment();
      await refundThere(10);
      await refundThere(20);
      Object.assign(under.fake.refunds.get(id)?.[1] ?? {}, { status });
      expect(await told()).toMatchObject({ totals: { refunded: 1_000n } });
    },
  );

  it('a look-up reports no totals for a disputed payment or a second payment of the same preference', async () => {
    const { payment: first, told, refundThere } = await payment();
    const second = under.fake.pay(under.fake.preference());
    await refundThere(3_000.5, String(second.id));
    expect(await told(String(second.id))).not.toHaveProperty('totals');
    first.status = 'in_mediation';
    expect(await told()).not.toHaveProperty('totals');
  });

  it('a look-up that finds unreadable refunds reports no totals; its result is unknown or raises an alarm', async () => {
    const { id, refundThere, told } = await payment();
    await refundThere(10);
    under.fake.lose(/refunds$/, 'before');
    expect(await told()).toMatchObject({ kind: 'unknown' });
    for (const fault of [{ amount: 'ten' }, { amount: 10, payment_id: 1 }]) {
      Object.assign(under.fake.refunds.get(id)?.[0] ?? {}, fault);
      expect(await told()).toMatchObject({ kind: 'unknown', alarm: true });
    }
  });
});

it.each([1_000, 3_000.5])('a look-up without a notification reports that %d was refunded', async (amount) => {
  const { attempt, id, reference, refundThere } = await payment();
  await refundThere(amount);
  expect(await lookUp(under, attempt, reference)).toMatchObject({
    kind: 'approved',
    totals: {
      refunded: BigInt(amount * 100),
      movements: [{ type: 'REFUND', providerPaymentId: String(under.fake.refunds.get(id)?.[0]?.id) }],
    },
  });
});

it('a look-up without a notification reports no other totals, since its data may be outdated', async () => {
  const attempt = attemptInPesos();
  const { reference } = await paid(under, attempt);
  expect(await lookUp(under, attempt, reference)).not.toHaveProperty('totals');
});
