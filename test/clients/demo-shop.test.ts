import Fastify from 'fastify';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDemoShop } from '#examples/demo-shop/demo-shop.ts';

/** A stand-in for the service: it opens sessions, and returns the payment that a test sets. */
const service = Fastify();
let opened: { merchant_order_id: string; amount: { currency: string; value: number } };
let payment: object;
service.get('/v1/customers', async () => ({ id: 'customer' }));
service.post('/v1/checkout/sessions', async (request) => {
  opened = request.body as typeof opened;
  return { checkout_session: 'session' };
});
service.get('/v1/payments/:id', async () => payment);

let shop: ReturnType<typeof createDemoShop>;
beforeAll(async () => {
  const url = await service.listen({ port: 0, host: '127.0.0.1' });
  shop = createDemoShop({ service: url, accountId: 'a', publicKey: 'p', secretKey: 's' });
});
afterAll(() => service.close());

it('the demo shop counts an order as paid only if amount and currency are those of the order', async () => {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  await shop.inject({ method: 'POST', url: '/buy', headers, payload: 'coffee=1&country=US' });
  const { merchant_order_id, amount } = opened;
  const paid = { id: 'payment', status: 'SUCCEEDED', sub_status: 'APPROVED', merchant_order_id, amount };
  for (const [change, title] of [
    [{}, 'Thank you for your order'],
    [{ amount: { ...amount, value: 0.01 } }, 'Your order is not paid'],
    [{ amount: { ...amount, currency: 'COP' } }, 'Your order is not paid'],
    [{ merchant_order_id: 'another' }, 'Your order is not paid'],
    [{ status: 'PENDING' }, 'Your order is not paid'],
  ] as const) {
    payment = { ...paid, ...change };
    const { body } = await shop.inject({ url: '/done?payment_id=payment' });
    expect(body).toContain(`<h1>${title}</h1>`);
  }
});
