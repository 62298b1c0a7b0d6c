import type { JsonObject } from '@bufbuild/protobuf';
import Stripe from 'stripe';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NotificationReading } from '#src/connectors/port/connector.ts';
import { readEvent } from '#src/connectors/stripe/notifications.ts';
import { Secret } from '#src/secret.ts';
import { cardAttempt } from '../attempts.ts';
import { INTENT_ID, intentAnswer, REFUND_ID, refundAnswer } from './answers.ts';
import { stripeSignature } from './fake-wire.ts';
import { openStripe, paid, type StripeUnderTest } from './stripe-under-test.ts';

const NOW_MS = Date.UTC(2026, 10, 22);
const NOW_S = NOW_MS / 1000;
const [OLD, NEW] = ['whsec_old', 'whsec_new'];
const settings = {
  webhookSecrets: [new Secret(OLD), new Secret(NEW)],
  accountId: 'acct_1',
  isLive: false,
};
const attempt = cardAttempt();

function event(type: string, object: JsonObject, over: JsonObject = {}): string {
  return JSON.stringify({ id: 'evt_1', object: 'event', type, livemode: false, data: { object }, ...over });
}

const SUCCEEDED = event('payment_intent.succeeded', intentAnswer(attempt));

function read(
  body: string,
  signature: string | undefined,
  over: Partial<typeof settings> = {},
): NotificationReading {
  const notification = {
    header: (name: string) => (name === 'stripe-signature' ? signature : undefined),
    query: '',
    body: Buffer.from(body),
  };
  return readEvent(notification, { ...settings, ...over }, NOW_MS);
}

function readSigned(body: string, over: Partial<typeof settings> = {}): NotificationReading {
  return read(body, stripeSignature(body, [OLD], NOW_S), over);
}

