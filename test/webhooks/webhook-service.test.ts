import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { WebhookService } from '#gen/payments/v1/webhook_service_pb.js';
import { onService, server, tables } from '../support/on-service.ts';
import { startTestServer } from '../support/server.ts';
import { type Receiver, startReceiver, status, verify } from './receiver.ts';

const ONE = { 'public-api-key': 'pk_sandbox_one', 'private-secret-key': 'sk_sandbox_one' };
const TWO = { 'public-api-key': 'pk_sandbox_two', 'private-secret-key': 'sk_sandbox_two' };
const UNKNOWN = '00000000-0000-4000-8000-000000000000';

let shop: Receiver;

onService();
afterAll(() => shop?.close());
beforeEach(async () => {
  await shop?.close();
  shop = await startReceiver();
  // Emptied separately, because the worker's statements lock these tables in another order.
  for (const table of ['webhook', 'event', 'delivery']) await tables.query(`TRUNCATE ${table}`);
});

async function call(method: string, path: string, body?: object, headers: Record<string, string> = ONE) {
  const response = await fetch(server.url + path, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    json: text === '' ? undefined : JSON.parse(text),
  };
}
const create = (body: object = {}, headers = ONE) =>
  call('POST', '/v1/webhooks', { url: shop.url, events: ['payment.purchase'], ...body }, headers);
const pay = (key: string, number = '4111111111111111') =>
  call(
    'POST',
    '/v1/payments',
    {
      account_id: '11111111-1111-4111-8111-111111111111',
      merchant_order_id: key,
      country: 'US',
      amount: { currency: 'USD', value: 5 },
      payment_method: {
        type: 'CARD',
        detail: { card: { card_data: { number, expiration_month: 12, expiration_year: 30 } } },
      },
    },
    { ...ONE, 'x-idempotency-key': key },
  );

