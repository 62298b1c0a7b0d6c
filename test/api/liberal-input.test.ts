import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PROTOCOLS } from '../support/api-clients.ts';
import { clients, onService } from '../support/on-service.ts';
import {
  CARD_DATA,
  CUSTOMER,
  cardPayment,
  headersOne,
  type RequestJson,
  walletPayment,
  withField,
} from '../support/payment-requests.ts';

const PAYER = 'customer_payer';

onService();

const JSON_PROTOCOLS = ['rest', 'connectJson'] as const;

async function created(protocol: (typeof PROTOCOLS)[number], request: RequestJson) {
  const reply = await clients.create(protocol, request, headersOne());
  expect({ protocol, reason: reply.reason, fields: reply.fields }).toMatchObject({
    reason: undefined,
    fields: [],
  });
  return JSON.parse(reply.record);
}

it.each([
  [`${PAYER}.date_of_birth`, null],
  [`${PAYER}.email`, null],
  [`${PAYER}.ip_address`, null],
  [`${PAYER}.country`, null],
  [`${PAYER}.phone.country_code`, null],
  [`${PAYER}.billing_address.country`, null],
  [`${PAYER}.id`, null],
  [`${PAYER}.merchant_customer_id`, null],
  [`${PAYER}.device_fingerprint`, null],
  ['callback_url', null],
  // Free text is returned as sent.
  [`${PAYER}.first_name`, ''],
])('an empty %s counts as absent, over every protocol', async (path, told) => {
  for (const protocol of PROTOCOLS) {
    const record = await created(protocol, withField(cardPayment(), path, ''));
    expect(path.split('.').reduce((within, name) => within[name], record)).toBe(told);
  }
});

it.each([
  ['first_name', '', 'Valentina'],
  ['phone', {}, { country_code: '57', number: '3001234567' }],
  ['phone', { country_code: '', number: '' }, { country_code: '57', number: '3001234567' }],
  ['document', { document_type: null }, { document_type: 'CC', document_number: '1032456789' }],
  // An object in the request replaces the stored one as a whole; the two are never merged.
  ['phone', { number: '5' }, { country_code: null, number: '5' }],
  // The stored customer has no value for these.
  ['gender', '', ''],
  ['billing_address', {}, expect.objectContaining({ city: null })],
])(
  '%s, sent as %j, comes from the stored customer unless the request contains a value',
  async (field, sent, told) => {
    const request = withField(cardPayment(), PAYER, { id: CUSTOMER, [field]: sent });
    for (const protocol of PROTOCOLS)
      expect((await created(protocol, request)).customer_payer[field]).toEqual(told);
  },
);

it.each([
  'workflow',
  'checkout',
  'additional_data',
  'additional_data.order.items',
  'additional_data.order.fee_amount',
  'payment_method.vault_on_success',
  'payment_method.detail.card.installments',
  `${CARD_DATA}.security_code`,
  `${PAYER}.merchant_customer_created_at`,
  `${PAYER}.browser_info.javascript_enabled`,
])('an empty string as %s counts as absent, in JSON', async (path) => {
  for (const protocol of JSON_PROTOCOLS) await created(protocol, withField(cardPayment(), path, ''));
});

it.each([
  ['USD', '8.403361344537815'],
  ['JPY', '33.33'],
  ['CLP', '0.09999999999999999'],
  ['USD', '-0.00000000000000000005'],
])('%s amounts that only describe the order are returned as sent: %s', async (currency, amount) => {
  const request = {
    ...cardPayment(),
    amount: { currency, value: 10 },
    additional_data: {
      order: { fee_amount: amount, shipping_amount: amount, items: [{ unit_amount: amount, quantity: 3 }] },
      airline: {
        legs: [{ base_fare: amount }, { base_fare: amount, base_fare_currency: 'COP' }],
        tickets: [{ total_fare_amount: amount, total_tax_amount: amount, total_fee_amount: amount }],
      },
    },
  };
  for (const protocol of PROTOCOLS) {
    const reply = await clients.create(protocol, request, headersOne());
    expect({ protocol, fields: reply.fields }).toEqual({ protocol, fields: [] });
    const names =
      'fee_amount|shipping_amount|unit_amount|base_fare|total_fare_amount|total_tax_amount|total_fee_amount';
    const written = [...reply.record.matchAll(new RegExp(`"(?:${names})":(-?[0-9.]+)`, 'g'))];
    expect(written.map(([, number]) => number)).toEqual(Array.from({ length: 8 }, () => amount));
  }
});

