import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { cardAttempt, operationOn } from '../attempts.ts';
import { lookUpOperation, openedForEach } from '../under-test.ts';
import { AUTHORIZE, cardWith, lookUp, openStripe, paid } from './stripe-under-test.ts';

const stripe = openedForEach(openStripe);

const approve = '4242424242424242';
const DOLLAR = { money: { minorUnits: 100n, currency: 'USD' } };

describe('operations at Stripe', () => {
  it('a capture at Stripe takes part of an authorization once and releases the rest', async () => {
    const { attempt, reference } = await paid(stripe, cardWith(approve, AUTHORIZE));
    const part = operationOn(attempt, reference, { money: { minorUnits: 100_000n, currency: 'USD' } });
    const captured = await stripe.connection.capture?.(part);
    expect(captured).toMatchObject({ kind: 'approved' });
    // A dispute names the intent, which must lead only to the payment.
    expect(captured).not.toHaveProperty('reference');
    expect(stripe.intent()).toMatchObject({ amount_received: 100_000, amount_capturable: 0 });
    // Stripe refuses another capture because of the intent's state, which alone does not show the cause.
    const another = { ...part, transactionId: randomUUID() };
    expect(await stripe.connection.capture?.(another)).toMatchObject({ kind: 'unknown' });
    expect(await lookUpOperation(stripe, 'capture', another)).toMatchObject({ kind: 'not_sent' });
    expect(await lookUpOperation(stripe, 'capture', part)).toMatchObject({ kind: 'approved' });
  });

  it.each([
    ['no mark', undefined, 'approved'],
    ["another capture's mark", randomUUID(), 'unknown'],
  ] as const)(
    'a capture at Stripe is never reported as not made if Stripe responds with %s',
    async (_, mark, kind) => {
      const { attempt, reference } = await paid(stripe, cardWith(approve, AUTHORIZE));
      const capture = operationOn(attempt, reference);
      await stripe.connection.capture?.(capture);
      const { capture_transaction_id: _ours, ...metadata } = stripe.intent().metadata as JsonObject;
      Object.assign(stripe.intent(), {
        metadata: { ...metadata, ...(mark && { capture_transaction_id: mark }) },
      });
      const answer = { status: 200, body: stripe.intent() };
      stripe.fake.fail(/capture$/, { answer });
      expect(await stripe.connection.capture?.(capture)).toMatchObject({ kind, alarm: true });
    },
  );

  it.each([
    ['of the same amount matches, with an alarm', 300_000n, { kind: 'approved', alarm: true }],
    ['of another amount shows that the lost one was never made', 100_000n, { kind: 'not_sent' }],
  ])('when a lost capture is looked up, a capture without a mark %s', async (_, minorUnits, expected) => {
    const { attempt, reference } = await paid(stripe, cardWith(approve, AUTHORIZE));
    stripe.fake.ledger.capture(String(reference), { amount_to_capture: 300_000 });
    const money = { minorUnits, currency: 'USD' };
    const lost = operationOn(attempt, reference, { money });
    expect(await lookUpOperation(stripe, 'capture', lost)).toMatchObject(expected);
  });

  it('a cancel at Stripe releases an authorization', async () => {
    const { attempt, reference } = await paid(stripe, cardWith(approve, AUTHORIZE));
    const cancel = operationOn(attempt, reference, { reason: 'DUPLICATE' });
    expect(await stripe.connection.cancel?.(cancel)).toMatchObject({ kind: 'approved' });
    expect(stripe.intent()).toMatchObject({ status: 'canceled', cancellation_reason: 'duplicate' });
    expect(await lookUpOperation(stripe, 'cancel', cancel)).toMatchObject({ kind: 'approved' });
  });

  it('a look-up finds that a lapsed authorization at Stripe has expired', async () => {
    const { attempt, outcome, reference } = await paid(stripe, cardWith(approve, AUTHORIZE));
    stripe.fake.advance(8 * 24 * 3_600_000);
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'expired' });
    const capture = operationOn(attempt, reference);
    expect(await stripe.connection.capture?.(capture)).toMatchObject({ kind: 'unknown' });
    expect(await lookUpOperation(stripe, 'capture', capture)).toMatchObject({ kind: 'not_sent' });
  });

  it('refunds at Stripe are made in parts up to the captured amount', async () => {
    const { attempt, reference } = await paid(stripe);
    const refund = (minorUnits: bigint) =>
      stripe.connection.refund?.(
        operationOn(attempt, reference, { money: { minorUnits, currency: 'USD' }, reason: 'FRAUDULENT' }),
      );
    expect(await refund(100_000n)).toMatchObject({
      kind: 'approved',
      reference: expect.stringMatching(/^re_/),
    });
    expect(await refund(200_000n)).toMatchObject({ kind: 'approved' });
    expect(await refund(1n)).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    const refunds = [...stripe.fake.ledger.refunds.values()];
    expect(refunds).toMatchObject([
      { amount: 100_000, reason: 'fraudulent' },
      { amount: 200_000, reason: 'fraudulent' },
    ]);
  });

  it.each([
    ['pending', 'pending'],
    ['failed', 'declined'],
  ] as const)('a refund that is %s at Stripe is %s', async (status, kind) => {
    const { attempt, reference } = await paid(stripe);
    stripe.fake.ledger.mode.refundStatus = status;
    const refund = operationOn(attempt, reference);
    expect(await stripe.connection.refund?.(refund)).toMatchObject({ kind });
    expect(await lookUpOperation(stripe, 'refund', refund)).toMatchObject({ kind });
  });

  const DINARS = { minorUnits: 1_001n, currency: 'KWD' };
  it.each([
    ['the payment was never reported', cardAttempt(approve), undefined, {}],
    ['Stripe cannot express its amount', cardAttempt(approve), 'pi_1', { money: DINARS }],
    ["Stripe cannot express the payment's amount", cardAttempt(approve, { money: DINARS }), 'pi_1', DOLLAR],
  ])(
    'an operation at Stripe is turned away if %s, and not looked up',
    async (_why, attempt, reference, over) => {
      const operation = operationOn(attempt, reference, over);
      for (const call of ['capture', 'cancel'] as const) {
        expect(await stripe.connection[call]?.(operation)).toMatchObject({ kind: 'not_sent' });
        expect(await lookUpOperation(stripe, call, operation)).toMatchObject({ kind: 'unknown' });
      }
      expect(stripe.fake.requests).toEqual([]);
    },
  );

  it.each([
    [undefined, {}],
    ['pi_1', { money: DINARS }],
  ])(
    'a refund at Stripe of an unknown payment or an inexpressible amount is turned away: %s',
    async (reference, over) => {
      const operation = operationOn(cardAttempt(approve), reference, over);
      expect(await stripe.connection.refund?.(operation)).toMatchObject({ kind: 'not_sent' });
      expect(await lookUpOperation(stripe, 'refund', operation)).toMatchObject({ kind: 'unknown' });
      expect(stripe.fake.requests).toEqual([]);
    },
  );

  it('an authorization at Stripe that covers another amount leaves the outcome unknown, with an alarm', async () => {
    const { attempt, outcome } = await paid(stripe, cardWith(approve, AUTHORIZE));
    Object.assign(stripe.intent(), { amount_capturable: 1 });
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'unknown', alarm: true });
  });
});
