import http from 'node:http';
import Fastify from 'fastify';
import { expect, it } from 'vitest';
import { requireKnownHost } from '#src/server/require-known-host.ts';
import { startTestServer } from '../support/server.ts';

const CONFIG = {
  publicUrl: 'https://sandbox.shop.example',
  sandboxPublicUrl: 'http://payers.shop.example:8080',
};

it.each([
  ...['127.0.0.1:8080', 'localhost', 'localhost.:8080', 'LOCALHOST', 'shop.localhost:8080', '[::1]:8080'],
  ...['192.168.1.5', 'devbox:8080', 'sandbox.shop.example', 'payers.shop.example:8080'],
])('the sandbox serves the host %s', async (host) => {
  expect(await statusOf(host)).toBe(200);
});

it.each([
  'attacker.example',
  'attacker.example:8080',
  '127.0.0.1.attacker.example',
  'localhost.attacker.example.',
])('the sandbox refuses the host %s, which a web page may have pointed at it', async (host) => {
  expect(await statusOf(host)).toBe(400);
});

async function statusOf(host: string): Promise<number> {
  const app = Fastify();
  app.setErrorHandler((_error, _request, reply) => reply.code(400).send());
  requireKnownHost(app, CONFIG);
  app.get('/', async () => 'ok');
  return (await app.inject({ url: '/', headers: { host } })).statusCode;
}

it('a page of another domain cannot use the sandbox’s keys', async () => {
  const server = await startTestServer();
  const asked = (path: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const headers = {
        host: 'attacker.example',
        'public-api-key': 'pk_sandbox_one',
        'private-secret-key': 'sk_sandbox_one',
      };
      http
        .get(server.url + path, { headers }, (response) => resolve(response.resume().statusCode))
        .on('error', reject);
    });
  for (const path of ['/v1/payments', '/', '/dashboard', '/docs']) {
    expect([path, await asked(path)]).toEqual([path, 400]);
  }
  await server.close();
});
