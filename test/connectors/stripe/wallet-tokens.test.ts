import type { JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CARD_BRANDS } from '#src/card-number.ts';
import type { CardOptions, PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { cardAttempt, tokenAttempt } from '../attempts.ts';
import { openedForEach } from '../under-test.ts';
import { lookUp, openStripe } from './stripe-under-test.ts';

const stripe = openedForEach(() => openStripe({ settings: { apple_pay_tokens: true } }));

/** A charge in the fake's ledger. */
type ChargeOfCard = JsonObject & { payment_method_details: { card: { brand: string } } };

const DECLINED = '4000000000009995';
const CHALLENGED = '4000002760003184';
const TOKENS = /tokens$/;

const requestsOf = (call: RegExp) => stripe.fake.requests.filter((request) => call.test(request.call));

function walletAttempt(type: string, answer: unknown, options: Partial<CardOptions> = {}): PaymentAttempt {
  return tokenAttempt(type, typeof answer === 'string' ? answer : JSON.stringify(answer), {}, options);
}

/** The answer of Google Pay, whose token is one of Stripe's. */
function googlePay(token: unknown): JsonObject {
  const tokenizationData = { type: 'PAYMENT_GATEWAY', token: JSON.stringify(token) };
  return {
    apiVersion: 2,
    paymentMethodData: { type: 'CARD', info: { cardNetwork: 'VISA' }, tokenizationData },
  };
}

const googleAttempt = (number?: string, options?: Partial<CardOptions>) =>
  walletAttempt('GOOGLE_PAY', googlePay(stripe.fake.ledger.createToken('google_pay', number)), options);

const APPLE = {
  paymentData: { version: 'EC_v1', data: 'ciphertext', signature: 'signed', header: { transactionId: 'ab' } },
  paymentMethod: { displayName: 'Visa 4242', network: 'Visa', type: 'debit' },
  transactionIdentifier: 'AB12',
};

describe('a token of Google Pay', () => {
  it("a payment by Google Pay charges Stripe's token, and reports the card behind it", async () => {
    const attempt = googleAttempt();
    const outcome = await stripe.connection.pay(attempt);
    expect(outcome).toMatchObject({
      kind: 'approved',
      card: { brand: 'VISA', lastFour: '4242', expirationMonth: 12, expirationYear: 30, type: 'CREDIT' },
    });
    const [made] = requestsOf(/methods$/);
    expect(made?.fields).toMatchObject({ type: 'card', card: { token: expect.stringMatching(/^tok_/) } });
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({
      kind: 'approved',
      card: { lastFour: '4242' },
    });
    expect(await lookUp(stripe, attempt, undefined)).toMatchObject({ kind: 'approved' });
  });

  it('an authorization by Google Pay is held, and a decline and a challenge are those of its card', async () => {
    expect(await stripe.connection.pay(googleAttempt(undefined, { capture: false }))).toMatchObject({
      ...{ kind: 'approved', providerData: { status: 'requires_capture' } },
    });
    expect(await stripe.connection.pay(googleAttempt(DECLINED))).toMatchObject({
      kind: 'declined',
      iso8583Code: '51',
    });
    expect(await stripe.connection.pay(googleAttempt(CHALLENGED))).toMatchObject({ kind: 'awaits_payer' });
  });

  it.each([
    ['visa', 'VISA'],
    ['amex', 'AMERICAN_EXPRESS'],
    ['diners', 'DINERS_CLUB'],
    ['unionpay', 'UNIONPAY'],
  ])('a card of the brand that Stripe names %s has the brand %s', async (brand, ours) => {
    const attempt = googleAttempt();
    const outcome = await stripe.connection.pay(attempt);
    for (const made of stripe.fake.ledger.charges.values()) {
      (made as ChargeOfCard).payment_method_details.card.brand = brand;
    }
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'approved', card: { brand: ours } });
    expect(CARD_BRANDS).toContain(ours);
  });

  it('a token that was used before makes no payment', async () => {
    const first = googleAttempt();
    await stripe.connection.pay(first);
    const again = { ...cardAttempt(), method: first.method };
    expect(await stripe.connection.pay(again)).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    expect(requestsOf(/confirm$/)).toHaveLength(1);
  });

  it.each([
    ['another provider', { id: 'sandbox-token', object: 'token' }],
    ['a card', { id: 'tok_1', object: 'card' }],
    ['encrypted data', { protocolVersion: 'ECv2', signedMessage: 'secret-message' }],
  ])('a token for %s is refused before anything is sent, and never shown', async (_what, token) => {
    const outcome = await stripe.connection.pay(walletAttempt('GOOGLE_PAY', googlePay(token)));
    expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    expect(JSON.stringify(outcome)).not.toMatch(/tok_1|secret-message|sandbox-token/);
    expect(stripe.fake.requests).toEqual([]);
  });

  it.each(['{}', '[]', 'null', 'text', '{"paymentMethodData":{"tokenizationData":{"token":"{"}}}'])(
    'an answer of Google Pay without a token is refused before anything is sent: %s',
    async (answer) => {
      expect(await stripe.connection.pay(walletAttempt('GOOGLE_PAY', answer))).toMatchObject({
        kind: 'not_sent',
      });
      expect(stripe.fake.requests).toEqual([]);
    },
  );
});

