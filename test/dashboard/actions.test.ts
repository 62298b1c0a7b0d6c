import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { startBrowser } from '../support/browser.ts';
import { type Merchant, merchantOne, type Operator, pathOf, signIn } from '../support/dashboard.ts';
import { cardPayment } from '../support/payment-requests.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { openTables, type Tables } from '../support/tables.ts';

let server: TestServer;
let tables: Tables;
let browser: Browser;
let operator: Operator;
let merchant: Merchant;
let _page: Page;

beforeAll(async () => {
  server = await startTestServer();
  tables = await openTables(server.databaseUrl);
  browser = await startBrowser();
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  merchant = merchantOne(server);
});
afterAll(async () => {
  await browser?.close();
  await tables?.close();
  await server?.close();
});
beforeEach(async () => {
  const context = await browser.createBrowserContext();
  _page = await context.newPage();
  return () => context.close();
});

it('the dashboard writes yen without decimals, also where an operator types them', async () => {
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
