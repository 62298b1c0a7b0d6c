import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROTOCOLS } from '../support/api-clients.ts';
import { clients, onService, server } from '../support/on-service.ts';
import {
  ACCOUNT_ONE,
  cardPayment,
  headersOne,
  type RequestJson,
  withField,
} from '../support/payment-requests.ts';

onService();

const CARD = 'payment_method.detail.card';

describe('fields that are known but not supported', () => {
  it.each([
    ['split', [{ recipient: 'a', amount: 5 }]],
    ['split_marketplace', [{ recipient_id: 'a', type: 'PURCHASE', amount: { value: 5 } }]],
    ['split_payment_methods', [{ type: 'CARD' }, { type: 'CARD' }]],
    ['subscription', { id: 'sub-1' }],
    ['delayed_capture_settings', { delay: 'P3D' }],
    ['delayed_cancel_settings', { delay: 'P3D' }],
    ['network_token', 'token'],
    ['payment_token', 'token'],
    ['external_providers_data', { provider: { risk: 1 } }],
    ['fraud_screening', { stand_alone: true }],
    ['currency_conversion', { cardholder_currency: 'EUR' }],
    ['amount.currency_conversion', { cardholder_currency: 'EUR' }],
    ['payment_method.split_payment_methods', [{ type: 'CARD' }]],
    ['payment_method.network_token', { token: '1' }],
    ['payment_method.payment_token', 'token'],
    ['payment_method.external_providers_data', { provider: 5 }],
    ['payment_method.subscription', true],
    [`${CARD}.delayed_capture_settings`, { delay: 'P3D', simplified_mode: true }],
    [`${CARD}.delayed_cancel_settings`, { delay: 'P3D' }],
    [`${CARD}.network_token`, { number: '1' }],
    [`${CARD}.payment_token`, 'token'],
    [`${CARD}.external_providers_data`, ['a']],
    [`${CARD}.fraud_screening`, { stand_alone: true }],
    [`${CARD}.card_data.three_d_secure`, { cryptogram: 'AAAA' }],
    [`${CARD}.installments_plan_id`, 'plan-1'],
    [`${CARD}.installment_amount`, 25.5],
    [`${CARD}.installments_type`, 'ISSUER'],
    [`${CARD}.first_installment_deferral`, 2],
    // In its documented place, `capture: false` requests an authorization. Ignoring it anywhere else would charge the
    // payer.
    ['capture', false],
    ['capture', 'false'],
    ['capture', ''],
    ['payment_method.capture', false],
    ['payment_method.detail.capture', false],
    ['additional_data.order.account_funding', { beneficiary: { first_name: 'Ana' } }],
  ])('the refusal of the unsupported field %s names the field, over every protocol', async (field, value) => {
    // The amount is also invalid, but unsupported fields are reported first.
    const request = withField(withField(cardPayment(), 'amount.value', 0), field, value);
    for (const protocol of PROTOCOLS) {
      const { status, code, reason, fields } = await clients.create(protocol, request, headersOne());
      expect({ protocol, reason, fields }).toEqual({
        protocol,
        reason: 'NOT_SUPPORTED',
        fields: [{ field, code: 'NOT_SUPPORTED', message: 'is not supported' }],
      });
      if (protocol === 'rest') expect(status).toBe(400);
      else expect(code).toBe('InvalidArgument');
    }
  });

  it.each([null, '', false, [], {}, { delay: null, amount: { value: '' } }])(
    'an unsupported field with the value %j counts as absent',
    async (nothing) => {
      const headers = headersOne();
      const { record } = await clients.create('rest', cardPayment(), headers);
      let request = cardPayment();
      for (const field of ['split', 'fraud_screening', `${CARD}.network_token`, 'amount.currency_conversion'])
        request = withField(request, field, nothing);
      for (const protocol of PROTOCOLS) {
        const reply = await clients.create(protocol, request, headers);
        expect({ protocol, reason: reply.reason, record: reply.record }).toEqual({
          protocol,
          reason: undefined,
          record,
        });
      }
    },
  );

  it.each([null, {}, { beneficiary: null }])(
    'an unsupported object with the value %j counts as absent',
    async (nothing) => {
      const headers = headersOne();
      const order = (more: object) =>
        withField(cardPayment(), 'additional_data', { order: { fee_amount: '1.00', ...more } });
      const { record } = await clients.create('rest', order({}), headers);
      for (const protocol of PROTOCOLS) {
        const reply = await clients.create(protocol, order({ account_funding: nothing }), headers);
        expect(reply.record, protocol).toBe(record);
      }
    },
  );

  it('an unsupported field that requests what happens anyway counts as absent', async () => {
    const headers = headersOne();
    const { record } = await clients.create('rest', cardPayment(), headers);
    let request = withField(cardPayment(), `${CARD}.installments_type`, 'MERCHANT');
    request = withField(request, `${CARD}.first_installment_deferral`, 0);
    for (const within of ['capture', 'payment_method.capture', 'payment_method.detail.capture'])
      request = withField(request, within, true);
    for (const protocol of PROTOCOLS) {
      expect((await clients.create(protocol, request, headers)).record, protocol).toBe(record);
    }
  });

  const one = { currency: 'USD', value: 1 };
  it.each([
    ['refund', 'amount.currency_conversion', { amount: { ...one, currency_conversion: { rate: 2 } } }],
    ['refund', 'split_marketplace', { amount: one, split_marketplace: [{ recipient_id: 'a' }] }],
    ['capture', 'split', { split: [{ recipient: 'a' }] }],
    ['capture', 'simplified_mode', { simplified_mode: true }],
    ['cancel', 'amount', { amount: one }],
    [
      'cancel-or-refund',
      'amount.currency_conversion',
      { amount: { ...one, currency_conversion: { rate: 2 } } },
    ],
  ])('an operation that has an unsupported field is refused: %s with %s', async (operation, field, body) => {
    const payment = JSON.parse((await clients.create('rest', cardPayment(), headersOne())).record);
    const of = `${server.url}/v1/payments/${payment.id}`;
    const { id } = payment.transactions;
    const path = operation === 'refund' ? `${of}/refund` : `${of}/transactions/${id}/${operation}`;
    expect(await refused(path, body)).toMatchObject({ code: 'NOT_SUPPORTED', errors: [{ field }] });
  });

  it.each(['refund', 'capture', 'cancel-or-refund'])(
    'an empty string is refused as the amount of a %s',
    async (operation) => {
      const payment = JSON.parse((await clients.create('rest', cardPayment(), headersOne())).record);
      const path = `${server.url}/v1/payments/${payment.id}/transactions/${payment.transactions.id}/${operation}`;
      expect(await refused(path, { amount: '' })).toMatchObject({
        errors: [{ field: 'amount', code: 'INVALID_TYPE' }],
      });
    },
  );

  it.each([
    ['subscription', { id: 'sub-1' }],
    ['installments', { plan_id: 'plan-1' }],
  ])('a new checkout session that has an unsupported field is refused: %s', async (field, value) => {
    const terms = { account_id: ACCOUNT_ONE, merchant_order_id: '1', country: 'US', amount: one };
    expect(await refused(`${server.url}/v1/checkout/sessions`, { ...terms, [field]: value })).toMatchObject({
      code: 'NOT_SUPPORTED',
      errors: [{ field }],
    });
  });

  it('an update of a checkout session with unsupported fields is refused, unless their values are empty', async () => {
    const terms = { account_id: ACCOUNT_ONE, merchant_order_id: '1', country: 'US', amount: one };
    const sessions = `${server.url}/v1/checkout/sessions`;
    const opened = (await (await sent('POST', sessions, terms)).json()) as { checkout_session: string };
    const id = opened.checkout_session;
    const asked = { country: 'CO', split_marketplace: [{ recipient_id: 'a' }], installments: { plan: [3] } };
    expect(await refused(`${sessions}/${id}`, asked, 'PATCH')).toMatchObject({
      code: 'NOT_SUPPORTED',
      errors: [{ field: 'split_marketplace' }, { field: 'installments' }],
    });
    const changed = await sent('PATCH', `${sessions}/${id}`, {
      country: 'MX',
      split: null,
      subscription: {},
    });
    expect(await changed.json()).toMatchObject({ country: 'MX' });
  });

  function sent(method: string, url: string, body: object): Promise<Response> {
    const headers = { 'content-type': 'application/json', ...headersOne() };
    return fetch(url, { method, headers, body: JSON.stringify(body) });
  }

  async function refused(url: string, body: object, method = 'POST'): Promise<unknown> {
    const response = await sent(method, url, body);
    expect(response.status).toBe(400);
    return response.json();
  }
});

