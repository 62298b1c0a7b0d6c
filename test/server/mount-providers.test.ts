import { Writable } from 'node:stream';
import Fastify, { type FastifyRequest } from 'fastify';
import { expect, it } from 'vitest';
import { createInFlight } from '#src/server/in-flight.ts';
import { mountProviders, type ProviderRoutes } from '#src/server/mount-providers.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';

const BACK = '/v1/payments/5e550000-0000-4000-8000-000000000001/return';
const BROWSER = 'text/html,application/xhtml+xml,*/*;q=0.8';

function returns(query: () => Promise<never>, { track } = createInFlight()) {
  const logged: string[] = [];
  const stream = new Writable({
    write(line, _encoding, done) {
      logged.push(JSON.parse(String(line)).msg);
      done();
    },
  });
  const app = Fastify({ logger: { level: 'error', stream } });
  const payer = { database: { query }, connections: () => new Map() };
  const share = { clientAddress: ({ ip }: FastifyRequest) => ip, addressSharePercent: 50 };
  mountProviders(app, { payer, track, checkoutPage: true, share } as unknown as ProviderRoutes);
  return { app, logged };
}

it.each([BROWSER, '*/*'])(
  'a payer’s return that fails while the database is unavailable is logged and asks the payer to come back: %s',
  async (accept) => {
    const { app, logged } = returns(() => Promise.reject(new DatabaseUnavailableError(new Error('gone'))));
    const { statusCode, headers } = await app.inject({ url: BACK, headers: { accept } });
    expect([statusCode, headers['retry-after']]).toEqual([503, '1']);
    expect(logged.length).toBe(1);
  },
);

it.each([BACK, '/v1/enrollments/5e550000-0000-4000-8000-000000000001/return'])(
  'a payer’s return counts as in flight until it ends, so the provider connection stays open: %s',
  async (address) => {
    const inFlight = createInFlight();
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()];
    const { app } = returns(() => {
      begun.resolve();
      return ended.promise;
    }, inFlight);
    const answered = app.inject(address);
    await begun.promise;
    let isSettled = false;
    const settled = inFlight.settled().then(() => {
      isSettled = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isSettled).toBe(false);
    ended.reject(new DatabaseUnavailableError(new Error('gone')));
    await settled;
    expect((await answered).statusCode).toBe(503);
  },
);

it('a payer at an overloaded return URL gets a page in their language that asks them to come back', async () => {
  const { app } = returns(() => new Promise(() => {}));
  for (let i = 0; i < 50; i++) app.inject(BACK).catch(() => {});
  const { statusCode, headers, body } = await app.inject({
    url: `${BACK}?lang=es`,
    headers: { accept: BROWSER },
  });
  expect([statusCode, headers['retry-after'], headers['content-language'], headers.vary]).toEqual([
    503,
    '1',
    'es',
    'accept-language',
  ]);
  expect(body).toContain('Si ya pagaste, no pagues de nuevo.');
});

it.each([undefined, '*/*', 'application/json'])(
  'a client that is not a browser gets a failed return as JSON without details: %s',
  async (accept) => {
    const { app } = returns(() => Promise.reject(new Error('a detail')));
    const { statusCode, headers, body } = await app.inject({ url: BACK, headers: accept ? { accept } : {} });
    expect([statusCode, headers['content-type']]).toEqual([500, 'application/problem+json']);
    expect(JSON.parse(body).code).toBe('INTERNAL_ERROR');
    expect(body).not.toContain('a detail');
  },
);
