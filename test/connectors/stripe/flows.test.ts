import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { ThreeDSecureSchema } from '#gen/payments/v1/payment_method_pb.js';
import { type Outcome, payersPage } from '#src/connectors/port/outcome.ts';
import { cardAttempt } from '../attempts.ts';
import { openedForEach } from '../under-test.ts';
import { FAKE_ACCOUNT_ID } from './fake-stripe.ts';
import { TEST_CARDS } from './fake-wire.ts';
import { AUTHORIZE, cardWith, lookUp, openStripe, paid } from './stripe-under-test.ts';

const stripe = openedForEach(openStripe);

const approve = '4242424242424242';
const challenge = '4000002760003184';

describe('a payment by Stripe', () => {
  it('a Stripe payment is charged by confirming an intent, after two requests that charge nothing', async () => {
    const { attempt, outcome } = await paid(stripe);
    expect(outcome).toMatchObject({
      authorizationCode: '123456',
      networkTransactionId: 'nti-1',
      reference: expect.stringMatching(/^pi_/),
      providerData: {
        id: 'STRIPE',
        transactionId: outcome.reference,
        status: 'succeeded',
        statusDetail: 'approved_by_network',
        rawResponse: { object: 'payment_intent', amount_received: 300_000 },
      },
    });
    expect(stripe.fake.calls().sort()).toEqual([
      'POST /v1/payment_intents',
      'POST /v1/payment_intents/{id}/confirm',
      'POST /v1/payment_methods',
    ]);
    expect(stripe.fake.requests.map(({ key }) => key).sort()).toEqual([
      attempt.transactionId,
      `${attempt.transactionId}:confirm`,
      `${attempt.transactionId}:pm`,
    ]);
    expect(stripe.intent()).toMatchObject({ status: 'succeeded', amount: 300_000, currency: 'usd' });
  });

  it('a Stripe payment shows no data with which a browser could act on the payment', async () => {
    const { outcome } = await paid(stripe);
    const declined = await stripe.connection.pay(cardAttempt('4000000000000002'));
    expect(JSON.stringify([outcome, declined])).not.toContain('_secret_');
  });

  it('a Stripe payment without a capture is only authorized', async () => {
    await paid(stripe, cardWith(approve, AUTHORIZE));
    expect(stripe.intent()).toMatchObject({ status: 'requires_capture', amount_received: 0 });
  });

  it('a Stripe payment for which Stripe reports no network transaction ID has none', async () => {
    const { attempt, outcome } = await paid(stripe);
    for (const charge of stripe.fake.ledger.charges.values()) charge.payment_method_details = {};
    expect(await lookUp(stripe, attempt, outcome)).not.toHaveProperty('networkTransactionId');
  });

  it('a Stripe payment is pending while Stripe processes it', async () => {
    stripe.fake.ledger.cards.set('4000000000000077', { kind: 'processing' });
    expect(await stripe.connection.pay(cardAttempt('4000000000000077'))).toMatchObject({ kind: 'pending' });
  });

  const declines: [string, string, string][] = [
    ['4000000000000002', '05', 'generic_decline'],
    ['4000000000009995', '51', 'insufficient_funds'],
    ['4000000000009987', '41', 'lost_card'],
    ['4000000000009979', '43', 'stolen_card'],
    ['4000000000000069', '54', 'expired_card'],
    ['4000000000000127', 'N7', 'incorrect_cvc'],
    ['4000000000000119', '96', 'processing_error'],
    ['4242424242424241', '14', 'incorrect_number'],
    ['4100000000000019', '59', 'fraudulent'],
  ];
  it.each(declines)(
    'a Stripe payment with the test card %s is declined with %s',
    async (number, iso8583Code, code) => {
      expect(TEST_CARDS.has(number)).toBe(true);
      const outcome = await stripe.connection.pay(cardAttempt(number));
      expect(outcome).toMatchObject({
        kind: 'declined',
        iso8583Code,
        providerData: { responseCode: code, iso8583ResponseCode: iso8583Code },
      });
    },
  );

  it('a Stripe payment that Radar blocked is suspected fraud, whatever the code', async () => {
    stripe.fake.ledger.cards.set('4000000000000077', {
      kind: 'decline',
      code: 'card_declined',
      declineCode: 'generic_decline',
      blocked: true,
    });
    const attempt = cardAttempt('4000000000000077');
    const outcome = await stripe.connection.pay(attempt);
    expect(outcome).toMatchObject({ kind: 'declined', iso8583Code: '05' });
    // The error contains only the charge's id; a look-up reads the whole charge.
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'declined', iso8583Code: '59' });
  });

  it('a Stripe payment sends the statement descriptor, and a look-up that repeats the requests sends it again', async () => {
    const attempt = cardWith(approve, { softDescriptor: 'Tom\'s "Shop" <of many many words>' });
    await paid(stripe, attempt);
    expect(stripe.intent()).toMatchObject({ statement_descriptor_suffix: 'Toms Shop of many many' });
    expect(stripe.fake.calls().slice(2)).toEqual(['POST /v1/payment_intents/{id}/confirm']);
    expect(await lookUp(stripe, attempt, undefined)).toMatchObject({ kind: 'approved' });
    expect(stripe.fake.ledger.intents.size).toBe(1);
  });

  it('a Stripe payment whose ID was not reported is found days later by the ID in a notification', async () => {
    const attempt = cardWith(approve, {});
    const { reference = '' } = await paid(stripe, attempt);
    stripe.fake.pace.searchLagMs = 7 * 24 * 3_600_000;
    const late = { ageMs: 2 * 24 * 3_600_000 };
    expect(await lookUp(stripe, attempt, undefined, late)).toMatchObject({ kind: 'unknown' });
    const told = { ...late, hint: { providerPaymentId: reference } };
    expect(await lookUp(stripe, attempt, undefined, told)).toMatchObject({ kind: 'approved', reference });
  });

  it.each([
    ['an amount that Stripe cannot express', { minorUnits: 1_001n, currency: 'KWD' }],
    ['nothing', { minorUnits: 0n, currency: 'USD' }],
  ])('a Stripe payment of %s is turned away, and nothing is sent', async (_what, money) => {
    const outcome = await stripe.connection.pay(cardAttempt(approve, { money }));
    expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    expect(stripe.fake.requests).toEqual([]);
  });

  it('a Stripe payment with a refused key is not_sent, as if Stripe were unreachable', async () => {
    const other = await openStripe({ apiKey: 'sk_test_revoked' });
    expect(await other.connection.pay(cardAttempt(approve))).toMatchObject({
      kind: 'not_sent',
      because: 'unreachable',
    });
    expect(await other.connection.probe?.()).toBe(false);
    expect(await stripe.connection.probe?.()).toBe(true);
    stripe.fake.fail(/^GET/, { answer: { status: 200, body: { object: 'page' } } });
    expect(await stripe.connection.probe?.()).toBe(false);
    await other.close();
  });

  it('the account of a Stripe key is told, and a key that may only read payments is tried with these', async () => {
    expect(await stripe.connection.readAccount()).toEqual({
      ...{ result: 'ACCEPTED', account: FAKE_ACCOUNT_ID, environment: 'TEST' },
    });
    const forbidden = { type: 'invalid_request_error', message: 'does not have the required permissions' };
    const refusal = { answer: { status: 403, body: { error: forbidden } } };
    stripe.fake.fail(/^GET .v1.account$/, refusal);
    expect(await stripe.connection.readAccount()).toEqual({
      ...{ result: 'ACCEPTED', account: undefined, environment: 'TEST' },
    });
    stripe.fake.fail(/^GET .v1.account$/, refusal);
    stripe.fake.fail(/^GET .v1.payment_intents$/, 'lost_before');
    expect(await stripe.connection.readAccount()).toMatchObject({ result: 'UNREACHABLE' });
    const revoked = await openStripe({ apiKey: 'sk_test_revoked' });
    const live = await openStripe({ apiKey: 'sk_live_revoked' });
    for (const other of [revoked, live]) {
      expect(await other.connection.readAccount()).toMatchObject({ result: 'REFUSED' });
      await other.close();
    }
    const another = await openStripe({ settings: { account_id: 'acct_Another' } });
    expect(await another.connection.readAccount()).toEqual({
      result: 'REFUSED',
      detail: `the credentials belong to the account ${FAKE_ACCOUNT_ID}, and account_id is acct_Another`,
    });
    await another.close();
  });
});

