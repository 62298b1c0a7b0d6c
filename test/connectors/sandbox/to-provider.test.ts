import { expect, it } from 'vitest';
import { readSettings } from '#src/connectors/sandbox/settings.ts';
import { paymentRequest } from '#src/connectors/sandbox/to-provider.ts';
import { Secret } from '#src/secret.ts';
import {
  additionalData,
  cardAttempt,
  enrollmentAttempt,
  redirectAttempt,
  SECURITY_CODE,
} from '../attempts.ts';

const settings = readSettings(
  { base_url: 'http://127.0.0.1:8080/sandbox', acquirer: 'TWO', account_id: 'acct_7' },
  { api_key: new Secret('sandbox_key') },
);

function bodyOf(attempt: ReturnType<typeof cardAttempt>) {
  return JSON.parse(paymentRequest(attempt, settings).body ?? '');
}

it('a request to the sandbox has key, acquirer, account and our transaction ID in headers', () => {
  const attempt = cardAttempt();
  expect(paymentRequest(attempt, settings)).toMatchObject({
    method: 'POST',
    path: '/sandbox/v1/charges',
    headers: {
      authorization: 'Bearer sandbox_key',
      'idempotency-key': attempt.transactionId,
      'sandbox-acquirer': 'TWO',
      'sandbox-account': 'acct_7',
    },
  });
});

it('a card is sent to the sandbox with the amount in minor units', () => {
  expect(bodyOf(cardAttempt())).toMatchObject({
    amount: 300_000,
    currency: 'USD',
    capture: true,
    installments: 1,
    reference: 'reference-1',
    order_number: 'order-1',
    card: {
      number: '4111111111111111',
      exp_month: 12,
      exp_year: 30,
      cvc: SECURITY_CODE,
      holder: 'Ana Gómez',
    },
    payer: { first_name: 'Ana', email: 'ana@example.com' },
  });
});

it('an absent security code is left out of the request', () => {
  const attempt = cardAttempt();
  if (attempt.method.kind !== 'card') throw new Error('not a card');
  const card = { ...attempt.method.card, securityCode: undefined };
  expect(bodyOf({ ...attempt, method: { ...attempt.method, card } }).card).not.toHaveProperty('cvc');
});

it('each kind of wallet payment is sent to its own path', () => {
  const redirect = paymentRequest(redirectAttempt({ returnUrl: 'https://payments.example/back' }), settings);
  expect(redirect.path).toBe('/sandbox/v1/wallet-orders');
  expect(JSON.parse(redirect.body ?? '')).toMatchObject({
    wallet: 'WALLET_B',
    return_url: 'https://payments.example/back',
  });
  const enrollment = paymentRequest(enrollmentAttempt(), settings);
  expect(enrollment.path).toBe('/sandbox/v1/wallet-enrollments');
  expect(JSON.parse(enrollment.body ?? '')).toMatchObject({
    wallet_token: 'wallet-token',
    card_type: 'CREDIT',
  });
});

it("amounts that describe the order are rounded half up to the currency's decimal places", () => {
  const items = ['7.5', '7', '7.555'].map((value) => ({ unitAmount: { value } }));
  const attempt = cardAttempt(undefined, {
    additionalData: additionalData({ order: { feeAmount: { value: '1.10' }, items } }),
  });
  expect(bodyOf(attempt).order).toEqual({
    fee: 110,
    items: [{ unit_amount: 750 }, { unit_amount: 700 }, { unit_amount: 756 }],
  });
});

it('a single ticket and a list of tickets are both passed on', () => {
  const single = additionalData({ airline: { ticket: { ticketNumber: 'T1' } } });
  const several = additionalData({ airline: { tickets: [{ ticketNumber: 'T1' }, { ticketNumber: 'T2' }] } });
  expect(bodyOf(cardAttempt(undefined, { additionalData: single })).airline.tickets).toEqual(['T1']);
  expect(bodyOf(cardAttempt(undefined, { additionalData: several })).airline.tickets).toEqual(['T1', 'T2']);
});
