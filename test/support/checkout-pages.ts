import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type Call, restCalls } from '../customers/calls.ts';
import { checkoutCalls } from '../customers/checkout.ts';
import { startBrowser } from './browser.ts';
import { onService, server } from './on-service.ts';
import { createPayer, type Payer } from './payer.ts';

export let call: Call;
export let calls: ReturnType<typeof checkoutCalls>;
/** The payer, a new one for each test. */
export let payer: Payer;
/** The payer's page. */
export let page: Page;
let browser: Browser;

/** Starts the service and a browser for a file's tests, with a payer for each. */
export function onCheckoutPages(): void {
  onService();
  beforeAll(async () => {
    browser = await startBrowser();
    call = restCalls(server.url);
    calls = checkoutCalls(call);
  });
  afterAll(() => browser?.close());
  beforeEach(async () => {
    payer = await createPayer(browser);
    page = payer.page;
  });
  afterEach(() => payer.close());
}

/** Opens the page of a new session, by default without a callback_url. @returns the session. */
export async function openCheckout(terms: object = {}): Promise<string> {
  const session = await calls.openSession({ callback_url: null, ...terms });
  await page.goto(`${server.url}/checkout/${session}`);
  return session;
}