it('details of the order and the journey are returned as sent, over every protocol', async () => {
  const order = {
    taxes: [{ type: 'VAT', percentage: 19, value: 1.6 }],
    discounts: [{ id: 'd-1', name: 'Spring', unit_amount: 2.5 }],
    tickets: [{ id: 't-1', event: { city: 'Cali', seats: ['A1', 'A2'] } }],
    fulfillment: { type: 'PICKUP', store: { id: 7 } },
    sales_channel: 'IN_STORE',
    shipping: { carrier: 'Post', days: 3, insured: true },
    items: [{ id: '1', url: 'https://shop.example/1', image_url: 'https://shop.example/1.png' }],
  };
  const airline = { legs: [{ id: 'leg-1' }, { id: 2 }], passengers: [{ id: 'p-1' }, { id: 2 }] };
  const request = { ...cardPayment(), additional_data: { order, airline } };
  for (const protocol of PROTOCOLS) {
    const { additional_data } = await created(protocol, request);
    expect({ protocol, ...additional_data }).toMatchObject({ protocol, order, airline });
  }
});

it.each([[[]], [[{ type: 'VAT', value: 1.6 }]], [{}], [{ vat: 1.6 }]])(
  'taxes are returned as sent, as an array or an object: %j',
  async (taxes) => {
    for (const protocol of PROTOCOLS) {
      const record = await created(protocol, { ...cardPayment(), taxes });
      expect([protocol, record.taxes]).toEqual([protocol, taxes]);
    }
  },
);

it('amounts that describe the order may be JSON numbers with rounding errors', async () => {
  const items = [{ unit_amount: 8.403361, quantity: 3 }, { unit_amount: 0.1 + 0.2 }];
  const record = await created('rest', withField(cardPayment(), 'additional_data.order.items', items));
  expect(record.additional_data.order.items.map((item: RequestJson) => item.unit_amount)).toEqual([
    8.403361, 0.30000000000000004,
  ]);
});

it('java_enabled is a string but may also be sent as true or false', async () => {
  for (const protocol of JSON_PROTOCOLS) {
    for (const [sent, told] of [
      [true, 'true'],
      [false, 'false'],
      ['yes', 'yes'],
    ]) {
      const request = withField(cardPayment(), `${PAYER}.browser_info.java_enabled`, sent);
      expect((await created(protocol, request)).customer_payer.browser_info.java_enabled).toBe(told);
    }
  }
});

it.each([
  ['2024-02-29 10:20:30', '2024-02-29T10:20:30.000000Z'],
  ['2024-02-29 10:20:30.5', '2024-02-29T10:20:30.500000Z'],
  ['2024-02-29T10:20:30+02:00', '2024-02-29T08:20:30.000000Z'],
])('the time %s is accepted', async (sent, told) => {
  for (const protocol of JSON_PROTOCOLS) {
    const request = withField(cardPayment(), `${PAYER}.merchant_customer_created_at`, sent);
    expect((await created(protocol, request)).customer_payer.merchant_customer_created_at).toBe(told);
  }
});

