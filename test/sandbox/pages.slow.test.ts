import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startBrowser } from '../support/browser.ts';
import { type Site, startSite } from '../support/site.ts';
import {
  type Answer,
  ask,
  CARD,
  CHARGE,
  magic,
  type ProviderUnderTest,
  read,
  startProvider,
} from './provider-under-test.ts';

let browser: Browser;
let provider: ProviderUnderTest;
let page: Page;
/** The errors that the browser reports, such as a violation of the Content Security Policy. */
let complaints: string[];
/** A shop at another origin, to which payers return. */
let shop: Site;
let returnUrl: string;

beforeAll(async () => {
  shop = await startSite();
  returnUrl = `${shop.url}/return?order=7`;
  provider = await startProvider({ publicUrl: (origin) => origin });
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await provider?.close();
  shop?.close();
});
beforeEach(async () => {
  page = await browser.newPage();
  complaints = [];
  page.on('console', (message) => void complaints.push(message.text()));
  page.on('pageerror', (error) => void complaints.push(String(error)));
});
afterEach(() => page.close());

async function order(over: object = {}): Promise<Answer> {
  const body = { wallet: 'WALLET_B', amount: 300_050, currency: 'USD', return_url: returnUrl, ...over };
  return (await ask(provider.origin, '/v1/wallet-orders', body)).answer;
}

async function challenge(name: string, over: object = {}): Promise<Answer> {
  const body = { ...CHARGE, card: { ...CARD, number: magic(name) }, return_url: returnUrl, ...over };
  const { status, answer } = await ask(provider.origin, '/v1/charges', body);
  expect([status, answer]).toMatchObject([201, { status: 'challenge_required', response_code: null }]);
  return answer;
}

/** Presses the button with the label, and waits for the page titled `title`. */
async function press(label: string, title: string): Promise<void> {
  await page.locator(`::-p-aria([name="${label}"][role="button"])`).click();
  await page.waitForFunction(`document.title === ${JSON.stringify(title)}`);
}

const now = (payment: Answer) => read(provider.origin, `/v1/by-id/${payment.id}`);

describe('the checkout page', () => {
  it.each([
    ['Pay USD 3,000.50', 'paid', 300_050],
    ['Let the wallet decline', 'declined', 0],
    ['Cancel and go back', 'canceled', 0],
  ])(
    'the button "%s" makes the order %s and returns the payer to the shop',
    async (label, status, captured) => {
      const payment = await order();
      await page.goto(String(payment.checkout_url));
      await press(label, 'Shop');
      const { origin, searchParams } = new URL(page.url());
      expect(origin).toBe(new URL(returnUrl).origin);
      expect(Object.fromEntries(searchParams)).toEqual({
        order: '7',
        sandbox_payment: payment.id,
        sandbox_status: status,
      });
      expect(await now(payment)).toMatchObject({ status, amount_captured: captured });
      expect(complaints).toEqual([]);
    },
  );

  it('the checkout page asks for approval instead of payment if the merchant must complete the order', async () => {
    const payment = await order({ wallet: 'WALLET_D' });
    await page.goto(String(payment.checkout_url));
    await press('Approve USD 3,000.50', 'Shop');
    expect(await now(payment)).toMatchObject({ status: 'payer_approved', amount_captured: 0 });
  });

  it('the checkout page shows the result without buttons if there is no return URL', async () => {
    const payment = await order({ return_url: undefined });
    await page.goto(String(payment.checkout_url));
    await press('Pay USD 3,000.50', 'Paid');
    expect(await page.$$('button, a')).toEqual([]);
    await page.goto(String(payment.checkout_url));
    expect(await page.title()).toBe('Paid');
  });

  it('the button of an expired order changes nothing', async () => {
    const payment = await order({ return_url: undefined });
    await page.goto(String(payment.checkout_url));
    await ask(provider.origin, `/v1/by-idempotency-key/${payment.idempotency_key}/close`, {});
    await press('Pay USD 3,000.50', 'Too late: this payment has expired');
    expect(await now(payment)).toMatchObject({ status: 'expired', amount_captured: 0 });
  });

  it('an order whose description forbids closing it stays payable', async () => {
    const payment = await order({ return_url: undefined, description: 'sandbox:stay_open' });
    await ask(provider.origin, `/v1/by-idempotency-key/${payment.idempotency_key}/close`, {});
    await page.goto(String(payment.checkout_url));
    await press('Pay USD 3,000.50', 'Paid');
    expect(await now(payment)).toMatchObject({ status: 'paid', amount_captured: 300_050 });
  });

  it('the checkout page works by keyboard and on a phone, and shows hostile text as text', async () => {
    const payment = await order({
      reference: '<script>document.title = "hacked"</script>',
      order: {
        items: [{ name: `"><img src=x onerror=alert(1)>${'x'.repeat(200)}`, quantity: 2, unit_amount: 1 }],
      },
    });
    await page.setViewport({ width: 320, height: 640 });
    await page.goto(String(payment.checkout_url));
    expect(await page.title()).toBe('Sandbox checkout');
    expect(await page.evaluate('document.documentElement.lang')).toBe('en');
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
    expect(await page.$$('script, img')).toEqual([]);
    const focused = () => page.evaluate('document.activeElement?.textContent');
    const labels: unknown[] = [];
    for (let i = 0; i < 3; i++) {
      await page.keyboard.press('Tab');
      labels.push(await focused());
    }
    expect(labels).toEqual(['Pay USD 3,000.50', 'Let the wallet decline', 'Cancel and go back']);
    await page.keyboard.press('Enter');
    await page.waitForFunction(`document.title === 'Shop'`);
    expect(await now(payment)).toMatchObject({ status: 'canceled' });
  });
});

