import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { checkRequest } from '#src/payments/request/check-request.ts';

type Init = Extract<MessageInitShape<typeof CreatePaymentRequestSchema>, { $typeName?: never }>;

const valid: Init = { country: 'US', amount: { currency: 'USD', value: { value: '10' } } };
const faults = (init: Init) =>
  checkRequest(create(CreatePaymentRequestSchema, { ...valid, ...init })).map(
    ({ field, code }) => `${field} ${code}`,
  );

// api/bad-input.test.ts tests that every protocol refuses each bad field; this file tests the
// values between.
describe('checkRequest', () => {
  it('checkRequest accepts a request that has only the required fields', () => {
    expect(faults({})).toEqual([]);
  });

  it.each([
    ['1000000000000', 'USD'],
    ['0.01', 'USD'],
    ['10.000000', 'USD'],
    ['900719925474.0991', 'CLF'],
    ['1000000000000', 'KWD'],
    ['1', 'XCG'],
  ])('checkRequest accepts the amount %s %s', (value, currency) => {
    expect(faults({ amount: { currency, value: { value } } })).toEqual([]);
  });

  it.each([
    ['0', true, []],
    ['0.00', true, []],
    ['1', true, ['amount.value OUT_OF_RANGE']],
    ['-1', true, ['amount.value OUT_OF_RANGE']],
    ['0', false, ['amount.value OUT_OF_RANGE']],
  ])('checkRequest checks the amount %s if verify is %s', (value, verify, expected) => {
    const paymentMethod = { type: 'CARD', detail: { kind: { case: 'card' as const, value: { verify } } } };
    expect(faults({ amount: { currency: 'USD', value: { value } }, paymentMethod })).toEqual(expected);
  });

  it.each([{ a: Number.NaN }, { a: [{ b: 'x\0' }] }, { 'n\0': 1 }, { a: { b: Number.POSITIVE_INFINITY } }])(
    'checkRequest refuses taxes and seller details without a JSON form, which only binary messages can hold: %j',
    (json) => {
      expect(faults({ taxes: json })).toEqual(['taxes INVALID_FORMAT']);
      expect(faults({ additionalData: { sellerDetails: json } })).toEqual([
        'additional_data.seller_details INVALID_FORMAT',
      ]);
    },
  );

  it.each([
    {},
    { kind: { case: 'stringValue', value: 'x\0' } },
    { kind: { case: 'numberValue', value: NaN } },
  ])('checkRequest refuses lists without a JSON form, which only binary messages can hold: %j', (value) => {
    const list = { values: [value as { kind: { case: 'stringValue'; value: string } }] };
    expect(faults({ taxesList: list })).toEqual(['taxes INVALID_FORMAT']);
    expect(faults({ additionalData: { order: { discounts: list } } })).toEqual([
      'additional_data.order.discounts INVALID_FORMAT',
    ]);
  });

  it('checkRequest refuses taxes that are both an object and a list, which only binary messages can hold', () => {
    expect(faults({ taxes: {}, taxesList: {} })).toEqual(['taxes NOT_ALLOWED']);
  });

  it('checkRequest accepts a ticket along with tickets only if it is the first of them, as in the record', () => {
    const [first, second] = [{ ticketNumber: '1' }, { ticketNumber: '2' }];
    const airline = (ticket: object, tickets: object[]) =>
      faults({ additionalData: { airline: { ticket, tickets } } });
    expect(airline(first, [first, second])).toEqual([]);
    expect(airline(first, [])).toEqual([]);
    expect(airline(second, [first, second])).toEqual(['additional_data.airline.ticket NOT_ALLOWED']);
  });

  it.each(['XXX', 'XTS', 'XAU', 'XAG', 'XPT', 'XPD', 'XBA', 'XDR', 'XSU', 'XUA'])(
    'checkRequest refuses %s, in which no payment can be made',
    (currency) => {
      expect(faults({ amount: { currency, value: { value: '1' } } })).toEqual([
        'amount.currency INVALID_FORMAT',
      ]);
    },
  );

  it.each([
    ['1000000000000.01', 'USD', 'OUT_OF_RANGE'],
    ['1000000000001', 'JPY', 'OUT_OF_RANGE'],
    ['0', 'USD', 'OUT_OF_RANGE'],
    ['-10', 'USD', 'OUT_OF_RANGE'],
    // Below 10^12, but more minor units than a double holds exactly: providers read JSON.
    ['999999999999.9999', 'CLF', 'OUT_OF_RANGE'],
    ['900719925474.0992', 'CLF', 'OUT_OF_RANGE'],
    ['1.5', 'JPY', 'INVALID_FORMAT'],
    ['1.0001', 'KWD', 'INVALID_FORMAT'],
    ['ten', 'USD', 'INVALID_FORMAT'],
  ])('checkRequest refuses the amount %s %s', (value, currency, code) => {
    expect(faults({ amount: { currency, value: { value } } })).toEqual([`amount.value ${code}`]);
  });

  it('checkRequest accepts negative amounts within an order, such as discounts, and a fare in its own currency', () => {
    const order = { feeAmount: { value: '-1.50' }, items: [{ unitAmount: { value: '-1000000000000' } }] };
    const legs = [{ baseFare: { value: '1.5' } }, { baseFare: { value: '1.555' }, baseFareCurrency: 'KWD' }];
    expect(faults({ additionalData: { order, airline: { legs } } })).toEqual([]);
    const far = [{ baseFare: { value: '1000000000000.5' }, baseFareCurrency: 'JPY' }];
    expect(faults({ additionalData: { airline: { legs: far } } })).toEqual([
      'additional_data.airline.legs[0].base_fare OUT_OF_RANGE',
    ]);
  });

  it("checkRequest accepts 20 decimal places in an order's amounts, but only the currency's own in a tip", () => {
    const unitAmount = { value: `0.${'3'.repeat(20)}` };
    expect(faults({ additionalData: { order: { items: [{ unitAmount }] } } })).toEqual([]);
    expect(faults({ additionalData: { order: { tipAmount: { value: '0.001' } } } })).toEqual([
      'additional_data.order.tip_amount INVALID_FORMAT',
    ]);
  });

  it.each([
    'shop.example.com',
    'shop.example.com:8443/back?order=1#top',
    'localhost:3000',
    'http://127.0.0.1:8080/back',
    'https://shop.example.com/zurück?to=a@b.example',
    'shop.app://paid',
    'com.example.shop:/paid?order=1',
    'SHOPAPP://paid',
    'xn--bcher-kva.example/a',
    'bücher.example:8443/zurück',
    'दुकान.भारत',
    '[2001:db8::1]:8443/back',
    'my_shop.example.com/back',
    'shop.example.com.',
    'shop.example.com.:8443/back',
  ])('checkRequest accepts the callback_url %s', (callbackUrl) => {
    expect(faults({ callbackUrl })).toEqual([]);
  });

  it.each([
    'shop',
    'javascript:alert(1)',
    'javascript://shop.example.com/%0aalert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'JavaScript://%0aalert(1)',
    'data:/,x',
    'vbscript://x',
    'intent://scan/#Intent;end',
    'ftp://shop.example.com',
    'shopapp:paid',
    'http:shop.example.com',
    'https://',
    'https://shop.example.com:70000',
    '/back',
    '//shop.example.com',
    'shop.example.com\\@evil.example',
    'shop.example.com/"><script>',
    'shop.example.com/a\nb',
    ' shop.example.com',
    'shop.example.com:port',
    'bücher',
    'bücher.example:port',
    '[2001:db8::g]',
    '[2001:db8::1',
    '[]:80',
  ])('checkRequest refuses the callback_url %j', (callbackUrl) => {
    expect(faults({ callbackUrl })).toEqual(['callback_url INVALID_FORMAT']);
  });

  it.each([
    'https://user:password@shop.example.com/back',
    'https://user@shop.example.com/back',
    'https:///user:password@shop.example.com',
    'shop.app://user:password@paid',
  ])('checkRequest refuses the credentials in the callback_url %s', (callbackUrl) => {
    expect(faults({ callbackUrl })).toEqual(['callback_url NOT_ALLOWED']);
  });

  it.each(['2024-02-29', '1900-01-01', '0001-01-01'])('checkRequest accepts the date %s', (dateOfBirth) => {
    expect(faults({ customerPayer: { dateOfBirth } })).toEqual([]);
  });

  it.each(['2023-02-29', '2024-04-31', '2024-1-1', '20240101', 'today', '2024-01-01T00:00:00Z'])(
    'checkRequest refuses the date %s',
    (dateOfBirth) => {
      expect(faults({ customerPayer: { dateOfBirth } })).toEqual([
        'customer_payer.date_of_birth INVALID_FORMAT',
      ]);
    },
  );

  it('checkRequest names every bad field', () => {
    const payer = { nationality: 'XX', billingAddress: { country: 'usa' }, firstName: 'a\0' };
    expect(faults({ country: 'ZZ', customerPayer: payer }).sort()).toEqual([
      'country INVALID_FORMAT',
      'customer_payer.billing_address.country INVALID_FORMAT',
      'customer_payer.first_name INVALID_FORMAT',
      'customer_payer.nationality INVALID_FORMAT',
    ]);
  });

  it('checkRequest accepts an expiry date in the past, which is for the provider to refuse', () => {
    const cardData = { number: '4111111111111111', expirationMonth: 1, expirationYear: 0 };
    const paymentMethod = { type: 'CARD', detail: { kind: { case: 'card' as const, value: { cardData } } } };
    expect(faults({ paymentMethod })).toEqual([]);
  });

  it('checkRequest accepts arbitrary JSON as a device fingerprint, and times from the year 1 to 9999', () => {
    const kinds = [
      { case: 'nullValue', value: 0 },
      { case: 'boolValue', value: false },
      { case: 'stringValue', value: '' },
      { case: 'numberValue', value: -0 },
      { case: 'listValue', value: { values: [] } },
      { case: 'structValue', value: { fields: {} } },
    ];
    const deviceFingerprints = kinds.map((kind) => ({ kind }) as never);
    for (const seconds of [-62_135_596_800n, 253_402_300_799n]) {
      const merchantCustomerCreatedAt = { seconds, nanos: 999_999_999 };
      expect(faults({ customerPayer: { deviceFingerprints, merchantCustomerCreatedAt } })).toEqual([]);
    }
  });
});