describe('3-D Secure', () => {
  it('a payer is redirected to the issuer for 3-D Secure, and charged once they have agreed', async () => {
    const attempt = cardAttempt(challenge);
    const outcome = await stripe.connection.pay(attempt);
    expect(outcome).toMatchObject({ kind: 'awaits_payer' });
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'awaits_payer' });
    const back = await atTheIssuer(outcome, 'complete');
    expect(back).toContain(`${attempt.returnUrl}?payment_intent=pi_`);
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'approved' });
    expect(stripe.intent()).toMatchObject({ status: 'succeeded', amount_received: 300_000 });
  });

  it('a payer who fails 3-D Secure is declined', async () => {
    const attempt = cardAttempt(challenge);
    const outcome = await stripe.connection.pay(attempt);
    await atTheIssuer(outcome, 'fail');
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'declined', iso8583Code: '1A' });
  });

  it('a payer who passes 3-D Secure may still be declined', async () => {
    const attempt = cardAttempt('4000008260003178');
    const outcome = await stripe.connection.pay(attempt);
    await atTheIssuer(outcome, 'complete');
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'declined', iso8583Code: '51' });
  });

  it('an authorization is held after 3-D Secure', async () => {
    const attempt = cardWith(challenge, AUTHORIZE);
    const outcome = await stripe.connection.pay(attempt);
    await atTheIssuer(outcome, 'complete');
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'approved' });
    expect(stripe.intent()).toMatchObject({ status: 'requires_capture' });
  });

  it('a 3-D Secure redirect that nobody follows is closed, and can then no longer be paid', async () => {
    const attempt = cardAttempt(challenge);
    const outcome = await stripe.connection.pay(attempt);
    expect(await lookUp(stripe, attempt, outcome, { close: true })).toMatchObject({ kind: 'expired' });
    const late = await fetch(payersPage(outcome), {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'result=complete',
      redirect: 'manual',
    });
    expect(late.status).toBe(404);
    expect(stripe.intent()).toMatchObject({ status: 'canceled', amount_received: 0 });
  });

  it('a 3-D Secure redirect that Stripe did not close can still be paid', async () => {
    const attempt = cardAttempt(challenge);
    const outcome = await stripe.connection.pay(attempt);
    stripe.fake.fail(/cancel$/, 'lost_before');
    expect(await lookUp(stripe, attempt, outcome, { close: true })).toMatchObject({ kind: 'unknown' });
    expect(stripe.intent()).toMatchObject({ status: 'requires_action' });
    expect(await lookUp(stripe, attempt, outcome, { close: true })).toMatchObject({ kind: 'expired' });
  });

  it('external 3-D Secure results are passed on to Stripe, and no payer is redirected', async () => {
    const threeDSecure = {
      version: '2.2.0',
      cryptogram: 'M6+990I6FLD8Y6rZz9d5QbfrMNY=',
      electronicCommerceIndicator: '05',
      transactionId: 'server-transaction',
      directoryServerTransactionId: 'ds-transaction',
    };
    await paid(stripe, cardWith(challenge, { threeDSecure }));
    const confirm = stripe.fake.requests.at(-1)?.fields.payment_method_options;
    expect(confirm).toMatchObject({
      card: {
        three_d_secure: {
          version: '2.2.0',
          cryptogram: 'M6+990I6FLD8Y6rZz9d5QbfrMNY=',
          transaction_id: 'ds-transaction',
          electronic_commerce_indicator: '05',
        },
      },
    });
  });

  it.each([
    ['1.0.2', { transactionId: 'xid', directoryServerTransactionId: 'ds' }, 'xid', []],
    ['2.2.0', { transactionId: 'server', directoryServerTransactionId: 'ds' }, 'ds', []],
    ['2.1.0', { transactionId: 'server' }, undefined, ['directory_server_transaction_id']],
    ['1.0.2', { directoryServerTransactionId: 'ds' }, undefined, ['transaction_id']],
    [undefined, {}, undefined, ['version', 'cryptogram', 'directory_server_transaction_id']],
  ] as const)(
    'external 3-D Secure results of version %s are sent to Stripe with only the ID that issuers need: %j',
    async (version, ids, transaction_id, missing) => {
      const results = { ...(version && { version, cryptogram: 'M6+990I6=' }), ...ids };
      const threeDSecure = create(ThreeDSecureSchema, results);
      expect(stripe.connection.capabilities.missingForResults?.(threeDSecure)).toEqual(missing);
      await paid(stripe, cardWith(approve, { threeDSecure }));
      const options = stripe.fake.requests.at(-1)?.fields.payment_method_options;
      expect(options).toHaveProperty('card');
      const sent = (options as { card: { three_d_secure?: object } }).card.three_d_secure ?? {};
      expect(sent).toEqual({
        ...(version && { version, cryptogram: 'M6+990I6=' }),
        ...(transaction_id && { transaction_id }),
      });
    },
  );

  it("3-D Secure is not requested again after external results, whose ECI is sent as Stripe's two digits", async () => {
    const strict = await openStripe({ settings: { request_three_d_secure: 'any' } });
    const threeDSecure = { version: '2.2.0', cryptogram: 'M6+990I6=', electronicCommerceIndicator: '5' };
    await paid(strict, cardWith(approve, { threeDSecure }));
    expect(strict.fake.requests.at(-1)?.fields.payment_method_options).toMatchObject({
      card: { request_three_d_secure: 'automatic', three_d_secure: { electronic_commerce_indicator: '05' } },
    });
    await strict.close();
  });

  it('3-D Secure is requested if the merchant names a setup without results, or if the settings require it', async () => {
    expect(await stripe.connection.pay(cardWith(approve, { threeDSecureSetupId: 'setup-1' }))).toMatchObject({
      kind: 'awaits_payer',
    });
    const strict = await openStripe({ settings: { request_three_d_secure: 'any' } });
    expect(await strict.connection.pay(cardAttempt(approve))).toMatchObject({ kind: 'awaits_payer' });
    await strict.close();
  });
});

/** Clicks one of the issuer's buttons, and returns the payer's next URL. */
async function atTheIssuer(outcome: Outcome, result: 'complete' | 'fail'): Promise<string | null> {
  if (outcome.kind !== 'awaits_payer') throw new Error('no redirect');
  expect(await (await fetch(payersPage(outcome))).text()).toContain(`value="${result}"`);
  const response = await fetch(payersPage(outcome), {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `result=${result}`,
    redirect: 'manual',
  });
  return response.headers.get('location');
}
