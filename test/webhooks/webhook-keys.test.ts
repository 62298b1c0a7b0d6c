import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { onService, server, tables } from '../support/on-service.ts';
import { readContract } from '../support/openapi-contract.ts';
import { headersOne } from '../support/payment-requests.ts';
import { type Receiver, startReceiver } from './receiver.ts';

let shop: Receiver;

onService();
beforeAll(async () => {
  shop = await startReceiver();
});
afterAll(() => shop?.close());
beforeEach(async () => {
  // Emptied separately, because the worker's statements lock these tables in another order.
  for (const table of ['webhook', 'event', 'delivery', 'replayed_call'])
    await tables.query(`TRUNCATE ${table}`);
});

async function post(path: string, body: object | undefined, key: string | undefined) {
  const { 'x-idempotency-key': _, ...keys } = headersOne();
  const response = await fetch(`${server.url}/v1/webhooks${path}`, {
    method: 'POST',
    headers: {
      ...keys,
      ...(key !== undefined && { 'x-idempotency-key': key }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const replayed = response.headers.get('idempotent-replayed') === 'true';
  return { status: response.status, text, json: JSON.parse(text), replayed };
}
const create = (key?: string, body: object = {}) =>
  post('', { url: shop.url, events: ['payment.purchase'], ...body }, key);
const count = async (table: string) =>
  (await tables.query(`SELECT count(*)::integer AS n FROM ${table}`))[0]?.n;

it('a call repeated with the same key creates no other webhook and gets the same response and secret', async () => {
  const first = await create('hook-1');
  const again = await create('hook-1');
  expect([first.status, again.status]).toEqual([201, 201]);
  expect([first.replayed, again.replayed]).toEqual([false, true]);
  expect(again.text).toBe(first.text);
  expect(first.json.secret).toMatch(/^whsec_/);
  expect(await count('webhook')).toBe(1);
});

it('the stored response to the creation of a webhook does not contain its secret in plain text', async () => {
  const { json } = await create('hook-1');
  const rows = await tables.query("SELECT encode(response, 'escape') AS response FROM replayed_call");
  expect(rows).toHaveLength(1);
  expect(String(rows[0]?.response)).not.toContain(json.secret.slice(6, 30));
});

it('concurrent calls with the same key create one webhook', async () => {
  const all = await Promise.all(Array.from({ length: 10 }, () => create('hook-1')));
  expect(new Set(all.map(({ text }) => text)).size).toBe(1);
  expect(await count('webhook')).toBe(1);
});

it('a reused key and a malformed key are refused, and every call without a key creates a webhook', async () => {
  await create('hook-1');
  const other = await create('hook-1', { description: 'another' });
  expect([other.status, other.json.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
  const malformed = await create('é'.repeat(3));
  expect([malformed.status, malformed.json.code]).toEqual([400, 'IDEMPOTENCY_KEY_MISSING']);
  await create();
  await create();
  expect(await count('webhook')).toBe(3);
});

it('a refused request does not use up its key', async () => {
  const refused = await create('hook-1', { url: 'no address' });
  expect(refused.status).toBe(400);
  expect((await create('hook-1')).status).toBe(201);
});

it('a repeated rotation with the same key returns the same secret', async () => {
  const { json: made } = await create();
  const [first, again] = [
    await post(`/${made.id}/secret`, undefined, 'rotate-1'),
    await post(`/${made.id}/secret`, undefined, 'rotate-1'),
  ];
  expect(first.json.secret).not.toBe(made.secret);
  expect(again.text).toBe(first.text);
  expect(again.replayed).toBe(true);
  const other = await post(`/${made.id}/secret`, undefined, randomUUID());
  expect(other.json.secret).not.toBe(first.json.secret);
});

it('a test event and a redelivery are sent once per key, and the same key may be used for both', async () => {
  const { json: made } = await create();
  const [first, again] = [
    await post(`/${made.id}/test`, undefined, 'key'),
    await post(`/${made.id}/test`, undefined, 'key'),
  ];
  expect(again.text).toBe(first.text);
  expect(await count('delivery')).toBe(1);
  await expect.poll(() => shop.received.length).toBe(1);

  const path = `/deliveries/${first.json.id}/redeliver`;
  const [redelivered, repeated] = [await post(path, undefined, 'key'), await post(path, undefined, 'key')];
  expect([redelivered.status, repeated.replayed]).toEqual([200, true]);
  expect(repeated.text).toBe(redelivered.text);
  await expect.poll(() => shop.received.length).toBe(2);

  const since = { since: '2020-01-01T00:00:00Z' };
  const failed = await post(`/${made.id}/redeliver`, since, 'key');
  await tables.query("UPDATE delivery SET status = 'FAILED', due_at = NULL");
  const failedAgain = await post(`/${made.id}/redeliver`, since, 'key');
  expect([failed.json.redelivered, failedAgain.json.redelivered]).toEqual([0, 0]);
});

it.each([
  '/v1/webhooks',
  '/v1/webhooks/{id}/secret',
  '/v1/webhooks/{id}/test',
  '/v1/webhooks/deliveries/{id}/redeliver',
  '/v1/webhooks/{webhook_id}/redeliver',
])('the OpenAPI document has the idempotency key of POST %s', (path) => {
  const { json } = readContract().find('POST', path);
  expect(json.parameters).toContainEqual({ $ref: '#/components/parameters/OptionalIdempotencyKey' });
  expect(json.responses).toHaveProperty('422');
});
