import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { StoredCredentialsSchema, ThreeDSecureSchema } from '#gen/payments/v1/payment_method_pb.js';
import { sandboxConnector } from '#src/connectors/sandbox/connector.ts';
import { readSettings } from '#src/connectors/sandbox/settings.ts';
import { operationRequest, paymentRequest } from '#src/connectors/sandbox/to-provider.ts';
import { Secret } from '#src/secret.ts';
import {
  additionalData,
  cardAttempt,
  enrollmentAttempt,
  operationOn,
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
  if (attempt.method.by !== 'card') throw new Error('not a card');
  const card = { ...attempt.method.card, securityCode: undefined };
  expect(bodyOf({ ...attempt, method: { ...attempt.method, card } }).card).not.toHaveProperty('cvc');
});

it('each kind of wallet payment is sent to its own path', () => {
  const ways = { returnUrl: 'https://payments.example/back', cancelUrl: 'https://payments.example/left' };
  const redirect = paymentRequest(redirectAttempt(ways), settings);
  expect(redirect.path).toBe('/sandbox/v1/wallet-orders');
  expect(JSON.parse(redirect.body ?? '')).toMatchObject({
    wallet: 'WALLET_B',
    return_url: 'https://payments.example/back',
    cancel_url: 'https://payments.example/left',
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
  const both = additionalData({
    airline: { ticket: { ticketNumber: 'T1' }, tickets: [{ ticketNumber: 'T2' }] },
  });
  const neither = additionalData({ airline: {} });
  expect(bodyOf(cardAttempt(undefined, { additionalData: single })).airline.tickets).toEqual(['T1']);
  expect(bodyOf(cardAttempt(undefined, { additionalData: both })).airline.tickets).toEqual(['T2']);
  expect(bodyOf(cardAttempt(undefined, { additionalData: neither })).airline.tickets).toEqual([]);
  expect(bodyOf(cardAttempt(undefined, { additionalData: several })).airline.tickets).toEqual(['T1', 'T2']);
});

/** The part of the request that is the same for every attempt of these tests. */
const ALWAYS_SENT = {
  amount: 300_000,
  currency: 'USD',
  country: 'CO',
  reference: 'reference-1',
  order_number: 'order-1',
  description: 'Two nights in Bogotá',
};

it('everything that is known about a payment is sent to the sandbox, except a URL for unverifiable notifications', () => {
  const attempt = cardAttempt(
    undefined,
    {
      customerPayer: create(CustomerPayerSchema, {
        firstName: 'Ana',
        lastName: 'Gómez',
        email: 'ana@example.com',
        ipAddress: '192.0.2.1',
        document: { documentType: 'CC', documentNumber: '123' },
        phone: { countryCode: '57', number: '300' },
      }),
      additionalData: additionalData({
        order: { shippingAmount: { value: '2' }, items: [{ name: 'Night', skuCode: 'N-1', quantity: 2 }] },
        airline: {
          pnr: 'ABC123',
          legs: [
            {
              departureAirport: 'BOG',
              arrivalAirport: 'MDE',
              departureDatetime: '2026-12-01T10:00',
              carrierCode: 'AV',
              flightNumber: '9300',
            },
          ],
          passengers: [{ firstName: 'Ana', lastName: 'Gómez' }],
          tickets: [{}],
        },
      }),
    },
    {
      capture: false,
      installments: 6,
      threeDSecureSetupId: 'setup-1',
      threeDSecure: create(ThreeDSecureSchema, {
        version: '2.2.0',
        electronicCommerceIndicator: '05',
        cryptogram: 'M6+990I6=',
        transactionId: 'server',
        directoryServerTransactionId: 'ds',
      }),
      storedCredentials: create(StoredCredentialsSchema, { networkTransactionId: 'nti-1' }),
      softDescriptor: 'Hotel',
    },
  );
  const { card, ...rest } = bodyOf(attempt);
  expect(rest).toEqual({
    ...ALWAYS_SENT,
    payer: {
      first_name: 'Ana',
      last_name: 'Gómez',
      email: 'ana@example.com',
      ip: '192.0.2.1',
      document: { type: 'CC', number: '123' },
      phone: '57 300',
    },
    order: { shipping: 200, items: [{ name: 'Night', sku: 'N-1', quantity: 2 }] },
    airline: {
      pnr: 'ABC123',
      legs: [{ from: 'BOG', to: 'MDE', departs_at: '2026-12-01T10:00', carrier: 'AV', flight: '9300' }],
      passengers: [{ first_name: 'Ana', last_name: 'Gómez' }],
      tickets: [null],
    },
    return_url: attempt.returnUrl,
    expires_at: '2030-01-01T00:00:00.000Z',
    capture: false,
    installments: 6,
    three_d_secure_setup_id: 'setup-1',
    three_d_secure: {
      version: '2.2.0',
      eci: '05',
      cryptogram: 'M6+990I6=',
      transaction_id: 'server',
      directory_server_transaction_id: 'ds',
    },
    stored_credentials: expect.objectContaining({ network_transaction_id: 'nti-1' }),
    soft_descriptor: 'Hotel',
  });
});

it('what is unknown about a payment is left out of the request to the sandbox', () => {
  const attempt = cardAttempt(undefined, {
    returnUrl: '',
    expiresAtMs: 0,
    customerPayer: create(CustomerPayerSchema, { phone: { number: '300' } }),
    additionalData: additionalData({ order: { items: [{ unitAmount: { value: '1e16' } }] } }),
  });
  const { card, ...rest } = bodyOf(attempt);
  expect(rest).toEqual({
    ...ALWAYS_SENT,
    payer: { phone: '300' },
    order: { items: [{}] },
    capture: true,
    installments: 1,
  });
});

it('a payment without a notification URL asks the sandbox for no notifications', () => {
  const secrets = { api_key: new Secret('sandbox_key'), notification_secret: new Secret('n'.repeat(16)) };
  const notified = readSettings({ base_url: 'http://127.0.0.1:8080' }, secrets);
  const urlOf = (notificationUrl: string) =>
    JSON.parse(paymentRequest(cardAttempt(undefined, { notificationUrl }), notified).body ?? '')
      .notification_url;
  expect(urlOf('https://payments.example/notifications')).toBe('https://payments.example/notifications');
  expect(urlOf('')).toBeUndefined();
});

it('a payment of an amount that the sandbox cannot represent is turned away', async () => {
  const connection = sandboxConnector.connect(
    { base_url: 'http://127.0.0.1:1' },
    { providerId: 'SANDBOX_ONE', secrets: { api_key: new Secret('sandbox_key') } },
  );
  const pay = (minorUnits: bigint) =>
    connection.pay(cardAttempt(undefined, { money: { minorUnits, currency: 'USD' } }));
  expect(await pay(2n ** 53n)).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
  expect(await pay(2n ** 53n - 1n)).toMatchObject({ kind: 'not_sent', because: 'unreachable' });
  await connection.close();
});

it('a cancel at the sandbox names the payment but no amount; a capture and a refund name both', () => {
  const operation = operationOn(cardAttempt(), 'ch_1', {
    isFinal: true,
    reason: 'DUPLICATE',
    description: 'x',
  });
  const sent = (kind: 'capture' | 'cancel' | 'refund', over = {}) =>
    JSON.parse(operationRequest(kind, { ...operation, ...over }, settings).body ?? '');
  const told = {
    payment: 'ch_1',
    final: true,
    reference: 'operation-1',
    description: 'x',
    reason: 'DUPLICATE',
  };
  expect(sent('cancel')).toEqual(told);
  expect(sent('refund')).toEqual({ ...told, amount: 300_000, currency: 'USD' });
  const bare = { merchantReference: '', description: '', reason: undefined, isFinal: false };
  const money = { amount: 300_000, currency: 'USD' };
  expect(sent('capture', bare)).toEqual({ payment: 'ch_1', final: false, ...money });
});
