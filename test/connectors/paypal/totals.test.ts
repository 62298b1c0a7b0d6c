import { describe, expect, it } from 'vitest';
import { operationOn } from '../attempts.ts';
import { lookUp, openedForEach } from '../under-test.ts';
import type { Json } from './fake-ledger.ts';
import { openPayPal, paid } from './paypal-under-test.ts';

const paypal = openedForEach(openPayPal);

/** A payment of 3000.00 USD, and its only order. */
async function payment() {
  const { attempt, reference } = await paid(paypal);
  const [order] = paypal.fake.ledger.orders.values();
  if (!order?.captures[0]) throw new Error('no capture');
  const { id, custom_id } = order.captures[0];
  const refundThere = (value: string) =>
    paypal.fake.ledger.refund(id, { amount: { currency_code: 'USD', value }, custom_id }, undefined);
  return { attempt, reference, order, refundThere, told: () => lookUp(paypal, attempt, reference) };
}

describe('refunded amounts in look-ups at PayPal', () => {
  it('a look-up reports the refunded amount, even zero, no matter who made the refund', async () => {
    const { attempt, reference, refundThere, told } = await payment();
    const totals = { captured: 300_000n, refunded: 0n, mayCountDisputes: true };
    expect(await told()).toMatchObject({ totals });
    const money = { minorUnits: 100_000n, currency: 'USD' };
    await paypal.connection.refund?.(operationOn(attempt, reference, { money }));
    refundThere('12.34');
    expect(await told()).toMatchObject({ kind: 'approved', totals: { refunded: 101_234n } });
  });

  it.each(['PENDING', 'FAILED', 'CANCELLED'])(
    'a look-up reports no refund with the status %s',
    async (status) => {
      const { refundThere, told } = await payment();
      refundThere('10');
      paypal.fake.ledger.refundStatuses.push(status);
      refundThere('20');
      expect(await told()).toMatchObject({ totals: { refunded: 1_000n } });
    },
  );

  it.each(['PENDING', 'DECLINED'])('a look-up reports no totals for a capture that is %s', async (status) => {
    const { order, told } = await payment();
    Object.assign(order.captures[0] ?? {}, { status });
    expect(await told()).not.toHaveProperty('totals');
  });

  it.each<[string, Json[]]>([
    ['lists no refund', []],
    [
      'has a refund in another currency',
      [{ status: 'COMPLETED', amount: { currency_code: 'EUR', value: '1.00' } }],
    ],
    ['has a refund without an amount', [{ status: 'COMPLETED' }]],
  ])('a look-up reports no totals, with an alarm, if the order %s', async (_how, refunds) => {
    const { order, refundThere, told } = await payment();
    refundThere('10');
    order.refunds.splice(0, 1, ...(refunds as typeof order.refunds));
    const outcome = await told();
    expect(outcome).toMatchObject({ kind: 'approved', alarm: true });
    expect(outcome).not.toHaveProperty('totals');
    expect(outcome).toMatchObject({ providerData: { responseMessage: expect.stringMatching(/^alarm: /) } });
  });
});

describe("PayPal's notifications of refunds", () => {
  const read = (resource: Json, type = 'PAYMENT.CAPTURE.REFUNDED') => {
    const event = { id: 'WH-refund-1', event_type: type, resource };
    return paypal.connection.readNotification?.(paypal.fake.notify(event), Date.now());
  };
  const linked = (captureId: string) => ({
    id: '09E71677NS257044M',
    links: [{ rel: 'up', href: `https://api.paypal.com/v2/payments/captures/${captureId}` }],
  });

  it.each(['PAYMENT.CAPTURE.REFUNDED', 'PAYMENT.REFUND.COMPLETED'])(
    'a refund notification without our ID is about the payment of its capture: %s',
    async (type) => {
      const { attempt, order } = await payment();
      expect(await read(linked(order.captures[0]?.id ?? ''), type)).toMatchObject({
        subjects: [{ transactionId: attempt.transactionId }],
      });
    },
  );

  it('a refund notification belongs to the payment whose ID its capture carries as the invoice ID alone', async () => {
    const { attempt, order } = await payment();
    const { id = '' } = order.captures[0] ?? {};
    paypal.fake.trouble(/captures/, { status: 200, body: { id, invoice_id: attempt.transactionId } });
    expect(await read(linked(id))).toMatchObject({ subjects: [{ transactionId: attempt.transactionId }] });
  });

  it('a refund notification with our ID is about our refund, whatever its capture', async () => {
    const transactionId = '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11';
    expect(await read({ ...linked('X'), custom_id: transactionId })).toMatchObject({
      subjects: [{ transactionId }],
    });
  });

  it("a refund notification for another application's capture is ignored", async () => {
    expect(await read(linked('00D10444LD479031K'))).toEqual({ kind: 'ignored' });
    expect(await read({ id: '09E71677NS257044M' })).toEqual({ kind: 'ignored' });
  });

  it('PayPal is asked to send a refund notification again if the refunded capture cannot be read', async () => {
    const { order } = await payment();
    paypal.fake.trouble(/captures/, 'error before');
    expect(await read(linked(order.captures[0]?.id ?? ''))).toMatchObject({ kind: 'send_again' });
  });
});