describe("a merchant's own data", () => {
  it("a merchant's own data is returned in the record, over every protocol", async () => {
    const metadata = [
      { key: 'order', value: '1001' },
      { key: 'note', value: '' },
    ];
    const taxes = { type: 'VAT', value: 1.9, lines: [{ percentage: 19 }] };
    const seller = { name: 'Shop', reference: { id: 'seller-1' } };
    let request: RequestJson = { ...cardPayment(), metadata, taxes };
    request = withField(request, 'additional_data.seller_details', seller);
    request = withField(request, 'additional_data.order.tip_amount', '1.5');
    for (const protocol of PROTOCOLS) {
      const { record } = await clients.create(protocol, request, headersOne());
      expect({ protocol, ...JSON.parse(record) }).toMatchObject({
        protocol,
        metadata,
        taxes,
        additional_data: { seller_details: seller, order: { tip_amount: 1.5 } },
      });
      expect(record).toContain('"tip_amount":1.50');
    }
  });

  it.each([
    [[{ key: 'k'.repeat(49), value: '' }], 'metadata[0].key', 'TOO_LONG'],
    [[{ key: 'k', value: 'v'.repeat(513) }], 'metadata[0].value', 'TOO_LONG'],
    [[{ value: 'v' }], 'metadata[0].key', 'REQUIRED'],
    [Array.from({ length: 51 }, (_, i) => ({ key: `k${i}`, value: '' })), 'metadata', 'TOO_MANY'],
    [[{ key: 'k', value: 1 }], 'metadata[0].value', 'INVALID_TYPE'],
  ])('invalid metadata is refused with its path: %j', async (metadata, field, code) => {
    const reply = await clients.create('rest', { ...cardPayment(), metadata }, headersOne());
    expect(reply).toMatchObject({ status: 400, reason: 'INVALID_PARAMETERS', fields: [{ field, code }] });
  });
});

