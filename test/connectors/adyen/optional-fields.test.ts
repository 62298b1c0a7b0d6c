import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { StoredCredentialsSchema } from '#gen/payments/v1/payment_method_pb.js';
import { readSettings } from '#src/connectors/adyen/settings.ts';
import { methodFields, paymentRequest } from '#src/connectors/adyen/to-provider.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { additionalData, redirectAttempt } from '../attempts.ts';
import { cardWith, SECRETS } from './adyen-under-test.ts';

/** The body of the request for an attempt. */
function sentFor(attempt: PaymentAttempt, redirectMethods = {}) {
  const own = { base_url: 'https://adyen.example', merchant_account: 'ShopECOM' };
  const settings = readSettings({ ...own, redirect_methods: redirectMethods }, SECRETS);
  const amount = { currency: attempt.money.currency, value: Number(attempt.money.minorUnits) };
  const fields = methodFields(attempt, settings);
  if (!fields) throw new Error('the method is not offered');
  return JSON.parse(paymentRequest(attempt, amount, fields, settings).body ?? '');
}

describe("an Adyen payment's billing address", () => {
  const MAIN = { addressLine1: '1 Main St', city: 'Springfield' };
  const addressOf = (address: object) =>
    sentFor(
      cardWith(
        {},
        { customerPayer: create(CustomerPayerSchema, { billingAddress: { ...MAIN, ...address } }) },
      ),
    ).billingAddress;

  it.each([
    [{ country: 'US', state: 'California', zipCode: '90210' }, ['CA', '90210']],
    [{ country: 'US', state: 'ca', zipCode: '90210-1234' }, ['CA', '90210']],
    [{ country: 'US', state: 'US-NY', zipCode: ' 10001' }, ['NY', '10001']],
    [{ country: 'CA', state: 'Québec', zipCode: 'H2X 1Y4' }, ['QC', 'H2X 1Y4']],
    [{ country: 'CA', state: 'ON', zipCode: '' }, ['ON', 'N/A']],
    [{ country: 'BR', state: 'SP', zipCode: '01310-100' }, ['SP', '01310-100']],
    [{ country: 'BR', state: 'São Paulo', zipCode: '01310-100' }, [undefined, '01310-100']],
  ])(
    'the state and the postal code of %j are sent as Adyen requires them',
    (address, [stateOrProvince, postalCode]) => {
      const sent = addressOf(address);
      expect([sent.stateOrProvince, sent.postalCode, sent.street]).toEqual([
        stateOrProvince,
        postalCode,
        '1 Main St',
      ]);
    },
  );

  it.each([
    { country: 'US', state: 'Atlantis', zipCode: '90210' },
    { country: 'US', zipCode: '90210' },
    { country: 'US', state: 'CA', zipCode: '9021' },
    { country: 'US', state: 'CA' },
    { country: 'CA', state: 'California', zipCode: 'H2X 1Y4' },
  ])('an address that Adyen would refuse is left out: %j', (address) => {
    expect(addressOf(address)).toBeUndefined();
  });
});

it.each([
  [{ countryCode: '55', number: '11987654321' }, '+5511987654321'],
  [{ countryCode: '+55', number: '+5511987654321' }, '+5511987654321'],
  [{ number: '11987654321' }, undefined],
  [{ countryCode: '1', number: '2' }, undefined],
])(
  'the phone number of an Adyen payment has a plus and one country code, or is left out: %j',
  (phone, sent) => {
    const customerPayer = create(CustomerPayerSchema, { phone });
    expect(sentFor(cardWith({}, { customerPayer })).telephoneNumber).toBe(sent);
  },
);

describe('the items of an Adyen payment', () => {
  const ITEMS = [
    { name: 'Night', quantity: 2, unitAmount: { value: '1000' } },
    { name: 'Breakfast', unitAmount: { value: '500' } },
  ];
  const itemsOf = (order: Parameters<typeof additionalData>[0]['order'], type?: string) => {
    const over = {
      money: { minorUnits: 300_000n, currency: 'USD' },
      additionalData: additionalData({ order }),
    };
    if (type === undefined) return sentFor(cardWith({}, over)).lineItems;
    return sentFor(
      { ...redirectAttempt(), ...over, method: { by: 'payer', type: 'LATER', show: 'page' } },
      { LATER: type },
    ).lineItems;
  };

  it('the items are sent if they add up to the amount, with the shipping and the fee as items', () => {
    const order = { items: ITEMS, shippingAmount: { value: '400' }, feeAmount: { value: '100' } };
    expect(itemsOf(order)).toEqual([
      { description: 'Night', quantity: 2, amountIncludingTax: 100_000 },
      { description: 'Breakfast', quantity: 1, amountIncludingTax: 50_000 },
      { description: 'Shipping', quantity: 1, amountIncludingTax: 40_000 },
      { description: 'Fee', quantity: 1, amountIncludingTax: 10_000 },
    ]);
  });

  it.each([
    ['do not add up', { items: ITEMS }],
    ['lack a price', { items: [...ITEMS, { name: 'Gift' }], feeAmount: { value: '500' } }],
    ['are missing', { items: [], feeAmount: { value: '3000' } }],
  ])('no items are sent if they %s, except to a payment method that needs items', (_why, order) => {
    expect(itemsOf(order)).toBeUndefined();
    expect(itemsOf(order, 'ideal')).toBeUndefined();
    for (const type of [
      'klarna',
      'klarna_paynow',
      'facilypay_3x',
      'afterpaytouch',
      'affirm',
      'clearpay',
      'ratepay',
    ]) {
      expect(itemsOf(order, type)).toMatchObject([{ quantity: 1, amountIncludingTax: 300_000 }]);
    }
  });
});

it.each([
  [{ reason: 'UNSCHEDULED_CARD_ON_FILE', usage: 'FIRST' }, 'Ecommerce', 'CardOnFile'],
  [{ reason: 'UNSCHEDULED_CARD_ON_FILE' }, 'Ecommerce', 'CardOnFile'],
  [{ reason: 'SUBSCRIPTION', usage: 'FIRST' }, 'Ecommerce', 'Subscription'],
  [{ reason: 'UNSCHEDULED_CARD_ON_FILE', usage: 'USED' }, 'ContAuth', 'UnscheduledCardOnFile'],
])(
  'Adyen gets the model of unscheduled payments only for later payments, since it refuses it for the first: %j',
  (credentials, interaction, model) => {
    const storedCredentials = create(StoredCredentialsSchema, credentials);
    const { shopperInteraction, recurringProcessingModel } = sentFor(cardWith({ storedCredentials }));
    expect([shopperInteraction, recurringProcessingModel]).toEqual([interaction, model]);
  },
);
