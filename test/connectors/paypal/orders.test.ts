import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import type { OrderSchema } from '#gen/payments/v1/additional_data_pb.js';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { readSettings } from '#src/connectors/paypal/settings.ts';
import { createOrder, refundCapture } from '#src/connectors/paypal/to-provider.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { additionalData, redirectAttempt } from '../attempts.ts';
import { SECRETS } from './paypal-under-test.ts';

const AMOUNT = { currency_code: 'USD', value: '3000.00' };

/** The order that an attempt creates, as PayPal receives it. */
function orderOf(over: Partial<PaymentAttempt>, settings = {}) {
  const { body } = createOrder(redirectAttempt(over), AMOUNT, readSettings(settings, SECRETS));
  const { purchase_units: units, payment_source: source } = JSON.parse(body);
  return { unit: units[0], paypal: source.paypal };
}

const dollars = (value: string) => ({ currency_code: 'USD', value });

describe('the items of a PayPal order', () => {
  type Order = Extract<MessageInitShape<typeof OrderSchema>, { $typeName?: never }>;
  const withOrder = (order: Order) => orderOf({ additionalData: additionalData({ order }) }).unit;
  const WHOLE = { name: 'Night', quantity: 1, unitAmount: { value: '3000' } };

  it('the items of a PayPal order have a name and a quantity even if the merchant sends none', () => {
    const { items, amount } = withOrder({ items: [{ unitAmount: { value: '3000' } }] });
    expect(items).toEqual([{ name: 'Item', quantity: '1', unit_amount: AMOUNT }]);
    expect(amount).toEqual({ ...AMOUNT, breakdown: { item_total: AMOUNT } });
  });

  it('the items of a PayPal order have texts of at most 127 characters', () => {
    const { items } = withOrder({ items: [{ ...WHOLE, name: 'n'.repeat(128), skuCode: 's'.repeat(128) }] });
    expect(items).toMatchObject([{ name: 'n'.repeat(127), sku: 's'.repeat(127) }]);
  });

  it.each<[string, Order, object]>([
    ['shipping', { shippingAmount: { value: '500' } }, { shipping: dollars('500.00') }],
    ['a fee', { feeAmount: { value: '500' } }, { handling: dollars('500.00') }],
  ])('the items of a PayPal order add up to its amount with %s alone', (_what, order, breakdown) => {
    const items = [{ name: 'Night', quantity: 2, unitAmount: { value: '1250' } }];
    const { amount } = withOrder({ ...order, items });
    expect(amount).toEqual({ ...AMOUNT, breakdown: { item_total: dollars('2500.00'), ...breakdown } });
  });

  it.each<[string, NonNullable<Order['items']>]>([
    ['the order has none', []],
    ['one has no price', [WHOLE, { name: 'Gift', quantity: 1 }]],
    ['one has no units', [WHOLE, { name: 'Gift', quantity: 0, unitAmount: { value: '1' } }]],
    ['they do not add up', [{ ...WHOLE, quantity: 2 }]],
  ])('the items of a PayPal order are left out if %s', (_why, items) => {
    const unit = withOrder({ items });
    expect(unit.amount).toEqual(AMOUNT);
    expect(unit).not.toHaveProperty('items');
  });
});

it('the items of a PayPal order are left out if PayPal cannot express the price of one', () => {
  const items = ['989.50', '10.50'].map((value) => ({ name: 'Night', quantity: 1, unitAmount: { value } }));
  const money = { minorUnits: 100_000n, currency: 'HUF' };
  expect(orderOf({ money, additionalData: additionalData({ order: { items } }) }).unit).not.toHaveProperty(
    'items',
  );
});

describe('the payer of a PayPal order', () => {
  type Payer = MessageInitShape<typeof CustomerPayerSchema>;
  const withPayer = (payer: Payer, settings = {}) =>
    orderOf({ customerPayer: create(CustomerPayerSchema, payer) }, settings);
  const long = (length: number) => `${'a'.repeat(length - 4)}@b.c`;

  it.each([
    ['a@b', 'a@b'],
    [long(254), long(254)],
    ['ab', undefined],
    [long(255), undefined],
  ])('the payer of a PayPal order has an email address only if PayPal can accept it: %s', (email, sent) => {
    expect(withPayer({ email }).paypal.email_address).toBe(sent);
  });

  it.each([
    [{ firstName: 'Ana' }, { given_name: 'Ana' }],
    [{ lastName: 'Gómez' }, { surname: 'Gómez' }],
    [{ firstName: 'a'.repeat(141) }, { given_name: 'a'.repeat(140) }],
    [{}, undefined],
  ])('the payer of a PayPal order has the names that are known: %j', (payer, name) => {
    expect(withPayer(payer).paypal.name).toEqual(name);
  });

  const SEND = { send_shipping_address: true };
  const PLACE = { addressLine1: 'Carrera 7', country: 'CO' };
  it('a PayPal order is shipped to the known parts of the payer’s shipping address', () => {
    const line = { address_line_1: 'Carrera 7', country_code: 'CO' };
    const { unit, paypal } = withPayer({ shippingAddress: PLACE }, SEND);
    expect(unit.shipping).toEqual({ address: line });
    expect(paypal.experience_context.shipping_preference).toBe('SET_PROVIDED_ADDRESS');
    const shippingAddress = { ...PLACE, city: 'c'.repeat(121), zipCode: 'z'.repeat(61) };
    expect(withPayer({ lastName: 'Gómez', shippingAddress }, SEND).unit.shipping).toEqual({
      name: { full_name: 'Gómez' },
      address: { ...line, admin_area_2: 'c'.repeat(120), postal_code: 'z'.repeat(60) },
    });
  });

  it.each<[string, Payer, object]>([
    ['the connection does not send it', { shippingAddress: PLACE }, {}],
    ['the payer has none', {}, SEND],
    ['it lacks a country', { shippingAddress: { addressLine1: 'Carrera 7' } }, SEND],
    ['it lacks a street', { shippingAddress: { country: 'CO' } }, SEND],
  ])('a PayPal order has no shipping address if %s', (_why, payer, settings) => {
    const { unit, paypal } = withPayer(payer, settings);
    expect(unit).not.toHaveProperty('shipping');
    expect(paypal.experience_context.shipping_preference).toBe('NO_SHIPPING');
  });

  it('a PayPal order without a return URL names no page to return to', () => {
    const { experience_context: context } = orderOf({ returnUrl: '', cancelUrl: '' }).paypal;
    expect(context).not.toHaveProperty('return_url');
    expect(context).not.toHaveProperty('cancel_url');
  });
});

it('the note of a PayPal refund is one line of at most 255 characters', () => {
  const noteOf = (description: string) =>
    JSON.parse(refundCapture({ transactionId: 'x', description }, 'C', AMOUNT).body ?? '').note_to_payer;
  expect(noteOf(' One \n\t night\n')).toBe('One night');
  expect(noteOf('n'.repeat(256))).toBe('n'.repeat(255));
  expect(noteOf(' ')).toBeUndefined();
});
