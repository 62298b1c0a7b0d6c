import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY, SANDBOX_OPERATOR_READ_KEY } from '#src/config.ts';
import {
  type Merchant,
  merchantOne,
  type Operator,
  OWN_FORM,
  PAGES,
  pathOf,
  signIn,
} from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { cardPayment, headersOne } from '../support/payment-requests.ts';
import { startTestServer } from '../support/server.ts';
import { failWrites } from '../support/tables.ts';

let operator: Operator;
let merchant: Merchant;

onService();
beforeAll(async () => {
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  merchant = merchantOne(server);
});

describe('visitors', () => {
  it('a visitor is redirected from every page to the sign-in page, and sees no content of the dashboard', async () => {
    const paid = await merchant.pay();
    for (const path of [...PAGES, pathOf(paid)]) {
      const response = await fetch(`${server.url}/dashboard${path}`, { redirect: 'manual' });
      expect([path, response.status, await response.text()]).toEqual([path, 303, '']);
      expect(response.headers.get('location')).toMatch(/^\/dashboard\/sign-in\?next=/);
    }
    const sent = await fetch(`${server.url}/dashboard${pathOf(paid)}/refund`, {
      method: 'POST',
      redirect: 'manual',
      headers: OWN_FORM,
      body: new URLSearchParams({ amount: '1', key: 'k' }),
    });
    const signInAddress = sent.headers.get('location') ?? '';
    expect(new URL(signInAddress, server.url).searchParams.get('next')).toBe(`/dashboard${pathOf(paid)}`);
    const signInPage = await (await fetch(server.url + signInAddress)).text();
    expect(signInPage).toContain('Your session has ended, and nothing was sent.');
    expect(await merchant.refundsOf(paid)).toEqual([]);
  });

  it.each([
    '//evil.example',
    'https://evil.example',
    '/dashboard//evil',
    '/dashboard\\@evil',
    'javascript:alert(1)',
  ])('a visitor is not redirected to another site after signing in: %s', async (next) => {
    const response = await fetch(`${server.url}/dashboard/sign-in`, {
      method: 'POST',
      redirect: 'manual',
      headers: OWN_FORM,
      body: new URLSearchParams({ key: SANDBOX_OPERATOR_KEY, next }),
    });
    expect(new URL(response.headers.get('location') ?? '', server.url).href).toMatch(
      `${server.url}/dashboard`,
    );
  });
});

describe('dashboard sessions', () => {
  it('each sign-in creates a new session token, ignores the one that the browser sent, and ends the earlier session', async () => {
    const planted = `operator=${'A'.repeat(43)}`;
    const first = await signIn(server, SANDBOX_OPERATOR_KEY, planted);
    expect(first.cookie).not.toBe(planted);
    expect((await operator.get('', { cookie: planted })).status).toBe(303);
    const second = await signIn(server, SANDBOX_OPERATOR_KEY, first.cookie);
    expect(second.cookie).not.toBe(first.cookie);
    expect((await first.get('')).status).toBe(303);
    expect((await second.get('')).status).toBe(200);
  });

  it('a dashboard session ends after 15 minutes without a page view, and after twelve hours in any case', async () => {
    for (const [column, age] of [
      ['seen_at', '16 minutes'],
      ['created_at', '13 hours'],
    ] as const) {
      const idle = await signIn(server, SANDBOX_OPERATOR_KEY);
      await tables.query("UPDATE operator_session SET seen_at = now() - interval '10 minutes'");
      expect((await idle.get('', { 'x-refresh': '1' })).status).toBe(200);
      const [stale] = await tables.query(
        "SELECT count(*)::int AS n FROM operator_session WHERE seen_at > now() - interval '9 minutes'",
      );
      expect(stale).toEqual({ n: 0 });
      expect((await idle.get('')).status).toBe(200);
      await tables.query(`UPDATE operator_session SET ${column} = now() - interval '${age}'`);
      expect((await idle.get('')).status).toBe(303);
    }
    operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  });
});

describe('forms', () => {
  it('a form is refused without its token, with the token of another session, or from another origin', async () => {
    const paid = await merchant.pay();
    const fields = { amount: '1.00', key: randomUUID() };
    const other = await signIn(server, SANDBOX_OPERATOR_KEY);
    const path = `${pathOf(paid)}/refund`;
    const attempts = [
      operator.post(path, { ...fields, form_token: '' }),
      operator.post(path, fields, { ...OWN_FORM, cookie: other.cookie }),
      operator.post(path, fields, { origin: 'https://evil.example' }),
      operator.post(path, fields, { origin: 'null' }),
      operator.post(path, fields, { 'sec-fetch-site': 'same-site', origin: server.url }),
      operator.post(path, fields, {}),
    ];
    expect((await Promise.all(attempts)).map(({ status }) => status)).toEqual(attempts.map(() => 403));
    expect(await merchant.refundsOf(paid)).toEqual([]);
    expect((await operator.post(path, fields, { origin: server.url })).status).toBe(303);
    expect(await merchant.refundsOf(paid)).toHaveLength(1);
  });
});

