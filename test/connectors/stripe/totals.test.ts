import { describe, expect, it } from 'vitest';
import type { CardOptions } from '#src/connectors/port/attempt.ts';
import { cardAttempt, operationOn } from '../attempts.ts';
import { openedForEach } from '../under-test.ts';
import { AUTHORIZE, cardWith, lookUp, openStripe, paid } from './stripe-under-test.ts';

const stripe = openedForEach(openStripe);

const dashboard = () => stripe.fake.ledger;
const refundThere = (amount: number) =>
  dashboard().refund({ payment_intent: String(stripe.intent().id), amount });

async function payment(options: Partial<CardOptions> | object = {}) {
  const made = await paid(stripe, cardWith('4242424242424242', options));
  return { ...made, told: () => lookUp(stripe, made.attempt, made.outcome) };
}

describe('captured and refunded amounts in look-ups at Stripe', () => {
  it('a look-up reports the captured and refunded amounts of a purchase, no matter who made the refund', async () => {
    const { attempt, reference, told } = await payment();
    expect(await told()).toMatchObject({ totals: { captured: 300_000n, refunded: 0n } });
    expect(stripe.fake.calls()).not.toContain('GET /v1/refunds');
    const money = { minorUnits: 1_000n, currency: 'USD' };
    await stripe.connection.refund?.(operationOn(attempt, reference, { money }));
    refundThere(2_500);
    expect(await told()).toMatchObject({ totals: { captured: 300_000n, refunded: 3_500n } });
  });

  it.each(['pending', 'failed', 'canceled', 'requires_action'])(
    'a look-up reports no refund with the status %s',
    async (status) => {
      const { told } = await payment();
      refundThere(1_000);
      dashboard().mode.refundStatus = status;
      refundThere(2_500);
      expect(await told()).toMatchObject({ totals: { refunded: 1_000n } });
    },
  );

  it('a look-up of an authorization reports the captured amount, and the release is not a refund', async () => {
    const { told } = await payment(AUTHORIZE);
    expect(await told()).toMatchObject({ totals: { captured: 0n, refunded: 0n } });
    dashboard().capture(String(stripe.intent().id), { amount_to_capture: 200_000 });
    expect([...dashboard().refunds.values()]).toMatchObject([{ amount: 100_000 }]);
    expect(await told()).toMatchObject({ totals: { captured: 200_000n, refunded: 0n } });
    refundThere(4_000);
    expect(await told()).toMatchObject({ totals: { captured: 200_000n, refunded: 4_000n } });
    // A refund of exactly the released amount still counts as a refund.
    refundThere(100_000);
    expect(await told()).toMatchObject({ totals: { captured: 200_000n, refunded: 104_000n } });
  });

  it('a look-up counts the release once, even if a failed refund or one of our refunds has the same amount', async () => {
    const { attempt, reference, told } = await payment(AUTHORIZE);
    dashboard().capture(String(stripe.intent().id), { amount_to_capture: 200_000 });
    dashboard().mode.refundStatus = 'failed';
    refundThere(100_000);
    expect(await told()).toMatchObject({ totals: { refunded: 0n } });
    dashboard().mode.refundStatus = 'succeeded';
    const money = { minorUnits: 100_000n, currency: 'USD' };
    await stripe.connection.refund?.(operationOn(attempt, reference, { money }));
    expect(await told()).toMatchObject({ totals: { refunded: 100_000n } });
    // If the release is not listed after all, our refund still counts.
    for (const id of [...dashboard().refunds.keys()].slice(0, 2)) dashboard().refunds.delete(id);
    expect(await told()).toMatchObject({ totals: { refunded: 100_000n } });
  });

  it('a refund of exactly the released amount counts as a refund, even if the release is not listed', async () => {
    const { told } = await payment(AUTHORIZE);
    dashboard().capture(String(stripe.intent().id), { amount_to_capture: 200_000 });
    const [release = ''] = dashboard().refunds.keys();
    dashboard().refunds.delete(release);
    refundThere(100_000);
    const [{ id } = {}] = dashboard().refunds.values();
    expect(await told()).toMatchObject({
      totals: { refunded: 100_000n, movements: [{ type: 'CAPTURE' }, { providerPaymentId: id }] },
    });
  });

  it('a look-up reports totals in ISO 4217 units', async () => {
    const attempt = cardAttempt('4242424242424242', { money: { minorUnits: 5_000n, currency: 'ISK' } });
    const { outcome } = await paid(stripe, attempt);
    refundThere(2_500);
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({
      totals: { captured: 5_000n, refunded: 25n },
    });
  });

  it('a look-up reports no totals if its refunds are unreadable', async () => {
    const { told } = await payment();
    refundThere(1_000);
    stripe.fake.fail(/^GET .*refunds$/, 'lost_after');
    expect(await told()).toMatchObject({ kind: 'unknown' });
    const list = { object: 'list', data: [], has_more: true };
    stripe.fake.fail(/^GET .*refunds$/, { answer: { status: 200, body: list } });
    expect(await told()).toMatchObject({ kind: 'unknown' });
    const [refund] = dashboard().refunds.values();
    Object.assign(refund ?? {}, { currency: 'eur' });
    expect(await told()).toMatchObject({ kind: 'unknown', alarm: true });
  });
});
