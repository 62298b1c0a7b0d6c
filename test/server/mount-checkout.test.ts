import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { expect, it } from 'vitest';
import type { PaymentDeps } from '#src/payments/create/create-payment.ts';
import { mountCheckout } from '#src/server/mount-checkout.ts';

const PAGE = '/checkout/5e550000-0000-4000-8000-000000000001?lang=es';

function checkout(query: () => Promise<never>): FastifyInstance {
  const app = Fastify();
  const share = { clientAddress: (request: FastifyRequest) => request.ip, addressSharePercent: 50 };
  mountCheckout(app, { database: { query } } as unknown as PaymentDeps, { ofSandbox: true, share });
  return app;
}

it('a payer at an overloaded checkout gets a page in their language that asks them to come back', async () => {
  const app = checkout(() => new Promise(() => {}));
  for (let i = 0; i < 50; i++) app.inject(PAGE).catch(() => {});
  const { statusCode, headers, body } = await app.inject(PAGE);
  expect([statusCode, headers['retry-after'], headers['content-type']]).toEqual([
    503,
    '1',
    'text/html; charset=utf-8',
  ]);
  expect(body).toContain('<h1 class="title">Inténtalo de nuevo en un momento</h1>');
  // A payer who returns from a provider may have paid.
  expect(body).toContain('Si ya pagaste, no pagues de nuevo.');
});

it('a payer gets an error page that reveals nothing about an internal fault', async () => {
  const { statusCode, headers, body } = await checkout(() => Promise.reject(new Error('a detail'))).inject(
    PAGE,
  );
  expect([statusCode, headers['content-language']]).toEqual([500, 'es']);
  expect(body).toContain('<h1 class="title">Inténtalo de nuevo en un momento</h1>');
  expect(body).not.toContain('a detail');
});