describe('a payment’s address', () => {
  it('the address of a payment or transaction without its account leads to the payment’s page', async () => {
    const paid = await merchant.pay();
    for (const id of [paid.id, paid.transactions.id]) {
      const found = await operator.get(`/payments/${id}`);
      expect([found.status, found.headers.get('location')]).toEqual([303, `/dashboard${pathOf(paid)}`]);
    }
    for (const id of [randomUUID(), 'x']) expect((await operator.get(`/payments/${id}`)).status).toBe(404);
  });
});

describe('read-only operator keys', () => {
  it('a read-only operator key opens every page, shows no action, and is refused every action', async () => {
    const reader = await signIn(server, SANDBOX_OPERATOR_READ_KEY);
    const [paid, held] = [await merchant.pay(), await merchant.authorize()];
    for (const path of [...PAGES, pathOf(paid), pathOf(held)]) {
      const text = await (await reader.get(path)).text();
      expect(text).not.toMatch(/<button[^>]*>(Refund|Capture|Cancel|Deliver)/);
    }
    for (const path of [`${pathOf(paid)}/refund`, `${pathOf(held)}/capture`, `${pathOf(held)}/cancel`]) {
      expect((await reader.post(path, { amount: '1.00', key: randomUUID() })).status).toBe(403);
    }
    expect((await reader.post(`${pathOf(paid)}/deliveries/${randomUUID()}`)).status).toBe(403);
    expect(await merchant.refundsOf(paid)).toEqual([]);
    expect((await merchant.call(`/v1/payments/${held.id}`)).sub_status).toBe('APPROVED');
    const actions = await tables.query('SELECT FROM audit_log WHERE subject = ANY ($1)', [
      [paid.id, held.id],
    ]);
    expect(actions).toEqual([]);
  });
});

