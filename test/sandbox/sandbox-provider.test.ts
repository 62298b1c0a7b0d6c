import { randomUUID } from 'node:crypto';
import { createConnection } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import {
  API_KEY,
  CARD,
  CHARGE,
  magic,
  type ProviderUnderTest,
  startApp,
  startProvider,
} from './provider-under-test.ts';

let provider: ProviderUnderTest;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.close());

const magicCard = (name: string): typeof CARD => ({ ...CARD, number: magic(name) });

describe('charges', () => {
  it('a charge is stored before its response is sent', async () => {
    const response = await provider.post('/v1/charges', CHARGE, { 'idempotency-key': 'on-disk' });
    expect(response.status).toBe(201);
    const charge = await jsonOf(response);
    expect(charge).toMatchObject({
      object: 'charge',
      id: expect.stringMatching(/^ch_/),
      idempotency_key: 'on-disk',
      status: 'approved',
      response_code: '00',
      authorization_code: expect.stringMatching(/^[A-Z0-9]{6}$/),
      retrieval_reference_number: expect.stringMatching(/^\d{12}$/),
      amount: 5575,
      currency: 'USD',
      captured: true,
    });
    const rows = await provider.query("SELECT * FROM sandbox.ledger WHERE idempotency_key = 'on-disk'");
    expect(rows).toMatchObject([{ id: charge.id, status: 'approved', amount: '5575', currency: 'USD' }]);
  });

  it('a declined charge gets a 402 with the reason, and is not captured', async () => {
    const response = await provider.post('/v1/charges', { ...CHARGE, card: magicCard('INSUFFICIENT_FUNDS') });
    expect(response.status).toBe(402);
    expect(await response.json()).toMatchObject({
      status: 'declined',
      response_code: '51',
      response_message: 'Insufficient funds',
      authorization_code: null,
      captured: false,
    });
  });

  it('the ledger contains no full card number and no security code', async () => {
    const card = { ...CARD, number: '5555555555554444', cvc: '7531' };
    await provider.post('/v1/charges', { ...CHARGE, card }, { 'idempotency-key': 'no-card' });
    const rows = await provider.query("SELECT * FROM sandbox.ledger WHERE idempotency_key = 'no-card'");
    expect(rows).toMatchObject([{ card_iin: '55555555', card_last_four: '4444' }]);
    expect(JSON.stringify(rows)).not.toMatch(/5555555555554444|"7531"/);
  });
});

it('a verification moves no money', async () => {
  const verification = { currency: 'USD', card: CARD };
  const good = await provider.post('/v1/verifications', verification);
  expect(good.status).toBe(201);
  expect(await good.json()).toMatchObject({ object: 'verification', status: 'approved', amount: 0 });
  const card = magicCard('INSUFFICIENT_FUNDS');
  const bad = await provider.post('/v1/verifications', { ...verification, card });
  expect(bad.status).toBe(402);
  expect(await bad.json()).toMatchObject({ status: 'declined', response_code: '51' });
});

describe('idempotency keys', () => {
  it('fifty calls with one idempotency key make one charge, and all get the same bytes', async () => {
    const key = randomUUID();
    const call = () => provider.post('/v1/charges', CHARGE, { 'idempotency-key': key });
    const responses = await Promise.all(Array.from({ length: 50 }, call));
    expect(new Set(await Promise.all(responses.map((response) => response.text()))).size).toBe(1);
    expect(responses.filter((response) => !response.headers.has('idempotent-replayed'))).toHaveLength(1);
    const rows = await provider.query(`SELECT 1 FROM sandbox.ledger WHERE idempotency_key = '${key}'`);
    expect(rows).toHaveLength(1);
  });

  it('a request that reuses an idempotency key after a decline gets the same decline', async () => {
    const key = randomUUID();
    const charge = { ...CHARGE, card: magicCard('DO_NOT_HONOR') };
    const first = await provider.post('/v1/charges', charge, { 'idempotency-key': key });
    const second = await provider.post('/v1/charges', charge, { 'idempotency-key': key });
    expect([first.status, second.status]).toEqual([402, 402]);
    expect(await second.text()).toBe(await first.text());
  });

  it('a request that reuses an idempotency key for another amount or kind gets a 409', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    await provider.post('/v1/charges', CHARGE, headers);
    const other = await provider.post('/v1/charges', { ...CHARGE, amount: 1 }, headers);
    const order = await provider.post('/v1/wallet-orders', { ...CHARGE, wallet: 'WALLET_B' }, headers);
    expect([other.status, order.status]).toEqual([409, 409]);
  });

  it('a charge is found by its idempotency key, even after an error response', async () => {
    const key = randomUUID();
    const charge = { ...CHARGE, card: magicCard('ERROR_AFTER_CHARGE') };
    expect((await provider.post('/v1/charges', charge, { 'idempotency-key': key })).status).toBe(500);
    const found = await provider.get(`/v1/by-idempotency-key/${key}`);
    expect(found.status).toBe(200);
    const answer = await found.text();
    expect(JSON.parse(answer)).toMatchObject({ object: 'charge', status: 'approved', amount: 5575 });
    const repeated = await provider.post('/v1/charges', charge, { 'idempotency-key': key });
    expect([repeated.status, await repeated.text()]).toEqual([201, answer]);
  });

  it('a look-up of an unused idempotency key gets a 404', async () => {
    expect((await provider.get(`/v1/by-idempotency-key/${randomUUID()}`)).status).toBe(404);
  });
});

