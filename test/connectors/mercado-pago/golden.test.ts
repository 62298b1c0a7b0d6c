import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import type { OrderSchema } from '#gen/payments/v1/additional_data_pb.js';
import { AddressSchema, CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { StoredCredentialsSchema, ThreeDSecureSchema } from '#gen/payments/v1/payment_method_pb.js';
import { type CardMethod, createCardPayment } from '#src/connectors/mercado-pago/card-request.ts';
import { createCardToken, findCardMethods } from '#src/connectors/mercado-pago/card-token.ts';
import {
  cancelPayment,
  capturePayment,
  createCode,
  listPaymentMethods,
} from '#src/connectors/mercado-pago/payment-request.ts';
import { readSettings } from '#src/connectors/mercado-pago/settings.ts';
import {
  closePreference,
  createPreference,
  createRefund,
  getChargeback,
  getPayment,
  getPreference,
  httpRequest,
  listRefunds,
  searchPayments,
  type Target,
} from '#src/connectors/mercado-pago/to-provider.ts';
import type { LocalMethodOfPayer, PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { additionalData, cardAttempt } from '../attempts.ts';
import golden from './golden-requests.json' with { type: 'json' };
import {
  attemptInPesos,
  codeAttempt,
  LOCAL_METHODS,
  type LocalType,
  SECRETS,
} from './mercado-pago-under-test.ts';

const TRANSACTION = '5f0c4a52-7c3e-4f7b-9f44-0a1d6b1f2c3d';
const settings = readSettings({ country: 'AR' }, { access_token: SECRETS.access_token });
const notified = readSettings(
  { country: 'AR', binary_mode: true, statement_descriptor: 'SHOP', excluded_payment_types: ['ticket'] },
  SECRETS,
);

const plain: PaymentAttempt = {
  ...attemptInPesos(),
  transactionId: TRANSACTION,
  paymentId: '7d1f7a0e-52d4-4b8a-8a39-3f0e6a2b1c4d',
  expiresAtMs: Date.UTC(2030, 0, 1),
};
const full: PaymentAttempt = {
  ...plain,
  money: { minorUnits: 2_001n, currency: 'ARS' },
  metadata: [{ key: 'campaign', value: 'spring' }],
  customerPayer: create(CustomerPayerSchema, {
    firstName: 'Ana',
    lastName: 'Gómez',
    email: 'ana@example.com',
    phone: { countryCode: '54', number: '1122334455' },
    document: { documentType: 'DNI', documentNumber: '12345678' },
    billingAddress: { addressLine1: 'Av. Corrientes 1234', zipCode: 'C1043', city: 'Buenos Aires' },
  }),
  additionalData: additionalData({
    order: {
      items: [
        { id: 'mug', name: 'Mug', category: 'home', quantity: 2, unitAmount: { value: '7.50' } },
        { skuCode: 'pen-1', name: 'Pen', quantity: 3, unitAmount: { value: '1.66666666666666674' } },
      ],
    },
  }),
};

/** The request for a payment by a local method. */
function codeRequest(
  type: LocalType,
  over: Partial<PaymentAttempt> = {},
  method: Partial<LocalMethodOfPayer> = {},
  of = settings,
) {
  const { transactionId, paymentId, expiresAtMs } = plain;
  const attempt = codeAttempt(type, { transactionId, paymentId, expiresAtMs, ...over });
  const own = { ...(attempt.method as LocalMethodOfPayer), ...method };
  return createCode({ ...attempt, method: own }, 30_000, LOCAL_METHODS[type].id, of);
}

const card = cardAttempt('4509953566233704', {}, { installments: 3, softDescriptor: 'Café São João & Co' });
const prepared = { token: 'a1b2c3', methodId: 'visa', issuerId: 310 };

/** The request for a payment by card. */
function cardRequest(
  over: Partial<PaymentAttempt> = {},
  options: Partial<CardMethod> = {},
  of = settings,
  with_: Parameters<typeof createCardPayment>[2] = prepared,
) {
  const method = { ...(card.method as CardMethod), ...options };
  return createCardPayment({ ...plain, ...over, method }, 3000.5, with_, of);
}

const flight = additionalData({
  airline: {
    legs: [
      {
        departureAirport: 'EZE',
        departureDatetime: '2030-03-01T10:05',
        departureAirportTimezone: '-03:00',
        carrierCode: 'AR',
      },
      {
        arrivalAirport: 'GRU',
        arrivalDatetime: '2030-03-01 12:50:00',
        arrivalAirportTimezone: 'America/Sao_Paulo',
      },
    ],
    passengers: [
      { firstName: 'Ana', lastName: 'Gómez', document: { documentType: 'DNI', documentNumber: '12345678' } },
    ],
  },
});

const requests: Record<string, Target> = {
  'create the token of a card': createCardToken(
    (card.method as CardMethod).card,
    full.customerPayer,
    settings,
  ),
  'create the token of a stored card': createCardToken(
    { ...(card.method as CardMethod).card, securityCode: undefined, holderName: '' },
    plain.customerPayer,
    settings,
  ),
  'find the method of a card': findCardMethods('4509953566233704'),
  'find the method of a shorter card': findCardMethods('371180303257522'),
  'charge a card, plain': cardRequest({}, {}, settings, { ...prepared, issuerId: undefined }),
  'authorize a card, with all that is told': cardRequest(
    {
      customerPayer: create(CustomerPayerSchema, {
        ...full.customerPayer,
        ipAddress: '203.0.113.7',
        merchantCustomerCreatedAt: timestampFromMs(1_700_000_000_000),
        shippingAddress: create(AddressSchema, {
          ...{ addressLine1: 'Av. Corrientes 1234', zipCode: 'C1043', city: 'Buenos Aires', state: 'AR-C' },
          country: 'AR',
        }),
      }),
      metadata: [{ key: 'campaign', value: 'spring' }],
      additionalData: flight,
    },
    { capture: false },
    notified,
  ),
  'charge a card that is stored': cardRequest(
    {},
    { storedCredentials: create(StoredCredentialsSchema, { reason: 'SUBSCRIPTION', usage: 'FIRST' }) },
  ),
  'charge a stored card': cardRequest(
    {},
    {
      softDescriptor: '',
      storedCredentials: create(StoredCredentialsSchema, {
        ...{ reason: 'UNSCHEDULED_CARD_ON_FILE', usage: 'USED', networkTransactionId: '016150703802094' },
      }),
    },
    notified,
  ),
  'charge a card with results of 3-D Secure': cardRequest(
    {},
    {
      threeDSecure: create(ThreeDSecureSchema, {
        ...{ version: '2.2.0', electronicCommerceIndicator: '5', cryptogram: 'M6+990I6FQxQaH5r==' },
        ...{ transactionId: 'd0ba0aaf-1', directoryServerTransactionId: 'c4e59ceb-2' },
      }),
    },
  ),
  'capture an authorization': capturePayment('1312345678', 10.5, TRANSACTION),
  'cancel an authorization': cancelPayment('1312345678', TRANSACTION),
  'create, plain': createPreference(plain, 3000.5, settings),
  'create, with all that is told': createPreference(full, 20.01, notified),
  'create, with an order that does not add up': createPreference(
    { ...full, money: { minorUnits: 2_501n, currency: 'ARS' } },
    25.01,
    settings,
  ),
  'create, with a local return address': createPreference(
    { ...plain, returnUrl: 'http://127.0.0.1/return', cancelUrl: 'http://127.0.0.1/return/canceled' },
    3000.5,
    settings,
  ),
  'create, with a long notification address': createPreference(
    { ...plain, notificationUrl: `https://payments.example/${'n'.repeat(250)}` },
    3000.5,
    notified,
  ),
  'read the preference': getPreference('123-abc'),
  'close the preference': closePreference('123-abc', Date.UTC(2026, 0, 1)),
  search: searchPayments(TRANSACTION),
  'read a payment': getPayment('1312345678'),
  'read a chargeback': getChargeback('217000087654321000'),
  refund: createRefund('1312345678', 10.5, TRANSACTION),
  'list refunds': listRefunds('1312345678'),
  'create a payment by Pix': codeRequest('PIX'),
  'create a payment by boleto': codeRequest(
    'BOLETO',
    { metadata: [{ key: 'campaign', value: 'spring' }] },
    {},
    notified,
  ),
  'create a payment by OXXO': codeRequest('OXXO', { description: '' }),
  'create a payment by PSE': codeRequest('PSE'),
  'create a payment by PSE with an end': codeRequest('PSE', {}, { wantedExpiryMs: 1 }),
  'create a payment by Efecty': codeRequest('EFECTY'),
  'cancel a payment': cancelPayment('1312345678'),
  'list payment methods': listPaymentMethods(),
};

describe('the requests to Mercado Pago', () => {
  it.each(Object.entries(requests))(
    'the requests to Mercado Pago match the reviewed file: %s',
    (name, target) => {
      const { body, ...rest } = httpRequest(target, settings);
      const request = { ...rest, ...(body !== undefined && { body: JSON.parse(body) }) };
      expect(request).toEqual((golden as Record<string, unknown>)[name]);
    },
  );

  it('the requests to Mercado Pago respect the limits of a preference, whatever a merchant sends', () => {
    const { body } = createPreference({ ...plain, description: 'd'.repeat(1_000) }, 3000.5, settings);
    expect(body).toMatchObject({ items: [{ title: 'd'.repeat(256) }] });
    const longest = { ...plain, notificationUrl: `https://payments.example/${'n'.repeat(202)}` };
    const { body: notifiedBody } = createPreference(longest, 3000.5, notified);
    expect(notifiedBody.notification_url).toHaveLength(248);
  });

  const WHOLE = { name: 'Mug', quantity: 1, unitAmount: { value: '3000.50' } };
  const ORDER = { id: 'order-1', title: 'Two nights in Bogotá', quantity: 1, unit_price: 3000.5 };
  it.each<[string, NonNullable<MessageInitShape<typeof OrderSchema>['items']>, object[]]>([
    [
      'ids and titles, if the merchant sends none',
      [
        { quantity: 1, unitAmount: { value: '1000.50' } },
        { name: 'n'.repeat(257), quantity: 2, unitAmount: { value: '1000' } },
      ],
      [
        { id: '1', title: 'Payment', quantity: 1, unit_price: 1000.5 },
        { id: '2', title: 'n'.repeat(256), quantity: 2, unit_price: 1000 },
      ],
    ],
    ['no item without a price', [WHOLE, { name: 'Gift', quantity: 1 }], [ORDER]],
    ['no free item', [WHOLE, { name: 'Gift', quantity: 1, unitAmount: { value: '0' } }], [ORDER]],
    ['no item without a quantity', [WHOLE, { name: 'Gift', unitAmount: { value: '1' } }], [ORDER]],
  ])("the items of a preference add up to the payment's amount and contain %s", (_what, items, sent) => {
    const order = { ...plain, additionalData: additionalData({ order: { items } }) };
    const { body } = createPreference(order, 3000.5, settings);
    expect(body.items).toEqual(sent.map((item) => ({ ...item, currency_id: 'ARS' })));
  });

  it('a preference without a description, an order ID or items is named after the payment', () => {
    const bare = { ...plain, description: '', merchantOrderId: '', additionalData: additionalData({}) };
    const item = { id: plain.paymentId, title: 'Payment', quantity: 1, unit_price: 3000.5 };
    expect(createPreference(bare, 3000.5, settings).body.items).toEqual([{ ...item, currency_id: 'ARS' }]);
  });

  it.each<[MessageInitShape<typeof CustomerPayerSchema>, object]>([
    [{}, {}],
    [{ phone: { number: '1122334455' } }, { phone: { number: '1122334455' } }],
    [{ phone: { countryCode: '54' } }, {}],
    [{ document: { documentNumber: '12345678' } }, {}],
    [{ document: { documentType: 'DNI' } }, {}],
    [{ shippingAddress: { zipCode: 'C1043' } }, { address: { zip_code: 'C1043' } }],
    [
      { billingAddress: { addressLine1: 'Corrientes 1' }, shippingAddress: { zipCode: 'C1043' } },
      { address: { street_name: 'Corrientes 1' } },
    ],
  ])('the payer of a preference contains only what is known about them: %j', (payer, sent) => {
    const known = { ...plain, customerPayer: create(CustomerPayerSchema, payer) };
    expect(createPreference(known, 3000.5, settings).body.payer).toEqual(sent);
  });
});

describe('the payer of a payment by a local method', () => {
  const payerOf = (type: LocalType, payer: MessageInitShape<typeof CustomerPayerSchema>) =>
    codeRequest(type, { customerPayer: create(CustomerPayerSchema, payer) }).body.payer;

  it.each([
    ['Rua das Flores, 123', 'Rua das Flores', '123'],
    ['Rua Italian nº 12-B', 'Rua Italian', '12-B'],
    ['Av. Paulista 1578', 'Av. Paulista', '1578'],
    ['Rua 15 de Novembro', 'Rua 15 de Novembro', 'S/N'],
    ['Calle 93 # 11-27', 'Calle 93', '11-27'],
    ['123', '123', 'S/N'],
  ])('the street of %s is %s, number %s', (addressLine1, street_name, street_number) => {
    expect(payerOf('BOLETO', { billingAddress: { addressLine1 } })?.address).toEqual({
      street_name,
      street_number,
    });
  });

  it('a boleto has the letters of a state and the characters of a postal code', () => {
    const billingAddress = { addressLine1: 'Rua X 1', state: 'BR-SP', zipCode: '01310-100' };
    expect(payerOf('BOLETO', { billingAddress })?.address).toMatchObject({
      federal_unit: 'SP',
      zip_code: '01310100',
    });
  });

  it.each([
    [
      { countryCode: '57', number: '3001234567' },
      { area_code: '300', number: '12345' },
    ],
    [
      { countryCode: '+57', number: '601 234 5678' },
      { area_code: '601', number: '23456' },
    ],
    [{ number: '3001234567' }, { area_code: '300', number: '12345' }],
    [undefined, undefined],
  ])('the phone number of a PSE payer has two parts: %j', (phone, parts) => {
    expect(payerOf('PSE', { ...(phone && { phone }) })?.phone).toEqual(parts);
  });

  it.each([
    ['NIT', '900.123.456-7', 'association', '9001234567'],
    ['cc', '76262349', 'individual', '76262349'],
  ])('a PSE payer with the document %s %s is an %s', (documentType, documentNumber, entity_type, number) => {
    expect(payerOf('PSE', { document: { documentType, documentNumber } })).toMatchObject({
      entity_type,
      identification: { type: documentType.toUpperCase(), number },
    });
  });

  it('the texts of a PSE payer have at most the documented lengths, and the postal code five digits', () => {
    const long = 'x'.repeat(255);
    const billingAddress = {
      ...{ addressLine1: `${long} ${'9'.repeat(20)}`, neighborhood: long, city: long, zipCode: '501' },
    };
    expect(payerOf('PSE', { firstName: long, lastName: long, billingAddress })).toMatchObject({
      first_name: 'x'.repeat(32),
      last_name: 'x'.repeat(32),
      address: {
        zip_code: '00501',
        street_name: 'x'.repeat(18),
        street_number: '99999',
        neighborhood: 'x'.repeat(18),
        city: 'x'.repeat(18),
      },
    });
  });
});