describe('a notification from Stripe', () => {
  it('a Stripe notification of the creation of an intent is ignored, since the intent is unconfirmed', () => {
    const { kind } = readSigned(event('payment_intent.created', intentAnswer(attempt)));
    expect(kind).toBe('ignored');
  });

  it("the signature of Stripe's published test vector is verified", () => {
    const body = '{"id":"evt_test_webhook","object":"event"}';
    const signature = 't=1492774577,v1=88a022085c6bdb887b02cb26ff76dd681234d9675c0f22844059f55552a8883a';
    const notification = { header: () => signature, query: '', body: Buffer.from(body) };
    const webhookSecrets = [new Secret('whsec_test_secret')];
    const at = (seconds: number) => readEvent(notification, { ...settings, webhookSecrets }, seconds * 1000);
    // The notification is genuine, but reports nothing.
    expect(at(1492774577)).toEqual({ kind: 'ignored' });
    expect(at(1492774577 + 299)).toEqual({ kind: 'ignored' });
    expect(at(1492774577 + 301)).toMatchObject({ kind: 'forged' });
    expect(at(1492774577 - 301)).toMatchObject({ kind: 'forged' });
    // Milliseconds are not seconds.
    expect(at(1492774577 * 1000)).toMatchObject({ kind: 'forged' });
  });

  it("a signature by Stripe's own library is verified, and that library verifies ours", () => {
    const { webhooks } = new Stripe('sk_test_x', { apiVersion: '2023-08-16' });
    const signature = webhooks.generateTestHeaderString({
      payload: SUCCEEDED,
      secret: NEW,
      timestamp: NOW_S,
    });
    expect(read(SUCCEEDED, signature)).toMatchObject({ kind: 'about' });
    const ours = stripeSignature(SUCCEEDED, [NEW], Math.floor(Date.now() / 1000));
    expect(webhooks.constructEvent(SUCCEEDED, ours, NEW)).toMatchObject({ id: 'evt_1' });
  });

  it.each([
    ['the old secret', [OLD]],
    ['the new secret', [NEW]],
    ['both, as during a rotation', [OLD, NEW]],
    ['another and one of ours', ['whsec_other', NEW]],
  ])('a Stripe notification is genuine if it is signed with %s', (_what, secrets) => {
    expect(read(SUCCEEDED, stripeSignature(SUCCEEDED, secrets, NOW_S))).toEqual({
      kind: 'about',
      deduplicationKey: 'evt_1',
      subjects: [{ transactionId: attempt.transactionId, providerPaymentId: INTENT_ID }],
    });
  });

  const good = stripeSignature(SUCCEEDED, [OLD], NOW_S);
  it.each([
    ['no signature', undefined],
    ['an empty signature', ''],
    ["another account's secret", stripeSignature(SUCCEEDED, ['whsec_other'], NOW_S)],
    ['a signature of another body', stripeSignature(`${SUCCEEDED} `, [OLD], NOW_S)],
    ['a time that was changed', good.replace(`t=${NOW_S}`, `t=${NOW_S + 1}`)],
    ['no time', good.replace(/^t=\d+,/, '')],
    ['a signature that is too old', stripeSignature(SUCCEEDED, [OLD], NOW_S - 301)],
    ['a signature from the future', stripeSignature(SUCCEEDED, [OLD], NOW_S + 301)],
    ['a time in milliseconds', stripeSignature(SUCCEEDED, [OLD], NOW_MS)],
    ['a scheme other than v1', good.replace('v1=', 'v0=')],
    ['a signature cut short', good.replace(/v1=(\w{63})\w/, 'v1=$1')],
    ['a signature that is not hexadecimal', good.replace(/v1=\w{64}/, `v1=${'z'.repeat(64)}`)],
  ])('a Stripe notification with %s is treated as forged', (_what, signature) => {
    const reading = read(SUCCEEDED, signature);
    expect(reading).toMatchObject({ kind: 'forged' });
    expect(JSON.stringify(reading)).not.toContain('whsec');
  });

  it('a Stripe notification is treated as forged if the connection has no secret', () => {
    expect(readSigned(SUCCEEDED, { webhookSecrets: [] })).toMatchObject({ kind: 'forged' });
  });

  it('a Stripe notification has the same key when it is delivered again', () => {
    const again = read(SUCCEEDED, stripeSignature(SUCCEEDED, [OLD], NOW_S - 200));
    expect(again).toEqual(readSigned(SUCCEEDED));
  });

  it.each([
    [
      'a live payment, to a test connection',
      event('payment_intent.succeeded', intentAnswer(attempt), { livemode: true }),
    ],
    ['a connected account', event('payment_intent.succeeded', intentAnswer(attempt), { account: 'acct_2' })],
    [
      'a payment that we did not make',
      event('payment_intent.succeeded', { ...intentAnswer(attempt), metadata: {} }),
    ],
    [
      'a payment with a foreign id',
      event('payment_intent.succeeded', { ...intentAnswer(attempt), metadata: { transaction_id: 'x' } }),
    ],
    [
      'a customer',
      event('customer.created', { object: 'customer', metadata: { transaction_id: attempt.transactionId } }),
    ],
    [
      'a dispute without its payment',
      event('charge.dispute.created', { object: 'dispute', status: 'lost', payment_intent: null }),
    ],
    ['an event without an object', JSON.stringify({ id: 'evt_1', type: 'refund.created', livemode: false })],
    ['an event with a foreign id', event('payment_intent.succeeded', intentAnswer(attempt), { id: 'x' })],
    [
      'an event without its mode',
      event('payment_intent.succeeded', intentAnswer(attempt), { livemode: null }),
    ],
    ['a type that only contains a payment', event('x.payment_intent.succeeded', intentAnswer(attempt))],
    ['a type that only contains a refund', event('x.refund.created', refundAnswer(attempt.transactionId, 1))],
    ['a refund event without a refund', event('refund.created', intentAnswer(attempt))],
    [
      'a payment event without a payment',
      event('payment_intent.succeeded', refundAnswer(attempt.transactionId, 1)),
    ],
    [
      'a type that only contains a capture',
      event('x.charge.captured', { object: 'charge', payment_intent: INTENT_ID }),
    ],
    [
      'a type that only begins with a capture',
      event('charge.captured.x', { object: 'charge', payment_intent: INTENT_ID }),
    ],
    ['nothing', '{}'],
    ['text that is not JSON', 'hello'],
    ['a list', '[]'],
  ])('a Stripe notification of %s is ignored', (_what, body) => {
    expect(readSigned(body)).toEqual({ kind: 'ignored' });
  });

  it('a Stripe notification whose object has no ID names only our transaction', () => {
    const body = event('payment_intent.succeeded', { ...intentAnswer(attempt), id: '' });
    const { transactionId } = attempt;
    expect(readSigned(body)).toMatchObject({ subjects: [{ transactionId }] });
    expect(readSigned(body)).not.toHaveProperty('subjects.0.providerPaymentId');
  });

  it('a Stripe notification whose type only begins like that of a creation is read', () => {
    expect(readSigned(event('payment_intent.created.x', intentAnswer(attempt)))).toMatchObject({
      kind: 'about',
    });
  });

  it('a Stripe notification that names our own account is read', () => {
    const body = event('payment_intent.succeeded', intentAnswer(attempt), { account: 'acct_1' });
    expect(readSigned(body)).toMatchObject({ kind: 'about' });
  });

  it.each(['requires_action', 'processing', 'succeeded', 'payment_failed', 'partially_funded', 'canceled'])(
    'a Stripe notification of the type payment_intent.%s is about the payment',
    (verb) => {
      const { transactionId } = attempt;
      expect(readSigned(event(`payment_intent.${verb}`, intentAnswer(attempt)))).toMatchObject({
        subjects: [{ transactionId, providerPaymentId: INTENT_ID }],
      });
    },
  );

  it.each(['refund.created', 'refund.updated', 'refund.failed', 'charge.refund.updated'])(
    'a Stripe notification of the type %s is about the refund',
    (type) => {
      const transactionId = '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11';
      expect(readSigned(event(type, refundAnswer(transactionId, 100)))).toMatchObject({
        subjects: [{ transactionId, providerPaymentId: REFUND_ID }],
      });
    },
  );

  it.each([
    ['refund.created', { ...refundAnswer('', 100), metadata: {} }],
    ['refund.updated', { ...refundAnswer('', 100), metadata: { transaction_id: 'theirs' } }],
    ['charge.refunded', { object: 'charge', payment_intent: INTENT_ID, metadata: {} }],
    ['charge.captured', { object: 'charge', payment_intent: INTENT_ID }],
  ])(
    'a Stripe notification of the type %s about an action in Stripe itself is about the payment',
    (type, object) => {
      expect(readSigned(event(type, object))).toMatchObject({ subjects: [{ providerPaymentId: INTENT_ID }] });
    },
  );

  it('a Stripe notification of a refund or a charge without a payment is ignored', () => {
    const body = event('charge.refunded', { object: 'charge', payment_intent: null });
    expect(readSigned(body)).toEqual({ kind: 'ignored' });
  });

  it('a Stripe notification of any other object that names a payment is ignored', () => {
    for (const [type, object] of [
      ['charge.succeeded', 'charge'],
      ['invoice.paid', 'invoice'],
      ['charge.refunded', 'refund'],
    ] as const) {
      const body = event(type, { object, payment_intent: INTENT_ID });
      expect(readSigned(body)).toEqual({ kind: 'ignored' });
    }
  });

  it.each([
    ['charge.dispute.created', 'needs_response', 'opened'],
    ['charge.dispute.updated', 'under_review', 'opened'],
    ['charge.dispute.closed', 'lost', 'lost'],
    ['charge.dispute.closed', 'won', 'won'],
    ['charge.dispute.created', 'lost', 'lost'],
  ])(
    'a Stripe notification of the type %s with the status %s reports the stage %s',
    (type, status, stage) => {
      const body = event(type, { object: 'dispute', status, payment_intent: INTENT_ID });
      expect(readSigned(body)).toMatchObject({
        subjects: [{ providerPaymentId: INTENT_ID, dispute: { stage } }],
      });
    },
  );

  it.each([
    ['warning_needs_response', 'INQUIRY', 'NEEDS_RESPONSE'],
    ['warning_under_review', 'INQUIRY', 'UNDER_REVIEW'],
    ['warning_closed', 'INQUIRY', 'CLOSED'],
    ['prevented', 'PRE_DISPUTE', 'CLOSED'],
    ['needs_response', 'CHARGEBACK', 'NEEDS_RESPONSE'],
    ['under_review', 'CHARGEBACK', 'UNDER_REVIEW'],
    ['won', 'CHARGEBACK', 'WON'],
    ['lost', 'CHARGEBACK', 'LOST'],
  ])('a Stripe dispute with the status %s is in the stage %s and %s', (status, stage, expected) => {
    const dispute = { object: 'dispute', id: 'dp_1', status, payment_intent: INTENT_ID };
    const details = {
      ...{ reason: 'product_not_received', network_reason_code: '13.1' },
      evidence_details: { due_by: 1_796_000_000 },
      balance_transactions: [{ amount: -2_500, fee: 1_500, currency: 'usd' }],
    };
    expect(readSigned(event('charge.dispute.updated', { ...dispute, ...details }))).toMatchObject({
      subjects: [
        {
          dispute: {
            case: {
              ...{ stage, status: expected, reason: 'NOT_RECEIVED', rawReason: 'product_not_received' },
              ...{ networkCode: '13.1', fee: { minorUnits: 1_500n, currency: 'USD' } },
              respondBy: new Date(1_796_000_000_000),
              link: 'https://dashboard.stripe.com/test/disputes/dp_1',
            },
          },
        },
      ],
    });
  });

  it.each([
    ['charge.dispute.created', [], undefined],
    ['charge.dispute.funds_withdrawn', [], 1],
    ['charge.dispute.updated', [-2_500], 1],
    ['charge.dispute.funds_reinstated', [], 2],
    ['charge.dispute.closed', [-2_500, 2_500], 2],
    ['charge.dispute.closed', [-2_500, 2_500, -2_500], 3],
  ] as [string, number[], number | undefined][])(
    'a Stripe notification %s with the balance transactions %j says how often the money has moved: %s',
    (type, amounts, moves) => {
      const dispute = { object: 'dispute', id: 'dp_1', status: 'needs_response', payment_intent: INTENT_ID };
      const balance_transactions = amounts.map((amount) => ({ id: 'txn_1', amount }));
      expect(readSigned(event(type, { ...dispute, balance_transactions }))).toMatchObject({
        subjects: [{ dispute: { stage: 'opened', moves } }],
      });
    },
  );

  it.each([
    ['usd', 2_500, { minorUnits: 2_500n, currency: 'USD' }],
    ['isk', 2_500, { minorUnits: 25n, currency: 'ISK' }],
    ['usd', '2500', undefined],
  ])(
    'a Stripe notification of a dispute reports its ID and the disputed money: %s %j',
    (currency, amount, money) => {
      const dispute = { object: 'dispute', id: 'dp_1', status: 'lost', payment_intent: INTENT_ID };
      expect(readSigned(event('charge.dispute.closed', { ...dispute, amount, currency }))).toMatchObject({
        subjects: [{ dispute: { stage: 'lost', reference: 'dp_1', money } }],
      });
    },
  );
});

describe('a notification from the fake', () => {
  let stripe: StripeUnderTest;
  beforeAll(async () => {
    stripe = await openStripe();
  });
  afterAll(() => stripe.close());

  it("the fake's notification names the transaction of its payment", async () => {
    const { attempt: made } = await paid(stripe);
    const { body, signature } = stripe.fake.notification('payment_intent.succeeded', stripe.intent());
    const notification = { header: () => signature, query: '', body: Buffer.from(body) };
    expect(await stripe.connection.readNotification?.(notification, stripe.fake.nowMs())).toMatchObject({
      kind: 'about',
      subjects: [{ transactionId: made.transactionId, providerPaymentId: stripe.intent().id }],
    });
  });
});