describe('wallets', () => {
  it('a wallet enrollment is pending', async () => {
    const body = { wallet: 'WALLET_C_ENROLLMENT', amount: 100, currency: 'USD', card_type: 'CREDIT' };
    const response = await provider.post('/v1/wallet-enrollments', body);
    expect(response.status).toBe(201);
    expect(await response.json()).toMatchObject({
      object: 'wallet_enrollment',
      status: 'pending',
      card_type: 'CREDIT',
    });
  });

  it('a wallet order has a checkout page that shows its data escaped, without scripts', async () => {
    const response = await provider.post('/v1/wallet-orders', {
      wallet: 'WALLET_B',
      amount: 300_000_050,
      currency: 'USD',
      reference: '<script>alert(1)</script>',
      description: `Mugs "big" & 'small'`,
      order: { items: [{ name: '<img src=x>', quantity: 2, unit_amount: 1250 }] },
    });
    expect(response.status).toBe(201);
    const order = await jsonOf(response);
    expect(order).toMatchObject({
      status: 'created',
      checkout_url: `http://shop.example/checkout/${order.id}`,
    });

    const page = await fetch(`${provider.origin}/checkout/${order.id}`);
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+';/,
    );
    const html = await page.text();
    expect(html).toContain('USD 3,000,000.50');
    expect(html).toContain('USD 12.50');
    expect(html).toContain('&#60;script&#62;');
    expect(html).toContain('Mugs &#34;big&#34; &#38; &#39;small&#39;');
    expect(html).not.toMatch(/<script|<img/);
  });

  it('a checkout page shows yen without decimal places', async () => {
    const body = { wallet: 'WALLET_B', amount: 1200, currency: 'JPY' };
    const order = await jsonOf(await provider.post('/v1/wallet-orders', body));
    expect(await (await fetch(`${provider.origin}/checkout/${order.id}`)).text()).toContain('JPY 1,200<');
  });

  it('the checkout page of an order that does not exist says so', async () => {
    const charge = await jsonOf(await provider.post('/v1/charges', CHARGE));
    for (const id of ['wo_00000000-0000-4000-8000-000000000000', charge.id, '%00', '<script>']) {
      const page = await fetch(`${provider.origin}/checkout/${id}`);
      expect(page.status).toBe(404);
      expect(await page.text()).toContain('There is no such payment.');
    }
  });
});