describe('operators', () => {
  it('a form sent twice at once takes effect once, and a refused form is shown with the reason', async () => {
    const paid = await merchant.pay();
    const form = { amount: '1.25', key: `dashboard-${randomUUID()}` };
    const both = [form, form].map((fields) => operator.post(`${pathOf(paid)}/refund`, fields));
    expect((await Promise.all(both)).map(({ status }) => status)).toEqual([303, 303]);
    expect(await merchant.refundsOf(paid)).toHaveLength(1);
    for (const amount of ['1000', '-1', '1.234', '0,5', 'NaN', '']) {
      const refused = await operator.post(`${pathOf(paid)}/refund`, { amount, key: randomUUID() });
      expect([amount, refused.status]).toEqual([amount, 400]);
      expect(await refused.text()).toContain('role="alert"');
    }
    expect(await merchant.refundsOf(paid)).toHaveLength(1);
  });

  it('a cancel is audited without an amount', async () => {
    const [held, key] = [await merchant.authorize(), randomUUID()];
    expect((await operator.post(`${pathOf(held)}/cancel`, { key })).status).toBe(303);
    const recorded = await tables.query('SELECT detail FROM audit_log WHERE subject = $1', [held.id]);
    expect(recorded).toContainEqual({ detail: `asked for; key ${key}` });
  });

  it('a refund whose result cannot be audited is not shown or audited as unsent', async () => {
    const DISK_FULL = '53100';
    const mend = await failWrites(tables, 'audit_log', DISK_FULL, "detail NOT LIKE 'SUCCEEDED,%'");
    const paid = await merchant.pay();
    const sent = await operator.post(`${pathOf(paid)}/refund`, { amount: '1.25', key: randomUUID() });
    await mend();
    expect(await merchant.refundsOf(paid)).toHaveLength(1);
    expect([sent.status, await sent.text()]).toEqual([500, expect.not.stringContaining('nothing was sent')]);
    const recorded = await tables.query('SELECT detail FROM audit_log WHERE subject = $1', [paid.id]);
    expect(recorded).toEqual([{ detail: expect.stringContaining('asked for USD 1.25') }]);
  });

  it('an operator stays signed in if the sign-out cannot be audited, and the next try is audited', async () => {
    const leaving = await signIn(server, SANDBOX_OPERATOR_KEY);
    const recorded = () => tables.query("SELECT FROM audit_log WHERE action = 'sign-out'");
    const before = (await recorded()).length;
    const mend = await failWrites(tables, 'audit_log', '57P03');
    expect((await leaving.post('/sign-out')).status).toBe(503);
    await mend();
    expect((await leaving.get('')).status).toBe(200);
    expect((await leaving.post('/sign-out')).status).toBe(303);
    expect([(await leaving.get('')).status, (await recorded()).length - before]).toEqual([303, 1]);
  });

  it('an operator can have an event delivered again', async () => {
    const received: string[] = [];
    const hook = createServer((request, response) => {
      received.push(String(request.headers['webhook-id']));
      response.end();
    });
    hook.listen(0, '127.0.0.1');
    await once(hook, 'listening');
    const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/hook`;
    await merchant.call('/v1/webhooks', { url, events: ['payment.purchase'] });
    const paid = await merchant.pay();
    await expect.poll(() => received.length).toBe(1);
    const address = /action="\/dashboard([^"]+\/deliveries\/[^"]+)"/;
    const page = await (await operator.get(pathOf(paid))).text();
    expect(page).toContain(`aria-label="Deliver again to ${url}"`);
    const [, path = ''] = address.exec(page) ?? [];
    expect((await operator.post(path)).status).toBe(303);
    await expect.poll(() => received).toEqual([received[0], received[0]]);
    hook.closeAllConnections();
    hook.close();
  });

  it('an operator sees the caller’s idempotency key, even for a payment made with only the public key', async () => {
    const { 'private-secret-key': _, ...headers } = headersOne();
    const wallet = { ...cardPayment(), amount: { currency: 'BRL', value: 7 }, country: 'BR' };
    const response = await fetch(`${server.url}/v1/payments`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'x-idempotency-key': 'from-a-page-1' },
      body: JSON.stringify({ ...wallet, workflow: 'REDIRECT', payment_method: { type: 'WALLET_B' } }),
    });
    expect(response.status).toBe(201);
    const page = await (await operator.get(pathOf((await response.json()) as { id: string }))).text();
    expect(page).toContain('<code>from-a-page-1</code>');
  });

  it('an operator sees when the payer’s personal data was erased', async () => {
    const paid = await merchant.pay();
    expect(await (await operator.get(pathOf(paid))).text()).toContain(
      'The request contained no data about the payer.',
    );
    await tables.query(
      `UPDATE payment SET personal_data_erased_at = '2026-03-01 12:00:00Z' WHERE id = '${paid.id}'`,
    );
    expect(await (await operator.get(pathOf(paid))).text()).toContain(
      'Personal data was erased on <time datetime="2026-03-01T12:00:00.000Z">2026-03-01 12:00:00</time> UTC',
    );
  });
});

it('a full card number in the route form reaches neither the router nor the page', async () => {
  const response = await operator.post('/route', { card: '4012888888881881', type: 'CARD', country: 'US' });
  expect([response.status, (await response.text()).includes('4012888888881881')]).toEqual([400, false]);
});

it('pages cannot be cached or run foreign code, and assets with hashed names can be cached', async () => {
  const paths = [...PAGES, pathOf(await merchant.pay()), '/payments/x/y', '/sign-in'];
  for (const path of paths) {
    const { headers } = await operator.get(path);
    expect([path, headers.get('cache-control')]).toEqual([path, 'no-store']);
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'self'; script-src 'self';/,
    );
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  }
  const [file = ''] = /\/assets\/dashboard-\w+\.js/.exec(await (await operator.get('')).text()) ?? [];
  expect((await operator.get(file)).headers.get('cache-control')).toContain('immutable');
});

it('wrong operator keys are refused, throttled after five tries, and not logged', async () => {
  const attempt = () =>
    fetch(`${server.url}/dashboard/sign-in`, {
      method: 'POST',
      headers: OWN_FORM,
      body: new URLSearchParams({ key: 'op_guessed_wrong' }),
    });
  const statuses: number[] = [];
  for (let i = 0; i < 8; i++) statuses.push((await attempt()).status);
  expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
  expect(statuses.slice(5)).toEqual([429, 429, 429]);
  expect(server.logLines.filter((line) => line.includes('op_guessed_wrong'))).toEqual([]);
  expect(server.logLines.filter((line) => line.includes('authentication failed'))).toHaveLength(5);
});

it('the dashboard is not served when it is turned off', async () => {
  const without = await startTestServer({ config: { dashboard: false }, databaseUrl: server.databaseUrl });
  const statuses = ['', '/sign-in', '/payments'].map(
    async (path) => (await fetch(`${without.url}/dashboard${path}`)).status,
  );
  expect(await Promise.all(statuses)).toEqual([404, 404, 404]);
  await without.close();
});
