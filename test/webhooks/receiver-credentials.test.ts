import { createHmac, randomUUID } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { onService, server, tables } from '../support/on-service.ts';
import { cardPayment, headersOne, walletPayment } from '../support/payment-requests.ts';
import { type Received, type Receiver, startReceiver } from './receiver.ts';

const CREDENTIALS = {
  api_key: 'key of the shop',
  secret: 'secret-of-the-shop',
  hmac_key: 'hmac-of-the-shop',
};
const HEADERS = ['x-api-key', 'x-secret', 'x-hmac-signature'];

let shop: Receiver;

onService();
beforeAll(async () => {
  shop = await startReceiver();
});
afterAll(() => shop?.close());
beforeEach(async () => {
  for (const table of ['webhook', 'event', 'delivery']) await tables.query(`TRUNCATE ${table}`);
});

async function call(method: string, path: string, json?: object, headers: object = headersOne()) {
  const response = await fetch(server.url + path, {
    method,
    headers: { ...headers, ...(json && { 'content-type': 'application/json' }) },
    ...(json && { body: JSON.stringify(json) }),
  });
  const text = await response.text();
  return { status: response.status, text, json: text === '' ? undefined : JSON.parse(text) };
}

const create = (more: object = {}) =>
  call('POST', '/v1/webhooks', { url: shop.url, events: ['payment.purchase'], ...more });

/** Makes a payment. @returns its event. */
async function paid(key: string = randomUUID()): Promise<Received> {
  const before = shop.received.length;
  const made = await call('POST', '/v1/payments', cardPayment(), headersOne(key));
  expect(made.status).toBe(201);
  return (await shop.has(before + 1)).at(-1) as Received;
}

const sentHeaders = ({ headers }: Received) => HEADERS.filter((name) => headers[name] !== undefined);

it('a webhook without credentials sends only the signature', async () => {
  const { json } = await create();
  expect(json.credential_headers).toEqual([]);
  expect(sentHeaders(await paid())).toEqual([]);
});

it('a webhook sends its credentials and the HMAC of the raw body in addition to the signature', async () => {
  const { json } = await create({ credentials: CREDENTIALS });
  expect(json.credential_headers).toEqual(HEADERS);
  const { headers, text } = await paid();
  expect(headers).toMatchObject({
    'x-api-key': CREDENTIALS.api_key,
    'x-secret': CREDENTIALS.secret,
    'x-hmac-signature': createHmac('sha256', CREDENTIALS.hmac_key).update(text).digest('base64'),
  });
  new Webhook(json.secret).verify(text, headers);
});

it('a webhook sends only the credentials that are set', async () => {
  const { json } = await create({ credentials: { hmac_key: 'one', api_key: '' } });
  expect(json.credential_headers).toEqual(['x-hmac-signature']);
  expect(sentHeaders(await paid())).toEqual(['x-hmac-signature']);
});

it('an update replaces the credentials, removes them if empty, and otherwise keeps them', async () => {
  const { id } = (await create({ credentials: CREDENTIALS })).json;
  const change = (json: object) => call('PATCH', `/v1/webhooks/${id.toUpperCase()}`, json);
  await change({ description: 'Shop', credentials: null });
  expect(sentHeaders(await paid())).toEqual(HEADERS);
  expect((await change({ credentials: { secret: 'other' } })).json.credential_headers).toEqual(['x-secret']);
  const changed = await paid();
  expect([sentHeaders(changed), changed.headers['x-secret']]).toEqual([['x-secret'], 'other']);
  expect((await change({ credentials: {} })).json.credential_headers).toEqual([]);
  expect(sentHeaders(await paid())).toEqual([]);
});

it('credentials are not in responses, stored rows or the log', async () => {
  const made = await create({ credentials: CREDENTIALS });
  await paid();
  const { id } = made.json;
  const shown = [made, await call('GET', `/v1/webhooks/${id}`), await call('GET', '/v1/webhooks')];
  expect(shown[1]?.json.credential_headers).toEqual(HEADERS);
  const rows = await tables.query(
    'SELECT w::text FROM webhook w UNION ALL SELECT c::text FROM replayed_call c',
  );
  const everywhere = JSON.stringify([shown.map(({ text }) => text), rows, server.logLines]);
  for (const secret of Object.values(CREDENTIALS)) expect(everywhere).not.toContain(secret);
});

it.each([
  ['api_key', 'a\nb'],
  ['api_key', 'ключ'],
  ['secret', ' quux'],
  ['hmac_key', 'a\u0000'],
  ['secret', 'a'.repeat(256)],
])(
  'the refusal of a credential that a header cannot contain names the credential: %s %j',
  async (name, value) => {
    const { status, json } = await create({ credentials: { [name]: value } });
    expect([status, json.code, json.errors[0].field]).toEqual([
      400,
      'INVALID_PARAMETERS',
      `credentials.${name}`,
    ]);
    expect(JSON.stringify(json)).not.toContain(value);
  },
);

it('the payment in an event has the order id and the idempotency key of the call that made it', async () => {
  await create({ events: ['payment.purchase'] });
  const { payment } = (await paid('order-7-try-1')).json.data;
  expect(payment).toMatchObject({ order_id: payment.merchant_order_id, idempotency_key: 'order-7-try-1' });
  const before = shop.received.length;
  const key = `page-${randomUUID()}`;
  const byPage = { 'public-api-key': 'pk_sandbox_one', 'x-idempotency-key': key };
  expect((await call('POST', '/v1/payments', walletPayment(), byPage)).status).toBe(201);
  const [event] = (await shop.has(before + 1)).slice(before);
  expect(event?.json.data.payment.idempotency_key).toBe(key);
});
