import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { decodeRecord, encodeRecord } from '#src/payments/stored-record.ts';
import { startBrowser } from '../support/browser.ts';
import { enter, type Merchant, merchantOne, type Operator, pathOf, signIn } from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';
import type { InPage } from '../support/payer.ts';
import { cardPayment, walletPayment } from '../support/payment-requests.ts';

let browser: Browser;
let operator: Operator;
let merchant: Merchant;
let page: Page;

onService();
beforeAll(async () => {
  browser = await startBrowser();
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  merchant = merchantOne(server);
});
afterAll(() => browser?.close());
beforeEach(async () => {
  const context = await browser.createBrowserContext();
  page = await context.newPage();
  return () => context.close();
});

it('moving money takes at least two presses, and the keyboard alone is enough', async () => {
  const held = await merchant.authorize();
  await enter(page, server, SANDBOX_OPERATOR_KEY);
  await page.goto(`${server.url}/dashboard${pathOf(held)}`);
  const buttons = () =>
    page.$$eval('.actions button', (all) =>
      all.filter((one: InPage) => one.checkVisibility()).map((one: InPage) => one.textContent),
    );
  expect(await buttons()).toEqual([]);
  await page.focus('.actions summary');
  await page.keyboard.press('Enter');
  expect(await buttons()).toEqual(['Capture']);
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement.id')).toBe('capture-amount');
});

it('the button Cancel closes a payment that awaits its payer', async () => {
  const waiting = await merchant.call('/v1/payments', walletPayment());
  await enter(page, server, SANDBOX_OPERATOR_KEY);
  await page.goto(`${server.url}/dashboard${pathOf(waiting)}`);
  expect(await page.$$eval('.actions summary', (all) => all.map((one: InPage) => one.textContent))).toEqual([
    'Cancel…',
  ]);
  await page.click('.actions summary');
  await Promise.all([page.waitForNavigation(), page.click('.actions button.danger')]);
  expect(await page.$eval('[role="status"]', (one: InPage) => one.textContent)).toBe('The cancel succeeded.');
  expect(await page.$('.actions')).toBe(null);
  const closed = await merchant.call(`/v1/payments/${waiting.id}`);
  expect([closed.status, closed.transactions.response_code]).toEqual(['CANCELED', 'SUCCEEDED']);
});

it('an operator sees whether an action succeeded, is still open or failed', async () => {
  const told: string[] = [];
  for (const description of ['A book', 'sandbox:done_after:60000', 'sandbox:decline:05']) {
    const paid = await merchant.pay();
    const reference = randomUUID();
    const asked = { merchant_reference: reference, amount: { currency: 'USD', value: 1.5 }, description };
    await merchant.call(`/v1/payments/${paid.id}/refund`, asked);
    const text = await (await operator.get(`${pathOf(paid)}?did=refund`)).text();
    told.push(
      /<p class="notice[^>]*role="(?:status|alert)">[^<]*/.exec(text)?.[0].replace(/^.*role=/, '') ?? '',
    );
  }
  expect(told).toEqual([
    '"status">The refund succeeded.',
    '"status">The refund was sent. The timeline shows its outcome once it is known.',
    '"alert">The refund failed. The timeline shows the provider’s response.',
  ]);
});

it('an operator sees the result of the last refund, and of a capture, a cancel or a redelivery', async () => {
  const told = async (payment: { id: string }, did: string) => {
    const text = await (await operator.get(`${pathOf(payment)}?did=${did}`)).text();
    return /<p class="notice[^>]*>([^<]*)/.exec(text)?.[1];
  };
  const paid = await merchant.pay();
  for (const description of ['A book', 'sandbox:decline:05']) {
    const asked = { merchant_reference: randomUUID(), amount: { currency: 'USD', value: 1.5 }, description };
    await merchant.call(`/v1/payments/${paid.id}/refund`, asked);
  }
  expect(await told(paid, 'refund')).toContain('The refund failed.');
  expect([await told(paid, 'capture'), await told(paid, 'constructor')]).toEqual([undefined, undefined]);
  expect(await told(paid, 'redeliver')).toBe('The event is being delivered again.');
  for (const action of ['capture', 'cancel']) {
    const held = await merchant.authorize();
    const form = await operator.post(`${pathOf(held)}/${action}`, {
      ...{ key: randomUUID(), reason: action === 'cancel' ? 'DUPLICATE' : '' },
      amount: held.amount.value,
    });
    expect(form.status).toBe(303);
    expect(await told(held, action)).toBe(`The ${action} succeeded.`);
  }
});

