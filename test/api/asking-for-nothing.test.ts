import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Call, ONE, restCalls } from '../customers/calls.ts';
import { TERMS } from '../customers/checkout.ts';
import { onService, server } from '../support/on-service.ts';
import { cardPayment, withField } from '../support/payment-requests.ts';

onService();
let call: Call;
beforeAll(() => {
  call = restCalls(server.url);
});

const keyed = () => ({ ...ONE, 'x-idempotency-key': randomUUID() });
const pay = (field: string, value: unknown) =>
  call('POST', '/v1/payments', withField(cardPayment(), field, value), keyed());
const open = (alternative: unknown) =>
  call('POST', '/v1/checkout/sessions', { ...TERMS, alternative_amount: alternative });

describe('an unsupported field that asks for nothing', () => {
  it.each([
    ['{}'],
    ['{"currency": "", "value": 0}'],
    ['{"currency": "USD", "value": null}'],
    ['{"currency": "USD", "value": 0}'],
    ['{"currency": "USD", "value": "0.00"}'],
    ['0'],
  ])('a session with the alternative_amount %s is opened', async (value) => {
    expect((await open(JSON.parse(value))).status).toBe(201);
  });

  it.each([['{"currency": "USD", "value": 1}'], ['{"value": "0.01"}'], ['"USD"']])(
    'a session with the alternative_amount %s is refused',
    async (value) => {
      const refused = await open(JSON.parse(value));
      expect([refused.json.code, refused.json.errors[0].field]).toEqual([
        'NOT_SUPPORTED',
        'alternative_amount',
      ]);
    },
  );

  it('a card is enrolled and a payment made if verify asks for nothing, and refused if it asks for something', async () => {
    const customer = (await call('POST', '/v1/customers', { merchant_customer_id: randomUUID() })).json.id;
    const card = { number: '4012888888881881', expiration_month: 11, expiration_year: 31 };
    const enroll = (verify: unknown) =>
      call('POST', `/v1/customers/${customer}/payment-methods`, { country: 'US', card_data: card, verify });
    for (const nothing of [{}, { vault_on_success: false }, { vault_on_success: false, currency: 'USD' }]) {
      expect((await enroll(nothing)).status).toBe(201);
      expect((await pay('payment_method.detail.card.verify', nothing)).status).toBe(201);
    }
    expect((await enroll({ vault_on_success: true })).json.errors[0].field).toBe('verify');
    const refused = await pay('payment_method.detail.card.verify', { vault_on_success: true });
    expect(refused.json.errors[0]).toMatchObject({ field: 'payment_method.detail.card.verify' });
    expect((await pay('payment_method.detail.card.capture', {})).status).toBe(400);
  });

  it('a cancel with any amount is refused, even with zero, because it releases everything', async () => {
    const held = await pay('payment_method.detail.card.capture', false);
    for (const amount of [{ currency: 'USD', value: 0 }, {}]) {
      const refused = await call('POST', `/v1/payments/${held.json.id}/cancel`, { amount }, keyed());
      expect([refused.status, refused.json.errors[0].field]).toEqual([400, 'amount']);
    }
  });
});

it('a call for a customer session says that it is not offered, and what to call instead', async () => {
  for (const path of ['/v1/customers/sessions', '/v1/customers/sessions/1/payment-methods']) {
    const refused = await call('POST', path, { account_id: 'x' });
    expect([refused.status, refused.json.code]).toEqual([400, 'NOT_SUPPORTED']);
    expect(refused.json.detail).toContain('POST /v1/customers/{customer_id}/payment-methods');
  }
});

it('a card number of two digits is refused without accusing fields that contain these digits', async () => {
  const refused = await pay('payment_method.detail.card.card_data.number', '11');
  expect(refused.json.errors.map(({ field }: { field: string }) => field)).toEqual([
    'payment_method.detail.card.card_data.number',
  ]);
});
