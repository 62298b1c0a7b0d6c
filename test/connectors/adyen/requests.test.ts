import { ObjectSerializer } from '@adyen/api-library/lib/src/typings/checkout/objectSerializer.js';
import { create } from '@bufbuild/protobuf';
import { beforeAll, describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { StoredCredentialsSchema, ThreeDSecureSchema } from '#gen/payments/v1/payment_method_pb.js';
import type { CardOptions, PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { additionalData, lookUpOf, operationOn, redirectAttempt } from '../attempts.ts';
import {
  type AdyenUnderTest,
  BROWSER,
  cardWith,
  codeAttempt,
  openAdyen,
  walletAttempt,
} from './adyen-under-test.ts';

const ID = '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11';
const OPERATION_ID = '5d0c1a52-0f39-4a5b-9d7b-5f5d1c9c2a22';

const payer = create(CustomerPayerSchema, {
  merchantCustomerId: 'customer-7',
  firstName: 'Ana',
  lastName: 'Gómez',
  email: 'ana@example.com',
  ipAddress: '192.0.2.7',
  phone: { countryCode: '55', number: '11987654321' },
  document: { documentType: 'CPF', documentNumber: '12345678909' },
  billingAddress: {
    addressLine1: 'Avenida Paulista 1000',
    addressLine2: 'Apto 12',
    neighborhood: 'Bela Vista',
    city: 'São Paulo',
    state: 'SP',
    zipCode: '01310-100',
    country: 'BR',
  },
  shippingAddress: { state: 'São Paulo', zipCode: 'more than ten characters' },
});

const purchase = additionalData({
  order: {
    items: [
      {
        id: '1',
        name: 'Flight',
        quantity: 2,
        unitAmount: { value: '1500.00' },
        category: 'TRAVEL',
        brand: 'Air',
        skuCode: 'F-1',
      },
    ],
  },
  airline: {
    pnr: 'ABC123',
    legs: [
      {
        departureAirport: 'GRU',
        arrivalAirport: 'BOG',
        departureDatetime: '2027-01-31T10:30:00-03:00',
        carrierCode: 'AV',
        flightNumber: '86',
        fareClassCode: 'Y',
        fareBasisCode: 'YOW',
      },
      { departureAirport: 'BOG', arrivalAirport: 'GRU', departureDatetime: 'some day' },
    ],
    passengers: [{ firstName: 'Ana', lastName: 'Gómez', dateOfBirth: '1990-02-28' }],
    tickets: [
      {
        ticketNumber: '1342185673012',
        issue: { date: '2026-11-22', travelAgentCode: 'AG1', city: 'São Paulo' },
      },
    ],
  },
});

const card = (options: Partial<CardOptions> = {}, over: Partial<PaymentAttempt> = {}) =>
  cardWith(options, { transactionId: ID, ...over });

async function operated(
  { connection }: AdyenUnderTest,
  name: 'capture' | 'cancel' | 'refund',
  options: Partial<CardOptions>,
  over: { reason?: string; part?: bigint } = {},
): Promise<void> {
  const attempt = card(options);
  const paid = await connection.pay(attempt);
  const reference = 'reference' in paid ? paid.reference : undefined;
  const money = { ...attempt.money, minorUnits: over.part ?? attempt.money.minorUnits };
  const operation = { transactionId: OPERATION_ID, money, isFinal: true, reason: over.reason };
  await connection[name]?.(operationOn(attempt, reference, operation));
}

/** A local method that ends with a day in Brazil. */
const LOCAL = { transactionId: ID, expiresAtMs: Date.parse('2030-01-10T23:59:59-03:00') };
const WALLET = { transactionId: ID };

/** Every kind of request that the connector makes, keyed by the flow that makes it. */
const FLOWS: Record<string, (adyen: AdyenUnderTest) => Promise<unknown>> = {
  purchase: ({ connection }) =>
    connection.pay(
      card(
        { softDescriptor: 'Hotel <Tequendama>; Bogotá & more', installments: 6 },
        {
          country: 'BR',
          money: { minorUnits: 300_000n, currency: 'BRL' },
          customerPayer: payer,
          additionalData: purchase,
          metadata: [
            { key: 'shop', value: 'north' },
            { key: 'a name that Adyen would refuse', value: 'left out' },
          ],
        },
      ),
    ),
  'plain-purchase': ({ connection }) => {
    const bare = { description: '', merchantOrderId: '', merchantReference: '', country: '' };
    return connection.pay(card({}, { ...bare, customerPayer: create(CustomerPayerSchema) }));
  },
  authorization: ({ connection }) => connection.pay(card({ capture: false })),
  verification: ({ connection }) =>
    connection.pay(card({ verify: true, capture: false }, { money: { minorUnits: 0n, currency: 'USD' } })),
  'three-d-secure-made-elsewhere': ({ connection }) =>
    connection.pay(
      card({
        threeDSecure: create(ThreeDSecureSchema, {
          version: '2.2.0',
          cryptogram: 'M6+990I6FLD8Y6rZz9d5QbfrMNY=',
          electronicCommerceIndicator: '5',
          directoryServerTransactionId: 'c4e59ceb-a382-4d6a-bc87-385d591fa09d',
        }),
      }),
    ),
  'three-d-secure-only-attempted': ({ connection }) =>
    connection.pay(
      card({
        threeDSecure: create(ThreeDSecureSchema, { version: '2.1.0', electronicCommerceIndicator: '06' }),
      }),
    ),
  'three-d-secure-not-authenticated': ({ connection }) => {
    const told = { version: '2.2.0', electronicCommerceIndicator: '07' };
    return connection.pay(card({ threeDSecure: create(ThreeDSecureSchema, told) }));
  },
  'card-kept': ({ connection }) => {
    const told = { reason: 'SUBSCRIPTION', usage: 'FIRST' };
    return connection.pay(card({ storedCredentials: create(StoredCredentialsSchema, told) }));
  },
  'kept-card-used': ({ connection }) => {
    const [reason, networkTransactionId] = ['UNSCHEDULED_CARD_ON_FILE', 'MCC123456789012'];
    const told = { reason, usage: 'USED', networkTransactionId };
    return connection.pay(card({ storedCredentials: create(StoredCredentialsSchema, told) }));
  },
  'kept-card-used-for-no-reason': ({ connection }) =>
    connection.pay(card({ storedCredentials: create(StoredCredentialsSchema, { usage: 'USED' }) })),
  'scheme-transaction-of-a-kept-card': ({ connection }) => {
    const told = { reason: 'SUBSCRIPTION', networkTransactionId: 'MCC123456789012' };
    return connection.pay(card({ storedCredentials: create(StoredCredentialsSchema, told) }));
  },
  redirect: ({ connection }) => connection.pay(redirectAttempt({ transactionId: ID })),
  pix: ({ connection }) => connection.pay(codeAttempt('PIX', LOCAL)),
  boleto: ({ connection }) => connection.pay(codeAttempt('BOLETO', LOCAL)),
  oxxo: ({ connection }) => connection.pay(codeAttempt('OXXO', LOCAL)),
  pse: ({ connection }) => connection.pay(codeAttempt('PSE', LOCAL, { bankId: '1022' })),
  'apple-pay': ({ connection }) => connection.pay(walletAttempt('APPLE_PAY', undefined, { over: WALLET })),
  'google-pay': ({ connection }) => connection.pay(walletAttempt('GOOGLE_PAY', undefined, { over: WALLET })),
  banks: ({ connection }) => connection.listBanks?.('PSE') ?? Promise.resolve(),
  challenge: async ({ connection }) => {
    const attempt = cardWith(
      { threeDSecureSetupId: ID },
      { transactionId: ID, customerPayer: create(CustomerPayerSchema, { browserInfo: BROWSER }) },
    );
    await connection.pay(attempt);
    // The fake's own results contain a new ID each time.
    return connection.complete?.(lookUpOf(attempt, { hint: { returnQuery: 'redirectResult=X6XtfGC3' } }));
  },
  'technical-cancel': async ({ connection }) =>
    connection.technicalCancel?.send(lookUpOf(cardWith({}, { transactionId: ID }))),
  capture: (adyen) => operated(adyen, 'capture', { capture: false }, { part: 100_000n }),
  cancel: (adyen) => operated(adyen, 'cancel', { capture: false }),
  refund: (adyen) => operated(adyen, 'refund', {}, { part: 100_000n, reason: 'REQUESTED_BY_CUSTOMER' }),
  probe: ({ connection }) => connection.probe?.() ?? Promise.resolve(),
};

type Seen = AdyenUnderTest['fake']['requests'][number];
const seen = new Map<string, readonly Seen[]>();

beforeAll(async () => {
  for (const [name, flow] of Object.entries(FLOWS)) {
    const adyen = await openAdyen({ installments: true });
    await flow(adyen);
    seen.set(name, adyen.fake.requests);
    await adyen.close();
  }
});

describe("the connector's requests", () => {
  it.each(Object.keys(FLOWS))('the requests to Adyen match the reviewed files: %s', async (name) => {
    const text = JSON.stringify(seen.get(name), undefined, 2).replace(/(payments\/)[0-9A-F]{16}/g, '$1…');
    await expect(`${text}\n`).toMatchFileSnapshot(`golden/${name}.json`);
  });

  it('the requests to Adyen contain only data that the merchant sent', () => {
    const [plain] = seen.get('plain-purchase') ?? [];
    expect(Object.keys(plain?.body ?? {}).sort()).toEqual([
      ...['amount', 'authenticationData', 'captureDelayHours', 'merchantAccount', 'paymentMethod'],
      ...['reference', 'returnUrl', 'shopperInteraction'],
    ]);
  });

  const bodyOf = (name: string) => seen.get(name)?.[0]?.body ?? {};

  it.each([
    ['three-d-secure-made-elsewhere', 'Y'],
    ['three-d-secure-only-attempted', 'A'],
    // The payer was not authenticated, so no liability shifted.
    ['three-d-secure-not-authenticated', undefined],
  ])('the requests to Adyen claim no more about 3-D Secure than the ECI says: %s', (name, status) => {
    const { mpiData } = bodyOf(name);
    expect(mpiData).toEqual({
      ...Object(mpiData),
      directoryResponse: status,
      authenticationResponse: status,
    });
  });

  it.each([
    ['plain-purchase', 'Ecommerce', undefined],
    ['card-kept', 'Ecommerce', 'Subscription'],
    ['kept-card-used', 'ContAuth', 'UnscheduledCardOnFile'],
    ['kept-card-used-for-no-reason', 'ContAuth', 'CardOnFile'],
    ['scheme-transaction-of-a-kept-card', 'ContAuth', 'Subscription'],
  ])(
    'the requests to Adyen say whether a card is being stored or was stored: %s',
    (name, interaction, model) => {
      const { shopperInteraction, recurringProcessingModel } = bodyOf(name);
      expect([shopperInteraction, recurringProcessingModel]).toEqual([interaction, model]);
    },
  );

  it("the requests to Adyen capture purchases at once, whatever the account's capture delay", () => {
    expect([bodyOf('plain-purchase').captureDelayHours, bodyOf('redirect').captureDelayHours]).toEqual([
      0, 0,
    ]);
  });

  it.each(Object.keys(FLOWS))(
    'the requests to Adyen contain no field unknown to its own library: %s',
    (name) => {
      const requests = seen.get(name) ?? [];
      expect(requests.length).toBeGreaterThan(0);
      for (const { path, body } of requests)
        expect([path, known(path, body)]).toEqual([path, inSeconds(body)]);
    },
  );

  it("the check with Adyen's library finds a misspelled field", () => {
    const [purchase] = seen.get('purchase') ?? [];
    expect(known('/v72/payments', { ...purchase?.body, merchantAcount: 'x' })).toEqual(purchase?.body);
  });
});

/** The types of Adyen's library, keyed by the last segment of a request's path. */
const TYPES: readonly (readonly [RegExp, string])[] = [
  [/\/v72\/payments$/, 'PaymentRequest'],
  [/\/v72\/payments\/details$/, 'PaymentDetailsRequest'],
  [/\/v72\/paymentMethods$/, 'PaymentMethodsRequest'],
  [/\/v72\/cancels$/, 'StandalonePaymentCancelRequest'],
  [/\/captures$/, 'PaymentCaptureRequest'],
  [/\/cancels$/, 'PaymentCancelRequest'],
  [/\/refunds$/, 'PaymentRefundRequest'],
];

/** Returns a body as Adyen's library reads and writes it, without unknown fields. */
function known(path: string, body: object): object {
  const type = TYPES.find(([pattern]) => pattern.test(path))?.[1] ?? '';
  const written = ObjectSerializer.serialize(ObjectSerializer.deserialize(body, type), type);
  return inSeconds(written);
}

/** Returns a body whose times have no milliseconds, which the library always writes. */
function inSeconds(body: object): object {
  return JSON.parse(JSON.stringify(body).replace(/(T\d\d:\d\d:\d\d)\.000Z/g, '$1Z'));
}
