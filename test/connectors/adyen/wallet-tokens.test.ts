import { create } from '@bufbuild/protobuf';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { StoredCredentialsSchema } from '#gen/payments/v1/payment_method_pb.js';
import { payersPage } from '#src/connectors/port/outcome.ts';
import { lookUpOf, operationOn } from '../attempts.ts';
import { type AdyenUnderTest, BROWSER, openAdyen, subjectOf, walletAttempt } from './adyen-under-test.ts';
import { WALLET_ANSWERS } from './fake-wallets.ts';

const WALLETS = ['APPLE_PAY', 'GOOGLE_PAY'] as const;

describe("wallets' tokens at the fake Adyen", () => {
  let adyen: AdyenUnderTest;
  beforeEach(async () => {
    adyen = await openAdyen();
  });
  afterEach(() => adyen.close());

  const sent = () => adyen.fake.requests[0]?.body ?? {};

  it('the token of Apple Pay is its paymentData alone, as text in base64', async () => {
    const answer = WALLET_ANSWERS.APPLE_PAY();
    await adyen.connection.pay(walletAttempt('APPLE_PAY', answer));
    const { type, applePayToken, ...others } = sent().paymentMethod as Record<string, string>;
    expect([type, others]).toEqual(['applepay', {}]);
    expect(Buffer.from(applePayToken ?? '', 'base64').toString()).toBe(
      JSON.stringify(answer.token.paymentData),
    );
  });

  it('the token of Google Pay is its tokenizationData, as it is', async () => {
    const answer = WALLET_ANSWERS.GOOGLE_PAY();
    await adyen.connection.pay(walletAttempt('GOOGLE_PAY', answer));
    expect(sent().paymentMethod).toEqual({
      type: 'googlepay',
      googlePayToken: answer.paymentMethodData.tokenizationData.token,
    });
  });

  it.each(WALLETS)(
    'a payment with %s is charged once, and reports the card behind the wallet',
    async (type) => {
      const attempt = walletAttempt(type);
      expect(await adyen.connection.pay(attempt)).toMatchObject({
        kind: 'approved',
        authorizationCode: '033899',
        card: { brand: 'VISA', lastFour: '1111', expirationMonth: 3, expirationYear: 30, type: 'DEBIT' },
      });
      expect(adyen.fake.requests.map(({ key }) => key)).toEqual([attempt.transactionId]);
      expect([...adyen.fake.payments.values()]).toMatchObject([{ captured: 300_000 }]);
    },
  );

  it('the card behind a wallet is also reported by the notification, if the answer was lost', async () => {
    adyen.fake.next('lost_answer');
    await adyen.connection.pay(walletAttempt('GOOGLE_PAY'));
    const [told] = await adyen.delivered();
    expect(subjectOf(told).signed?.outcome).toMatchObject({
      kind: 'approved',
      card: { brand: 'VISA', lastFour: '1111' },
    });
  });

  it.each(WALLETS)('a payment with %s is declined like a card', async (type) => {
    const answer = WALLET_ANSWERS[type]('NOT_ENOUGH_BALANCE');
    expect(await adyen.connection.pay(walletAttempt(type, answer))).toMatchObject({
      kind: 'declined',
      iso8583Code: '51',
    });
  });

  it('a payment with a wallet may pass 3-D Secure by redirect, as with a card', async () => {
    const customerPayer = create(CustomerPayerSchema, { browserInfo: BROWSER });
    const attempt = walletAttempt('GOOGLE_PAY', undefined, {
      over: { customerPayer },
      options: { threeDSecureSetupId: 'setup' },
    });
    const outcome = await adyen.connection.pay(attempt);
    expect(outcome).toMatchObject({ kind: 'awaits_payer' });
    expect(sent()).toMatchObject({ channel: 'Web', authenticationData: { attemptAuthentication: 'always' } });
    const returnQuery = adyen.fake.payAt(payersPage(outcome), true);
    const completed = await adyen.connection.complete?.(lookUpOf(attempt, { hint: { returnQuery } }));
    expect(completed).toMatchObject({ kind: 'approved' });
  });

  it('an authorization with a wallet is captured later, and stored credentials go with it', async () => {
    const storedCredentials = create(StoredCredentialsSchema, { reason: 'CARD_ON_FILE', usage: 'FIRST' });
    const options = { capture: false, storedCredentials, softDescriptor: 'Shop' };
    const attempt = walletAttempt('APPLE_PAY', undefined, { options });
    const outcome = await adyen.connection.pay(attempt);
    expect(sent()).toMatchObject({
      ...{ additionalData: { manualCapture: 'true' }, shopperStatement: 'Shop' },
      ...{ shopperInteraction: 'Ecommerce', recurringProcessingModel: 'CardOnFile' },
    });
    const reference = 'reference' in outcome ? outcome.reference : undefined;
    const capture = operationOn(attempt, reference, { isFinal: true });
    expect(await adyen.connection.capture?.(capture)).toMatchObject({ kind: 'pending' });
  });

  it('a payment with a wallet whose answer is lost is unknown, and is not sent again', async () => {
    adyen.fake.next('lost_answer');
    expect(await adyen.connection.pay(walletAttempt('APPLE_PAY'))).toMatchObject({ kind: 'unknown' });
    expect(adyen.fake.requests).toHaveLength(1);
  });

  it.each([
    ['APPLE_PAY', {}],
    ['APPLE_PAY', { token: { paymentData: 'text' } }],
    ['APPLE_PAY', WALLET_ANSWERS.GOOGLE_PAY()],
    ['GOOGLE_PAY', WALLET_ANSWERS.APPLE_PAY()],
    ['GOOGLE_PAY', { paymentMethodData: { tokenizationData: { token: '' } } }],
  ] as const)(
    'the token of %s that is not its whole answer is refused before anything is sent: %j',
    async (type, answer) => {
      expect(await adyen.connection.pay(walletAttempt(type, answer))).toMatchObject({
        kind: 'not_sent',
        because: 'turned_away',
        refused: 'payment_token',
      });
      expect(adyen.fake.requests).toEqual([]);
    },
  );

  it.each(WALLETS)('a token of %s that Adyen cannot read is refused', async (type) => {
    const answer =
      type === 'APPLE_PAY'
        ? { token: { paymentData: { data: 'x' } } }
        : { paymentMethodData: { tokenizationData: { token: 'no JSON' } } };
    const outcome = await adyen.connection.pay(walletAttempt(type, answer));
    expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
  });
});