it('a wallet payment may have card fields without effect, but no field that requires a card', async () => {
  const withCard = (card: object) => withField(walletPayment(), 'payment_method.detail', { card });
  for (const card of [{}, { verify: false }, { capture: true }, { installments: 1 }]) {
    await created('rest', withCard(card));
  }
  for (const card of [
    { installments: 3 },
    { three_d_secure: {} },
    { card_data: { number: '4111111111111111' } },
  ]) {
    const { fields } = await clients.create('rest', withCard(card), headersOne());
    expect(fields.map(({ field }) => field.split('.').slice(0, 3).join('.'))).toContain(
      'payment_method.detail.card',
    );
  }
});

it.each([
  ['country', 'usa', 'must be an ISO 3166-1 alpha-2 country code'],
  ['country', 'us', 'must be in upper case, such as US'],
  ['amount.currency', 'usd', 'must be in upper case, such as USD'],
  ['amount.currency', 'us', 'must be the ISO 4217 code of a payment currency'],
  [`${CARD_DATA}.security_code`, '12a', 'must be 3 or 4 digits'],
  [`${CARD_DATA}.number`, '4111-1111', 'must be 8 to 19 digits, without spaces or dashes'],
  [`${PAYER}.phone.country_code`, 'x', 'must be 1 to 7 digits, with or without a leading plus sign'],
])('the error for an invalid %s describes the expected format', async (path, value, message) => {
  const { fields } = await clients.create('rest', withField(cardPayment(), path, value), headersOne());
  expect(fields.filter(({ field }) => field === path).map((error) => error.message)).toContain(message);
});

it('every pattern in the contract has an error message', () => {
  const root = join(import.meta.dirname, '../..');
  const words = readFileSync(join(root, 'src/wire/validate.ts'), 'utf8');
  const protos = globSync('proto/payments/**/*.proto', { cwd: root });
  const patterns = protos.flatMap((path) =>
    [...readFileSync(join(root, path), 'utf8').matchAll(/pattern\s*[=:]\s*"([^"]+)"/g)].map(
      ([, pattern]) => pattern,
    ),
  );
  expect(patterns.length).toBeGreaterThan(20);
  expect(patterns.filter((pattern) => !words.includes(`'${pattern}'`))).toEqual([]);
});

const QUANTITY = 'additional_data.order.items[0].quantity';

it.each([
  [1.5, '1.5'],
  [0.333, '0.333'],
  [2, '2'],
  [0, '0'],
  [0.1234567890123456, '0.1234567890123456'],
  ['1.50', '1.5'],
  ['2', '2'],
  // Binary protocols send it as quantity_decimal.
  ['2.00', '2'],
])('the quantity %s is accepted and returned as %s, over every protocol', async (sent, told) => {
  for (const protocol of PROTOCOLS) {
    const reply = await clients.create(protocol, withField(cardPayment(), QUANTITY, sent), headersOne());
    expect({ protocol, reason: reply.reason, fields: reply.fields }).toMatchObject({ reason: undefined });
    expect(reply.record).toContain(`"quantity":${told},`);
    expect(reply.record).not.toContain('quantity_decimal');
  }
});

it.each([-0.5, '-1', '1e1', 'two', true])(
  'the invalid quantity %j is refused with the name of its field',
  async (sent) => {
    const { fields } = await clients.create('rest', withField(cardPayment(), QUANTITY, sent), headersOne());
    expect(fields.map(({ field }) => field)).toEqual([QUANTITY]);
  },
);

it('a decimal may have 64 characters with its trailing zeros, and the error names this limit', async () => {
  const amount = (zeros: number) => withField(cardPayment(), 'amount.value', `10.${'0'.repeat(zeros)}`);
  for (const protocol of JSON_PROTOCOLS) {
    expect((await created(protocol, amount(61))).amount.value).toBe(10);
    const { fields } = await clients.create(protocol, amount(62), headersOne());
    const message = 'must be a decimal number without exponent, of at most 64 characters';
    expect(fields).toEqual([{ field: 'amount.value', code: 'INVALID_FORMAT', message }]);
  }
});
