import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { type Call, ONE, restCalls } from '../customers/calls.ts';
import { TERMS } from '../customers/checkout.ts';
import { onService, server } from '../support/on-service.ts';
import { cardPayment } from '../support/payment-requests.ts';

onService();

let call: Call;
beforeAll(() => {
  call = restCalls(server.url);
});
const keyed = () => ({ ...ONE, 'x-idempotency-key': randomUUID() });

it.each([
  ['a line break', 'order\n1'],
  ['a delete character', 'order\x7f1'],
  ['a zero-width space', 'order\u200b1'],
  ['a byte order mark', '\ufefforder1'],
  ['a soft hyphen', 'order\u00ad1'],
  ['a right-to-left override', 'order\u202e1'],
  ['an isolate', 'order\u20661\u2069'],
  ['a line separator', 'order\u20281'],
])(
  'an order id or reference with %s is refused wherever it can be sent, and the error names the field',
  async (_what, text) => {
    const paid = await call('POST', '/v1/payments', cardPayment(), keyed());
    const refund = `/v1/payments/${paid.json.id}/refund`;
    const session = (await call('POST', '/v1/checkout/sessions', TERMS)).json.checkout_session;
    for (const [method, path, field, body] of [
      ['POST', '/v1/payments', 'merchant_order_id', cardPayment()],
      ['POST', '/v1/payments', 'merchant_reference', cardPayment()],
      ['POST', refund, 'merchant_reference', {}],
      ['POST', '/v1/checkout/sessions', 'merchant_order_id', TERMS],
      ['PATCH', `/v1/checkout/sessions/${session}`, 'merchant_order_id', {}],
      ['POST', '/v1/customers', 'merchant_customer_id', {}],
    ] as const) {
      const { status, json, text: told } = await call(method, path, { ...body, [field]: text }, keyed());
      expect([path, status, json.errors]).toEqual([
        ...[path, 400],
        [
          {
            field,
            code: 'INVALID_FORMAT',
            message: 'must not contain control, direction or zero-width characters',
          },
        ],
      ]);
      expect(told).not.toContain(text);
    }
  },
);

it('order ids in any script are accepted', async () => {
  for (const merchant_order_id of ['Bestellung Ä 7/1', '注文１', 'طلب ١', 'הזמנה 1', '🎟️ 12']) {
    const made = await call('POST', '/v1/payments', { ...cardPayment(), merchant_order_id }, keyed());
    expect([made.status, made.json.merchant_order_id]).toEqual([201, merchant_order_id]);
  }
});
