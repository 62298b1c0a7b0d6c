import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import type { OrderSchema } from '#gen/payments/v1/additional_data_pb.js';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { readSettings } from '#src/connectors/mercado-pago/settings.ts';
import {
  closePreference,
  createPreference,
  createRefund,
  getPayment,
  getPreference,
  httpRequest,
  listRefunds,
  searchPayments,
  type Target,
} from '#src/connectors/mercado-pago/to-provider.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { additionalData } from '../attempts.ts';
import golden from './golden-requests.json' with { type: 'json' };
import { attemptInPesos, SECRETS } from './mercado-pago-under-test.ts';

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

const requests: Record<string, Target> = {
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
  refund: createRefund('1312345678', 10.5, TRANSACTION),
  'list refunds': listRefunds('1312345678'),
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