describe('options of a card payment', () => {
  it.each([
    ['stored_credentials.reason', 'BECAUSE', 'INVALID_FORMAT'],
    ['stored_credentials.usage', 'ONCE', 'INVALID_FORMAT'],
    ['stored_credentials.network_transaction_id', 'x'.repeat(256), 'TOO_LONG'],
    ['soft_descriptor', 'x'.repeat(256), 'TOO_LONG'],
    ['three_d_secure.electronic_commerce_indicator', '5-qq', 'INVALID_FORMAT'],
    ['three_d_secure.cryptogram', 'x'.repeat(256), 'TOO_LONG'],
    ['verify', 'yes', 'INVALID_TYPE'],
  ])('an invalid %s is refused without repeating its value', async (path, value, code) => {
    const reply = await clients.create(
      'rest',
      withField(cardPayment(), `${CARD}.${path}`, value),
      headersOne(),
    );
    expect(reply).toMatchObject({
      reason: 'INVALID_PARAMETERS',
      fields: [{ field: `${CARD}.${path}`, code }],
    });
    expect(reply.raw).not.toContain(value);
  });

  it('a request for 3-D Secure that also has the results of another authentication is refused', async () => {
    const request = withField(cardPayment(), `${CARD}.three_d_secure`, {
      three_d_secure_setup_id: 'setup-1',
      electronic_commerce_indicator: '05',
    });
    expect(await clients.create('rest', request, headersOne())).toMatchObject({
      fields: [{ field: `${CARD}.three_d_secure.three_d_secure_setup_id`, code: 'NOT_ALLOWED' }],
    });
  });

  it.each([
    ['installments_plan_id', 'plan-1'],
    ['installment_amount', 25.5],
    ['installments_type', 'ISSUER'],
    ['first_installment_deferral', 2],
  ])('the option %s, which is unsupported for cards, is also refused for a wallet', async (option, value) => {
    const path = `test/scenarios/01-wallet-redirect-checkout/request.json`;
    const wallet = JSON.parse(readFileSync(join(import.meta.dirname, '../..', path), 'utf8'));
    const field = `payment_method.detail.wallet.${option}`;
    expect(await clients.create('rest', withField(wallet, field, value), headersOne())).toMatchObject({
      reason: 'NOT_SUPPORTED',
      fields: [{ field }],
    });
  });

  it.each(['verify', 'soft_descriptor', 'stored_credentials'])(
    'the card option %s is refused for a wallet',
    async (option) => {
      const values = { verify: true, soft_descriptor: 'SHOP', stored_credentials: { usage: 'USED' } };
      const path = `test/scenarios/01-wallet-redirect-checkout/request.json`;
      const wallet = JSON.parse(readFileSync(join(import.meta.dirname, '../..', path), 'utf8'));
      const amount = option === 'verify' ? 0 : 10;
      const detail = { card: { [option]: values[option as keyof typeof values] } };
      const request = withField(withField(wallet, 'payment_method.detail', detail), 'amount.value', amount);
      expect(await clients.create('rest', request, headersOne())).toMatchObject({
        reason: 'INVALID_PARAMETERS',
        fields: [{ field: CARD, code: 'NOT_ALLOWED' }],
      });
    },
  );
});