it('an action is not shown as failed while it is unknown whether it was sent', async () => {
  const paid = await merchant.pay();
  await merchant.call(`/v1/payments/${paid.id}/refund`, { merchant_reference: randomUUID() });
  const [row] = await tables.query('SELECT record FROM payment WHERE id = $1', [paid.id]);
  const record = decodeRecord(row?.record as Buffer);
  const last = record.transactionsHistory.at(-1);
  if (last) last.status = Transaction_Status.CREATED;
  await tables.query('UPDATE payment SET record = $1 WHERE id = $2', [encodeRecord(record), paid.id]);
  expect(await (await operator.get(`${pathOf(paid)}?did=refund`)).text()).toContain('The refund was sent.');
});

it('the reason that an operator chooses for a refund is stored with it', async () => {
  const paid = await merchant.pay();
  const form = { amount: '1.5', key: randomUUID(), reason: 'DUPLICATE' };
  expect((await operator.post(`${pathOf(paid)}/refund`, form)).status).toBe(303);
  expect(await (await operator.get(pathOf(paid))).text()).toContain('reason DUPLICATE');
});

it('yen are shown and entered without decimal places', async () => {
  const paid = await merchant.pay({
    ...cardPayment(),
    country: 'JP',
    amount: { currency: 'JPY', value: 1200 },
  });
  const text = await (await operator.get(pathOf(paid))).text();
  expect(text).toContain('JPY 1,200<');
  expect(text).toContain('Amount in JPY, up to 1200<');
  expect(text).not.toMatch(/1,?200\.0/);
  expect((await operator.post(`${pathOf(paid)}/refund`, { amount: '200', key: randomUUID() })).status).toBe(
    303,
  );
});

it('the timeline of a payment states that its times are in UTC', async () => {
  const text = await (await operator.get(pathOf(await merchant.pay()))).text();
  expect(text).toContain('<h2>Timeline <span class="quiet">in UTC</span></h2>');
});

it('the overview marks its figures as stale while a refresh gets no response', async () => {
  await page.evaluateOnNewDocument(() => {
    const every = globalThis.setInterval;
    globalThis.setInterval = ((act: () => void, ms: number) => every(act, ms / 50)) as typeof setInterval;
    const limit = AbortSignal.timeout.bind(AbortSignal);
    AbortSignal.timeout = (ms) => limit(ms / 50);
  });
  await enter(page, server, SANDBOX_OPERATOR_KEY);
  // The requests are intercepted and never answered.
  await page.setRequestInterception(true);
  await page.waitForSelector('.stale');
});

it('the overview marks failed refreshes as stale, and shows the sign-in page once the session has ended', async () => {
  await page.evaluateOnNewDocument(() => {
    const every = globalThis.setInterval;
    globalThis.setInterval = ((act: () => void, ms: number) => every(act, ms / 50)) as typeof setInterval;
  });
  await enter(page, server, SANDBOX_OPERATOR_KEY);
  await page.setOfflineMode(true);
  await page.waitForSelector('.stale');
  await page.setOfflineMode(false);
  await page.waitForSelector('[data-live]:not(.stale)');
  await tables.query("UPDATE operator_session SET created_at = now() - interval '13 hours'");
  await page.waitForSelector('#key');
  expect(new URL(page.url()).searchParams.get('next')).toBe('/dashboard');
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
});