describe('a token of Apple Pay', () => {
  it.each([
    ['the token', APPLE],
    ['the payment', { token: APPLE, billingContact: { givenName: 'Ana' } }],
  ])(
    'a payment by Apple Pay with %s makes a token, which charges nothing, and charges its card',
    async (_what, answer) => {
      const attempt = walletAttempt('APPLE_PAY', answer);
      expect(await stripe.connection.pay(attempt)).toMatchObject({
        kind: 'approved',
        card: { brand: 'VISA' },
      });
      const [made] = requestsOf(TOKENS);
      expect(made).toMatchObject({
        key: `${attempt.transactionId}:token`,
        fields: {
          pk_token: JSON.stringify(APPLE.paymentData),
          pk_token_instrument_name: 'Visa 4242',
          pk_token_payment_network: 'Visa',
          pk_token_transaction_id: 'AB12',
        },
      });
    },
  );

  it.each(['lost_before', 'lost_after', 'error_after'] as const)(
    'a payment by Apple Pay whose token gets no response (%s) did not happen',
    async (fault) => {
      stripe.fake.fail(TOKENS, fault);
      expect(await stripe.connection.pay(walletAttempt('APPLE_PAY', APPLE))).toMatchObject({
        kind: 'not_sent',
      });
      expect(stripe.fake.ledger.intents.size).toBe(0);
    },
  );

  it('a payment by Apple Pay is refused if Stripe refuses the token, or the answer has none', async () => {
    const body = { error: { type: 'invalid_request_error', code: 'parameter_unknown', param: 'pk_token' } };
    stripe.fake.fail(TOKENS, { answer: { status: 400, body } });
    expect(await stripe.connection.pay(walletAttempt('APPLE_PAY', APPLE))).toMatchObject({
      ...{ kind: 'not_sent', because: 'turned_away', refused: 'pk_token' },
    });
    expect(await stripe.connection.pay(walletAttempt('APPLE_PAY', { token: 'x' }))).toMatchObject({
      kind: 'not_sent',
    });
    expect(requestsOf(TOKENS)).toHaveLength(1);
  });

  it('a payment by Apple Pay is sent only with the setting for it', async () => {
    const plain = await openStripe();
    expect(plain.connection.capabilities.walletTokens).toEqual(['GOOGLE_PAY']);
    expect(stripe.connection.capabilities.walletTokens).toEqual(['GOOGLE_PAY', 'APPLE_PAY']);
    expect(await plain.connection.pay(walletAttempt('APPLE_PAY', APPLE))).toMatchObject({ kind: 'not_sent' });
    expect(plain.fake.requests).toEqual([]);
    await plain.close();
  });
});
