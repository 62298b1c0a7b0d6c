import { describe, expect, it } from 'vitest';
import { operationOn } from '../attempts.ts';
import { lookUp, lookUpOperation, openedForEach } from '../under-test.ts';
import { codeAttempt, coded, openAccount } from './mercado-pago-under-test.ts';

const under = openedForEach(() => openAccount('BR', 'BRL'));

async function paidByPix() {
  const { attempt, payment, reference, id } = await coded(under, codeAttempt('PIX'));
  under.fake.move(payment, 'approved', 'accredited');
  const refundOf = (minorUnits: bigint) =>
    operationOn(attempt, reference, { money: { minorUnits, currency: 'BRL' }, isWhole: false });
  return { attempt, reference, id, refundOf };
}

describe('refunds of Pix payments at Mercado Pago', () => {
  it('a Pix payment is refunded in parts', async () => {
    const { attempt, reference, id, refundOf } = await paidByPix();
    for (const part of [1_000_000n, 2_000_000n])
      expect(await under.connection.refund?.(refundOf(part))).toMatchObject({ kind: 'approved' });
    const told = { hint: { providerPaymentId: id } };
    expect(await lookUp(under, attempt, reference, told)).toMatchObject({ totals: { refunded: 3_000_000n } });
  });

  it('a refund that waits for the central bank is pending, although Mercado Pago would refuse it by default', async () => {
    const { attempt, reference, id, refundOf } = await paidByPix();
    under.fake.holdRefunds();
    const refund = refundOf(1_000_000n);
    const made = await under.connection.refund?.(refund);
    if (made?.kind !== 'pending') throw new Error(made?.kind);
    // The trap: without the header, the same request is refused and may go through.
    const path = `${under.fake.url}/v1/payments/${id}/refunds`;
    const headers = { authorization: 'Bearer APP_USR-fake-access-token', 'x-idempotency-key': 'another' };
    const body = JSON.stringify({ amount: 1 });
    expect((await fetch(path, { method: 'POST', headers, body })).status).toBe(400);
    expect(await (await fetch(path, { headers })).json()).toEqual([]);

    const at = () => lookUpOperation(under, 'refund', refund, { reference: made.reference });
    expect(await at()).toMatchObject({ kind: 'pending' });
    const told = { hint: { providerPaymentId: id }, isRefunded: true };
    expect(await lookUp(under, attempt, reference, told)).toMatchObject({ totals: { refunded: 0n } });
    Object.assign(under.fake.refunds.get(id)?.[0] ?? {}, { status: 'approved' });
    expect(await at()).toMatchObject({ kind: 'approved' });
  });

  it('a refund in process whose answer was lost is found, and is not made again', async () => {
    const { id, refundOf } = await paidByPix();
    under.fake.holdRefunds();
    under.fake.lose(/refunds$/, 'after');
    const refund = refundOf(1_000_000n);
    expect(await under.connection.refund?.(refund)).toMatchObject({ kind: 'unknown' });
    expect(await lookUpOperation(under, 'refund', refund)).toMatchObject({ kind: 'pending' });
    expect(under.fake.refunds.get(id)).toHaveLength(1);
  });
});