describe('the page of a code', () => {
  async function code(over: object = {}): Promise<Answer> {
    const body = { method: 'SPEI', amount: 300_050, currency: 'MXN', return_url: returnUrl, ...over };
    return (await ask(provider.origin, '/v1/codes', body)).answer;
  }

  it('the buttons of a transfer pay a part and then the rest, and return the payer to the shop', async () => {
    const payment = await code();
    await page.setViewport({ width: 320, height: 640 });
    await page.goto(String(payment.page_url));
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
    await Promise.all([page.waitForNavigation(), press('Pay only MXN 1,500.25', 'Sandbox SPEI')]);
    expect(await now(payment)).toMatchObject({ status: 'created', amount_received: 150_025 });
    await press('Pay MXN 1,500.25', 'Shop');
    expect(await now(payment)).toMatchObject({ status: 'paid', amount_received: 300_050 });
    expect(complaints).toEqual([]);
  });

  it.each([
    ['Pay MXN 4,500.75, which is too much', 'paid'],
    ['Let it expire', 'expired'],
  ])('the button "%s" makes the code %s', async (label, status) => {
    const payment = await code();
    await page.goto(String(payment.page_url));
    await press(label, 'Shop');
    expect(await now(payment)).toMatchObject({ status });
  });

  it.each([
    ['Let the bank decline', 'declined'],
    ['Leave without an answer', 'created'],
  ])('the button "%s" on the page of a bank makes the code %s', async (label, status) => {
    const payment = await code({ method: 'PSE', currency: 'COP', bank: '1901' });
    await page.goto(String(payment.bank_url));
    await press(label, 'Shop');
    expect(await now(payment)).toMatchObject({ status });
  });
});

describe('the 3-D Secure challenge page', () => {
  it.each([
    ['CHALLENGE_PASSED', 'Yes, it is me', 'approved', '00', 5_575],
    ['CHALLENGE_PASSED', 'No, it is not me', 'declined', '05', 0],
    ['CHALLENGE_FAILED', 'Yes, it is me', 'declined', '05', 0],
    ['CHALLENGE_PASSED', 'Leave without an answer', 'challenge_required', null, 0],
    ['CHALLENGE_ABANDONED', 'Yes, it is me', 'challenge_required', null, 0],
  ])(
    'a challenge of card %s, after "%s", leaves the charge %s and returns the payer to the shop',
    async (name, label, status, code, captured) => {
      const payment = await challenge(name);
      await page.goto(String(payment.challenge_url));
      await press(label, 'Shop');
      expect(new URL(page.url()).searchParams.get('sandbox_status')).toBe(status);
      expect(await now(payment)).toMatchObject({
        status,
        response_code: code,
        amount_captured: captured,
        authorization_code: status === 'approved' ? expect.stringMatching(/^[A-Z0-9]{6}$/) : null,
      });
      expect(complaints).toEqual([]);
    },
  );

  it('an authorization can be captured after its challenge', async () => {
    const payment = await challenge('CHALLENGE_PASSED', { capture: false });
    await page.goto(String(payment.challenge_url));
    await press('Yes, it is me', 'Shop');
    expect(await now(payment)).toMatchObject({ status: 'approved', amount_captured: 0 });
    const capture = { payment: payment.id, amount: 5_575, currency: 'USD' };
    expect((await ask(provider.origin, '/v1/captures', capture)).status).toBe(201);
  });

  it('a challenge that nobody answers expires', async () => {
    const expires_at = new Date(Date.now() + 1_000).toISOString();
    const payment = await challenge('CHALLENGE_ABANDONED', { expires_at, return_url: undefined });
    await expect.poll(() => now(payment)).toMatchObject({ status: 'expired' });
    await page.goto(String(payment.challenge_url));
    expect(await page.title()).toBe('Too late: this payment has expired');
  });
});
