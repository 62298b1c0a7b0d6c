import { describe, expect, it } from 'vitest';
import { cardAttempt } from '../attempts.ts';
import { openedForEach } from '../under-test.ts';
import { openStripe } from './stripe-under-test.ts';

const stripe = openedForEach(openStripe);

const approve = '4242424242424242';
const METHODS = /^POST .*methods$/;
const CREATE = /^POST .*intents$/;

describe('a request lost before the confirmation', () => {
  it.each([
    ['the payment method', METHODS],
    ['the intent', CREATE],
  ])('a payment is not sent to Stripe if the response that makes %s is lost', async (_what, call) => {
    for (const fault of ['lost_before', 'lost_after', 'silent', 'error_after'] as const) {
      const fresh = await openStripe();
      fresh.fake.fail(call, fault);
      const outcome = await (fault === 'silent' ? fresh.impatient : fresh.connection).pay(
        cardAttempt(approve),
      );
      expect(outcome).toMatchObject({ kind: 'not_sent', because: 'unreachable' });
      expect(fresh.fake.calls()).not.toContain('POST /v1/payment_intents/{id}/confirm');
      await fresh.close();
    }
  });

  it.each([{ amount: 1 }, { id: 'in_1' }])(
    'a created intent with another field raises an alarm: %j',
    async (other) => {
      const attempt = cardAttempt(approve);
      await stripe.connection.pay(attempt);
      const body = { ...stripe.intent(), status: 'requires_payment_method', ...other };
      stripe.fake.fail(CREATE, { answer: { status: 200, body } });
      const outcome = await stripe.connection.pay(attempt);
      expect(outcome).toMatchObject({ kind: 'unknown', detail: expect.stringMatching(/^alarm: /) });
    },
  );

  it.each([{ object: 'source', id: 'pm_1' }, { object: 'payment_method' }])(
    'a payment is not sent to Stripe if the response is not a payment method: %j',
    async (body) => {
      stripe.fake.fail(METHODS, { answer: { status: 200, body } });
      expect(await stripe.connection.pay(cardAttempt(approve))).toMatchObject({ kind: 'not_sent' });
      expect(stripe.fake.calls()).not.toContain('POST /v1/payment_intents/{id}/confirm');
    },
  );
});
