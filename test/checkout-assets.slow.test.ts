import { describe, expect, it } from 'vitest';
import { calls, onCheckoutPages, openCheckout, page, payer } from './support/checkout-pages.ts';
import { server } from './support/on-service.ts';
import type { InPage } from './support/payer.ts';

onCheckoutPages();

const APPROVED = '4111111111111111';
const NO_SCRIPT = /needs JavaScript/;

/** Has the browser get something else for a file of the page. @param body undefined: nothing arrives. */
async function replaceAsset(name: string, body?: string): Promise<void> {
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    if (!request.url().endsWith(name)) return request.continue();
    return body === undefined ? request.abort('failed') : request.respond({ status: 200, body });
  });
}

describe('without its script, the checkout page says so, and has no button that does nothing:', () => {
  it('where the script does not arrive', async () => {
    await replaceAsset('checkout.js');
    await openCheckout();
    await payer.shown('#no-script', NO_SCRIPT);
    expect(await page.$eval('#pay button', (button: InPage) => button.disabled)).toBe(true);
    await payer.expectAccessible();
    await payer.picture('no-script');
  });

  it('where the payer has turned scripts off', async () => {
    await page.setJavaScriptEnabled(false);
    await openCheckout();
    expect(await payer.textOf('#no-script')).toMatch(NO_SCRIPT);
    expect(await page.$('#pay button:disabled')).not.toBeNull();
    await payer.picture('scripts-off');
  });

  it('where a proxy answers in its place, or the browser is too old to read it', async () => {
    const complaints: string[] = [];
    await replaceAsset('checkout.js', '<!doctype html><title>Blocked</title>');
    page.removeAllListeners('pageerror').on('pageerror', (error) => complaints.push(String(error)));
    await openCheckout();
    await payer.shown('#no-script', NO_SCRIPT);
    expect(complaints).toEqual([expect.stringContaining('SyntaxError')]);
    expect(await page.$('#pay button:disabled')).not.toBeNull();
  });

  it('where a payment has been made already, and there is no form', async () => {
    const session = await calls.openSession();
    expect((await calls.payAsBrowser(session, { token: await calls.token(session) })).status).toBe(201);
    await replaceAsset('checkout.js');
    await page.goto(`${server.url}/checkout/${session}`);
    await payer.shown('#no-script', NO_SCRIPT);
  });
});

it('a script that arrives late is not complained of, and then the payer can pay', async () => {
  let release = (): void => {};
  const late = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.setRequestInterception(true);
  page.on('request', async (request) => {
    if (request.url().endsWith('checkout.js')) await late;
    await request.continue();
  });
  const session = await calls.openSession({ callback_url: null });
  const arrived = page.goto(`${server.url}/checkout/${session}`);
  await page.waitForSelector('#pay button:disabled');
  // The style that hides it at first may come after the markup.
  await page.waitForFunction("document.querySelector('#no-script').getAnimations().length > 0");
  const seenAt = (ms: number) =>
    page.$eval(
      '#no-script',
      (one: InPage, at) => {
        for (const animation of one.getAnimations()) {
          animation.pause();
          animation.currentTime = at;
        }
        return one.checkVisibility({ visibilityProperty: true });
      },
      ms,
    );
  expect([await seenAt(0), await seenAt(3_000), await seenAt(10_000)]).toEqual([false, false, true]);
  release();
  await arrived;
  expect(await page.$eval('#no-script', (one: InPage) => one.hidden)).toBe(true);
  await payer.fillCard(APPROVED);
  await payer.press();
  await payer.shown('#outcome h2', /Payment complete/);
});

it('without its style, the checkout page can be read and paid on', async () => {
  await replaceAsset('checkout.css');
  await openCheckout();
  await payer.expectAccessible();
  await payer.picture('no-style');
  await payer.fillCard(APPROVED);
  await payer.press();
  await payer.shown('#outcome h2', /Payment complete/);
  await payer.picture('no-style-paid');
});
