import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { startBrowser } from '../support/browser.ts';
import { enter, type Merchant, merchantOne } from '../support/dashboard.ts';
import { onService, server } from '../support/on-service.ts';
import type { InPage } from '../support/payer.ts';

let browser: Browser;
let page: Page;
let merchant: Merchant;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The key of the sandbox. */
const KEY = 'a-key-of-the-sandbox-0815';

onService({
  ...{ replica: 'one' },
  config: { environment: (name) => (name === 'SANDBOX_API_KEY' ? KEY : undefined) },
});
beforeAll(async () => {
  browser = await startBrowser();
  page = await browser.newPage();
  merchant = merchantOne(server);
  await enter(page, server, SANDBOX_OPERATOR_KEY);
});
afterAll(() => browser?.close());

const go = (path: string) => page.goto(`${server.url}/dashboard${path}`);

/** Presses the button or link whose text begins with a name, without scripts. */
async function press(name: string): Promise<void> {
  const [found] = await page.$$(
    `xpath/.//*[self::button or self::a][starts-with(normalize-space(),'${name}')]`,
  );
  if (!found) throw new Error(`nothing reads ${name}`);
  await Promise.all([page.waitForNavigation(), found.click()]);
}

async function fill(field: string, text: string): Promise<void> {
  await page.$eval(field, (one: InPage, value) => (one.value = value), text);
}

/** Expects no fault of accessibility and no sideways scrolling, light on a desktop and dark on a phone. */
async function expectSound(): Promise<void> {
  await page.setJavaScriptEnabled(true);
  for (const [scheme, width] of [
    ['light', 1280],
    ['dark', 390],
  ] as const) {
    await page.setViewport({ width, height: 800 });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
    await page.evaluate(axe);
    const found = await page.evaluate(
      'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + " " + nodes[0].html))',
    );
    expect([page.url(), scheme, found]).toEqual([page.url(), scheme, []]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  }
  await page.setJavaScriptEnabled(false);
}

it('without scripts, a route is added, corrected, previewed on payments, published and undone', async () => {
  const paid = await merchant.pay();
  await page.setJavaScriptEnabled(false);
  await go('/catalogue');
  await press('New route');
  await fill('#name', 'Large payments');
  await fill('#condition', "currency == 'USD' && amont > 1.0");
  await page.select('[name=t0_connection]', 'sandbox-two');
  await page.select('#before', '1');
  await press('Preview');
  expect(await page.$eval('main', (main: InPage) => main.textContent)).toContain('did you mean amount?');
  await expectSound();

  await fill('#condition', "currency == 'USD' && amount > 1.0");
  await press('Preview');
  await page.click('.lines details summary');
  const [sample] = await page.$$eval('.samples a', (all) => all.map((one: InPage) => one.textContent));
  expect(sample).toBe(paid.id);
  await expectSound();
  await page.type('#comment', 'Acquirer two is cheaper');
  await press('Publish');
  expect(await page.$eval('[role=status]', (one: InPage) => one.textContent)).toContain(
    'Version 2 is published',
  );
  await expectSound();
  const route = async () =>
    (await merchant.call(`/v1/payments/${(await merchant.pay()).id}`)).routing_rules?.condition;
  await expect.poll(async () => (await route())?.name, { timeout: 5_000 }).toBe('Large payments');

  await press('All versions');
  await expectSound();
  await go('/catalogue/versions/1');
  await press('Undo to version 1');
  await expectSound();
  await page.type('#comment', 'It was not');
  await press('Publish');
  await expect.poll(async () => (await route())?.name, { timeout: 5_000 }).toBe('Cards elsewhere');
});

it('without scripts, a preview shows what is doubtful, which may be published', async () => {
  await page.setJavaScriptEnabled(false);
  await go('/catalogue/route');
  await fill('#name', 'Vouchers');
  await fill('#condition', "type == 'OXXO' && country == 'BR'");
  await page.select('[name=t0_connection]', 'sandbox-one');
  await page.select('#before', '6');
  await press('Preview');
  const warnings = () =>
    page.$$eval('.timeline li', (all) => all.map((one: InPage) => [one.className, one.textContent]));
  expect(await warnings()).toEqual([
    [
      'open',
      expect.stringMatching(/^WARNING routes\[\d\]\.targets\[0\]\.connectionsandbox-one supports nothing/),
    ],
  ]);
  expect(await page.$eval('form[action$=publish] button', (one: InPage) => one.textContent)).toBe('Publish');
  await expectSound();
  await go('/catalogue/route?id=3');
  await press('Remove');
  expect((await warnings()).map(([, text]) => text)).toContainEqual(
    expect.stringMatching(/^WARNING payment_method_types\[1\]WALLET_A_CHECKOUT_PRO is accepted by no route/),
  );
  await expectSound();
});

it('without scripts, a connection is added, tested, gets its secret, and is published and shown', async () => {
  await page.setJavaScriptEnabled(false);
  await go('/catalogue');
  await press('New connection');
  await press('sandbox');
  await page.type('#id', 'sandbox-three');
  await page.type('#s_base_url', '$SANDBOX_URL');
  await page.type('#secret_api_key', KEY);
  await press('Test the credentials');
  expect(await page.$eval('[role=status] .badge', (one: InPage) => one.textContent)).toBe('ACCEPTED');
  expect(await page.$eval('#secret_api_key', (one: InPage) => one.value)).toBe('');
  await expectSound();
  await page.type('#secret_api_key', KEY);
  await press('Store the secrets and preview');
  expect(await page.$eval('[role=status]', (one: InPage) => one.textContent)).toBe('Stored: api_key.');
  await expectSound();
  await page.type('#comment', 'A third acquirer');
  await press('Publish');
  const badges = () => page.$$eval('.badge', (all) => all.map((one: InPage) => one.textContent));
  const shown = async () => {
    await go('/catalogue/connection?id=sandbox-three');
    return badges();
  };
  await expect.poll(shown, { timeout: 5_000 }).toContain('STORED');
  await expectSound();
  await press('Retire');
  await expectSound();
});
