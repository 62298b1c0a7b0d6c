import { expect, it } from 'vitest';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { cardAttempt, operationOn } from '../attempts.ts';
import { lookUpOperation, openedForEach } from '../under-test.ts';
import { refusal } from './answers.ts';
import { AUTHORIZE, lookUp, openStripe, paid } from './stripe-under-test.ts';

const APPROVE = '4242424242424242';

const stripe = openedForEach(openStripe);

function attemptWith(metadata: Record<string, string>, options: object = {}): PaymentAttempt {
  const entries = Object.entries(metadata).map(([key, value]) => ({ key, value }));
  return cardAttempt(APPROVE, { metadata: entries }, options);
}

const OURS = { merchant_order_id: 'order-1', merchant_reference: 'reference-1' };

it("the intent contains the merchant's metadata as well as our references, and a look-up repeats both", async () => {
  const { attempt, reference } = await paid(stripe, attemptWith({ channel: 'web', 'tag ñ': '日本' }));
  const { transactionId: transaction_id, paymentId: payment_id } = attempt;
  const all = { ...OURS, transaction_id, payment_id, channel: 'web', 'tag ñ': '日本' };
  expect(stripe.intent().metadata).toEqual(all);
  expect(await lookUp(stripe, attempt, undefined)).toMatchObject({ kind: 'approved', reference });
});

it('metadata that Stripe would refuse, or with our reserved names, is left out', async () => {
  const refused = {
    ['k'.repeat(41)]: 'v',
    long: 'v'.repeat(501),
    'a[b]': 'v',
    '': 'v',
    empty: '',
    transaction_id: 'mine',
    capture_transaction_id: 'mine',
    closed: 'mine',
    booking_reference: 'mine',
  };
  const kept = { ['k'.repeat(40)]: 'v'.repeat(500) };
  const { attempt } = await paid(stripe, attemptWith({ ...refused, ...kept }));
  const { transactionId: transaction_id, paymentId: payment_id } = attempt;
  expect(stripe.intent().metadata).toEqual({ ...OURS, transaction_id, payment_id, ...kept });
  expect(stripe.fake.calls().filter((call) => call === 'POST /v1/payment_intents')).toHaveLength(1);
});

it('fifty metadata pairs leave room for the note of a capture and the note of a closed capture', async () => {
  const pairs = Array.from({ length: 50 }, (_, at) => [`pair_${at}`, String(at)]);
  const { attempt, reference } = await paid(stripe, attemptWith(Object.fromEntries(pairs), AUTHORIZE));
  expect(stripe.intent().metadata).toMatchObject({ pair_0: '0', pair_42: '42' });
  expect(stripe.intent().metadata).not.toHaveProperty('pair_43');
  const lost = operationOn(attempt, reference);
  expect(await lookUpOperation(stripe, 'capture', lost, { close: true })).toMatchObject({ kind: 'not_sent' });
  expect(await stripe.connection.capture?.(operationOn(attempt, reference))).toMatchObject({
    kind: 'approved',
  });
});

it('the second request leaves out a metadata pair that Stripe refuses, but never our own reference', async () => {
  const refuse = (param: string) =>
    stripe.fake.fail(/POST .*intents$/, { answer: { status: 400, body: refusal({ param }) } });
  refuse('metadata[channel]');
  await paid(stripe, attemptWith({ channel: 'web', tag: 'a' }));
  expect(stripe.intent().metadata).toMatchObject({ ...OURS, tag: 'a' });
  expect(stripe.intent().metadata).not.toHaveProperty('channel');
  refuse('metadata[transaction_id]');
  expect(await stripe.connection.pay(attemptWith({}))).toMatchObject({
    kind: 'not_sent',
    refused: 'metadata[transaction_id]',
  });
});