describe('webhooks over REST', () => {
  it('the secret of a new webhook is returned once, and its events contain the payment as REST returns it', async () => {
    const made = await create({ description: 'shop' });
    expect(made.status).toBe(201);
    expect(made.headers.get('location')).toBe(`/v1/webhooks/${made.json.id}`);
    expect(made.json).toMatchObject({
      url: shop.url,
      description: 'shop',
      active: true,
      failing_since: null,
    });
    const { secret } = made.json;
    const got = await call('GET', `/v1/webhooks/${made.json.id}`);
    expect(got.json).toEqual({ ...made.json, secret: '' });
    expect((await call('GET', '/v1/webhooks')).json).toEqual({ webhooks: [got.json] });
    const payment = await pay('told-1');
    const [message] = await shop.has(1);
    if (!message) throw new Error('nothing was received');
    verify(secret, message);
    expect(message.json).toMatchObject({
      type_event: 'payment.purchase',
      sequence: 1,
      data: { payment: payment.json },
    });
    expect(JSON.stringify(server.logLines)).not.toContain(secret.slice(6));
  });

  it('a later outcome is sent as another event with the next sequence number', async () => {
    await create();
    const payment = await pay('told-later', '4000000000002008');
    expect(payment.json.status).toBe('PENDING');
    const messages = await shop.has(2);
    expect(messages.map(({ json }) => [json.sequence, json.data.payment.status])).toEqual([
      [1, 'PENDING'],
      [2, 'SUCCEEDED'],
    ]);
    const [row] = await tables.query('SELECT event_sequence FROM payment WHERE id = $1', [payment.json.id]);
    expect(row).toEqual({ event_sequence: 2 });
  });

  it('a payment repeated with the same key writes no other event', async () => {
    await create();
    await pay('told-once');
    await pay('told-once');
    await shop.has(1);
    expect(await tables.query('SELECT count(*)::int AS n FROM event')).toEqual([{ n: 1 }]);
  });

  it('an update changes only the fields that it contains', async () => {
    const { json } = await create({ description: 'before' });
    const path = `/v1/webhooks/${json.id}`;
    const changed = await call('PATCH', path, {
      events: ['payment.refund', 'payment.refund'],
      active: false,
    });
    expect(changed.json).toMatchObject({
      description: 'before',
      events: ['payment.refund'],
      active: false,
      secret: '',
    });
    expect((await call('POST', `${path}/test`)).json.code).toBe('WEBHOOK_OFF');
    const on = await call('PATCH', path, { active: true, description: '' });
    expect(on.json).toMatchObject({ active: true, description: '', url: shop.url });
    expect((await call('DELETE', path)).status).toBe(204);
    expect((await call('DELETE', path)).status).toBe(404);
  });

  it('a rotation returns the new secret and how long the previous one remains valid', async () => {
    const { json } = await create();
    const rotated = await call('POST', `/v1/webhooks/${json.id}/secret`);
    expect(rotated.json.secret).toMatch(/^whsec_/);
    expect(rotated.json.secret).not.toBe(json.secret);
    const hours = (Date.parse(rotated.json.previous_secret_until) - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(23.9);
  });

  it('a test event is sent, deliveries are listed in pages, and each can be redelivered by either path', async () => {
    const { json } = await create();
    const path = `/v1/webhooks/${json.id}`;
    const headers = { ...ONE, 'content-type': 'application/json' };
    for (let i = 0; i < 3; i++)
      expect((await call('POST', `${path}/test`, undefined, headers)).status).toBe(200);
    const [message] = await shop.has(3);
    expect(message?.json).toMatchObject({ type: 'webhook', type_event: 'webhook.test', data: {} });
    const first = await call('GET', `${path}/deliveries?page_size=2`);
    expect(first.json.deliveries).toHaveLength(2);
    const rest = await call('GET', `${path}/deliveries?page_size=2&page_token=${first.json.next_page_token}`);
    expect(rest.json).toMatchObject({ deliveries: [{ webhook_id: json.id }], next_page_token: '' });
    const { id } = rest.json.deliveries[0];
    await vi.waitFor(async () =>
      expect((await tables.query("SELECT id FROM delivery WHERE status = 'DELIVERED'")).length).toBe(3),
    );
    expect((await call('POST', `/v1/webhooks/deliveries/${id}/redeliver`)).json).toMatchObject({
      id,
      status: 'PENDING',
    });
    expect((await call('POST', `${path}/deliveries/${id}/redeliver`)).status).toBe(200);
    expect((await call('POST', `/v1/webhooks/${UNKNOWN}/deliveries/${id}/redeliver`)).status).toBe(404);
    await shop.has(4);
  });

  it('webhooks and deliveries of other accounts are not found', async () => {
    const { json } = await create();
    const { json: sent } = await call('POST', `/v1/webhooks/${json.id}/test`);
    const calls: [string, string, object?][] = [
      ['GET', `/v1/webhooks/${json.id}`],
      ['PATCH', `/v1/webhooks/${json.id}`, { active: false }],
      ['DELETE', `/v1/webhooks/${json.id}`],
      ['POST', `/v1/webhooks/${json.id}/secret`],
      ['POST', `/v1/webhooks/${json.id}/test`],
      ['GET', `/v1/webhooks/${json.id}/deliveries`],
      ['POST', `/v1/webhooks/${json.id}/redeliver`, { since: '2026-01-01T00:00:00Z' }],
      ['GET', '/v1/webhooks/no-uuid'],
    ];
    for (const [method, path, body] of calls) {
      expect((await call(method, path, body, TWO)).json).toMatchObject({
        status: 404,
        code: 'WEBHOOK_NOT_FOUND',
      });
    }
    const redeliver = `/v1/webhooks/deliveries/${sent.id}/redeliver`;
    expect((await call('POST', redeliver, undefined, TWO)).json.code).toBe('DELIVERY_NOT_FOUND');
    expect((await call('GET', '/v1/webhooks', undefined, TWO)).json).toEqual({ webhooks: [] });
  });

  it.each([
    [{ url: 'ftp://shop.example/' }, 'url'],
    [{ url: 'nonsense' }, 'url'],
    [{ url: 'https://me:secret@shop.example/' }, 'url'],
    [{ url: `https://shop.example/${'x'.repeat(2048)}` }, 'url'],
    [{ url: undefined }, 'url'],
    [{ url: 'https://shop.example/a\0b' }, 'url'],
    [{ events: [] }, 'events'],
    [{ events: ['payment.purchase', 'payment.unknown'] }, 'events[1]'],
    [{ description: 'x'.repeat(256) }, 'description'],
    [{ description: 'a\0b' }, 'description'],
  ])('the webhook %j is refused, and the error names the bad field', async (body, field) => {
    const { status: code, json } = await create(body);
    expect([code, json.code]).toEqual([400, 'INVALID_PARAMETERS']);
    expect(json.errors.map((error: { field: string }) => error.field)).toContain(field);
    expect(JSON.stringify(json)).not.toMatch(/secret@|\^/);
  });

  it('calls without the secret key, a seventeenth webhook and invalid pages are refused', async () => {
    const publicOnly = { 'public-api-key': 'pk_sandbox_one' };
    expect((await call('GET', '/v1/webhooks', undefined, publicOnly)).status).toBe(401);
    const made = await Promise.all(Array.from({ length: 18 }, () => create()));
    expect(made.filter(({ status: code }) => code === 201)).toHaveLength(16);
    expect(made.find(({ status: code }) => code !== 201)?.json).toMatchObject({
      code: 'WEBHOOK_LIMIT_REACHED',
    });
    const path = `/v1/webhooks/${made.find(({ status: code }) => code === 201)?.json.id}/deliveries`;
    for (const query of ['page_size=101', 'page_size=-1', 'page_token=nonsense']) {
      expect((await call('GET', `${path}?${query}`)).status).toBe(400);
    }
  });
});

it('webhooks over gRPC have the same behavior and errors as over REST', async () => {
  const sessionManager = new Http2SessionManager(server.url);
  const client = createClient(WebhookService, createGrpcTransport({ baseUrl: server.url, sessionManager }));
  const headers = ONE;
  shop.answer(status(410));
  const made = await client.createWebhook({ url: shop.url, events: ['payment.purchase'] }, { headers });
  expect(made.secret).toMatch(/^whsec_/);
  await client.testWebhook({ id: made.id }, { headers });
  await vi.waitFor(async () => {
    const { active, disabledReason } = await client.getWebhook({ id: made.id }, { headers });
    expect([active, disabledReason]).toEqual([false, 'GONE']);
  });
  const since = timestampFromDate(new Date(Date.now() - 60_000));
  await expect(client.redeliverFailed({ webhookId: made.id, since }, { headers })).rejects.toThrow(
    /webhook is off/,
  );
  await client.updateWebhook({ id: made.id, active: true }, { headers });
  shop.answer(status(200));
  expect((await client.redeliverFailed({ webhookId: made.id, since }, { headers })).redelivered).toBe(1);
  await shop.has(2);
  await client.deleteWebhook({ id: made.id }, { headers });
  await expect(client.getWebhook({ id: made.id }, { headers })).rejects.toThrow(/not_found/);
  sessionManager.abort();
});

it('webhooks require https and public addresses unless private ones are allowed', async () => {
  const strict = await startTestServer({ config: { webhooksAllowPrivate: false } });
  try {
    const make = async (url: string) => {
      const response = await fetch(`${strict.url}/v1/webhooks`, {
        method: 'POST',
        headers: { ...ONE, 'content-type': 'application/json' },
        body: JSON.stringify({ url, events: ['payment.purchase'] }),
      });
      return response.status;
    };
    for (const url of [
      'http://shop.example/',
      'https://127.0.0.1/',
      'https://[::1]/',
      'https://2130706433/',
    ]) {
      expect(await make(url)).toBe(400);
    }
    expect(await make('https://shop.example/hook?a=1')).toBe(201);
  } finally {
    await strict.close();
  }
});