describe('refused calls', () => {
  const deep = `${'['.repeat(30_000)}${']'.repeat(30_000)}`;
  const rows: [string, number, unknown, Record<string, string>?][] = [
    ['without the API key', 401, CHARGE, { authorization: '' }],
    ['with a wrong API key', 401, CHARGE, { authorization: `Bearer ${API_KEY}x` }],
    ['with an empty idempotency key', 400, CHARGE, { 'idempotency-key': '' }],
    ['with an idempotency key over 255 characters', 400, CHARGE, { 'idempotency-key': 'k'.repeat(256) }],
    ['for an acquirer that does not exist', 400, CHARGE, { 'sandbox-acquirer': 'THREE' }],
    ['with a body that is not JSON', 400, `{"card":4111111111111111x`],
    ['with a list', 400, '[]'],
    ['without a body', 400, ''],
    ['nested 30,000 deep', 400, `{"a":${deep}}`],
    ['with a string of 1,025 characters', 400, { ...CHARGE, description: 'd'.repeat(1_025) }],
    ['with 201 order items', 400, { ...CHARGE, order: { items: Array.from({ length: 201 }, () => ({})) } }],
    ['over 256 KiB', 413, `"${' '.repeat(256 * 1024)}"`],
    ['with a content type other than JSON', 415, 'a=b', { 'content-type': 'text/plain' }],
    ['with an amount of zero', 422, { ...CHARGE, amount: 0 }],
    ['with an amount with decimals', 422, { ...CHARGE, amount: 1.5 }],
    ['with an amount in a string', 422, { ...CHARGE, amount: '4111111111111111' }],
    ['with a currency in lower case', 422, { ...CHARGE, currency: 'usd' }],
    ['without a card', 422, { ...CHARGE, card: null }],
    ['with a card number in a number', 422, { ...CHARGE, card: { ...CARD, number: 4111111111111111 } }],
    ['with a card hidden in __proto__', 422, `{"amount":1,"currency":"USD","__proto__":{"card":{}}}`],
  ];
  for (const [name, status, body, headers] of rows) {
    it(`a call ${name} is refused and not recorded, and its error quotes no card data`, async () => {
      const [before] = await provider.query('SELECT count(*) FROM sandbox.ledger');
      const response = await provider.post('/v1/charges', body, headers);
      const text = await response.text();
      expect([response.status, text]).toEqual([status, expect.stringContaining('"error"')]);
      expect(text).not.toMatch(/4111|987/);
      expect(await provider.query('SELECT count(*) FROM sandbox.ledger')).toEqual([before]);
    });
  }

  it('a call to an unknown path gets a 404', async () => {
    expect((await provider.get('/v2/charges')).status).toBe(404);
  });

  it('a refused call names the bad field', async () => {
    const response = await provider.post('/v1/charges', { ...CHARGE, card: { ...CARD, exp_month: 13 } });
    expect(await response.json()).toMatchObject({
      error: { type: 'invalid_request', param: 'card.exp_month' },
    });
  });
});

describe('the sandbox provider', () => {
  it('four providers can start at once on an empty database, and a later start keeps the entries', async () => {
    const database = await createTestDatabase({ empty: true });
    const started = await Promise.all(
      Array.from({ length: 4 }, () => startApp({ databaseUrl: database.url })),
    );
    const headers = {
      authorization: `Bearer ${API_KEY}`,
      'content-type': 'application/json',
      'idempotency-key': 'kept',
    };
    const request = { method: 'POST', headers, body: JSON.stringify(CHARGE) };
    const first = await fetch(`${started[0]?.origin}/v1/charges`, request);
    for (const { app } of started) await app.close();
    const again = await startApp({ databaseUrl: database.url });
    const second = await fetch(`${again.origin}/v1/charges`, request);
    expect(await second.text()).toBe(await first.text());
    await again.app.close();
    await database.drop();
  });

  it('a call that the provider leaves unanswered ends when the client disconnects', async () => {
    const own = await startProvider();
    const body = JSON.stringify({ ...CHARGE, card: magicCard('NO_ANSWER') });
    const socket = createConnection(Number(new URL(own.origin).port), '127.0.0.1');
    socket.write(
      `POST /v1/charges HTTP/1.1\r\nhost: provider\r\nauthorization: Bearer ${API_KEY}\r\nidempotency-key: leaves\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await expect.poll(() => own.query('SELECT 1 FROM sandbox.ledger')).toHaveLength(1);
    expect(await openConnections(own)).toBe(1);
    socket.end();
    await expect.poll(() => openConnections(own)).toBe(0);
    await own.close();
  });

  it('the provider can close during hanging and delayed calls, and drops a delayed charge', async () => {
    const own = await startProvider();
    let received = 0;
    own.app.server.on('request', () => received++);
    const hanging = own.post('/v1/charges', { ...CHARGE, card: magicCard('NO_ANSWER') });
    const waiting = own.post('/v1/charges', { ...CHARGE, card: magicCard('APPROVED_AFTER_DELAY') });
    const failed = expect(hanging).rejects.toThrow();
    await expect.poll(() => own.query('SELECT 1 FROM sandbox.ledger')).toHaveLength(1);
    // Both requests must have arrived, because closing cuts connections that have no request.
    await expect.poll(() => received).toBe(2);
    await own.app.close();
    await failed;
    expect((await waiting).status).toBe(503);
    expect(await own.query('SELECT 1 FROM sandbox.ledger')).toHaveLength(1);
    await own.close();
  });
});

async function jsonOf(response: Response): Promise<{ id: string }> {
  return (await response.json()) as { id: string };
}

function openConnections(under: ProviderUnderTest): Promise<number> {
  return new Promise((resolve, reject) =>
    under.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}
