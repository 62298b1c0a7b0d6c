import { randomBytes } from 'node:crypto';
import http2 from 'node:http2';
import https from 'node:https';
import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { expect, it } from 'vitest';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { PaymentService } from '#gen/payments/v1/payment_service_pb.js';
import { createTestDatabase } from './support/database.ts';
import { tls } from './support/listening-app.ts';
import { onService, server } from './support/on-service.ts';
import { cardPayment, headersOne, walletPayment } from './support/payment-requests.ts';
import { loadScenarios, requestMessage } from './support/scenario.ts';
import { endAfterEach, startService } from './support/service-process.ts';

onService({ config: { tls } });
endAfterEach();

it('a payment is accepted over HTTP/1.1 with TLS', async () => {
  const { status, version, body } = await post(cardPayment());
  expect([status, version, JSON.parse(body).status]).toEqual([201, '1.1', 'SUCCEEDED']);
});

it('a payment is accepted over HTTP/2 negotiated by ALPN', async () => {
  const session = http2.connect(server.url, { ca: tls.cert });
  const stream = session.request({
    ':method': 'POST',
    ':path': '/v1/payments',
    'content-type': 'application/json',
    ...headersOne(),
  });
  stream.end(JSON.stringify(cardPayment()));
  const payment = JSON.parse((await stream.toArray()).join(''));
  expect([session.alpnProtocol, payment.status]).toEqual(['h2', 'SUCCEEDED']);
  session.close();
});

it('a payment is accepted over gRPC with TLS', async () => {
  const transport = createGrpcTransport({ baseUrl: server.url, nodeOptions: { ca: tls.cert } });
  const [scenario] = loadScenarios().filter(({ name }) => name.startsWith('05-'));
  if (!scenario) throw new Error('there is no scenario 05');
  const client = createClient(PaymentService, transport);
  const payment = await client.createPayment(requestMessage(scenario), { headers: headersOne() });
  expect(payment.status).toBe(Payment_Status.SUCCEEDED);
});

it('the payer is redirected to the sandbox at the public HTTPS URL', async () => {
  const { body } = await post(walletPayment());
  const { redirect_url } = JSON.parse(body).payment_method.payment_method_detail.wallet;
  expect(redirect_url.startsWith(`${server.url}/sandbox/checkout/`)).toBe(true);
  expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  const page = await get(redirect_url);
  expect([page.status, page.type]).toEqual([200, expect.stringMatching(/^text\/html/)]);
});

it('a client without TLS and a client that does not trust the certificate get no response', async () => {
  await expect(fetch(server.url.replace('https:', 'http:'))).rejects.toThrow();
  await expect(fetch(server.url)).rejects.toMatchObject({ cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } });
});

it('the service uses the certificate and key from the files in its environment', async () => {
  const database = await createTestDatabase({ empty: true });
  const key = () => randomBytes(32).toString('base64');
  const service = await startService({
    DATABASE_URL: database.url,
    ALLOW_UNSAFE_DATABASE: 'on',
    VAULT_KEYS: `one:${key()}`,
    HASH_KEY: key(),
    TLS_CERT_FILE: join(import.meta.dirname, 'support/tls/cert.pem'),
    TLS_KEY_FILE: join(import.meta.dirname, 'support/tls/key.pem'),
  });
  expect(service.url).toMatch(/^https:/);
  expect((await get(`${service.url}/readyz`)).status).toBe(200);
  service.child.kill('SIGTERM');
  expect((await service.ended).code).toBe(0);
  await database.drop();
});

type Answer = { status: number | undefined; version: string; type: string | undefined; body: string };

const get = (url: string) => send(url, { method: 'GET' });

function post(request: object): Promise<Answer> {
  const headers = { 'content-type': 'application/json', ...headersOne() };
  return send(`${server.url}/v1/payments`, { method: 'POST', headers }, JSON.stringify(request));
}

function send(url: string, options: https.RequestOptions, body = ''): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = https.request(url, { ca: tls.cert, agent: false, ...options }, async (response) => {
      const { statusCode: status, httpVersion: version, headers } = response;
      resolve({ status, version, type: headers['content-type'], body: (await response.toArray()).join('') });
    });
    request.once('error', reject).end(body);
  });
}
