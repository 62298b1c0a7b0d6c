import { describe, expect, it } from 'vitest';
import { calls, onCheckoutPages, openCheckout, page, payer } from './support/checkout-pages.ts';
import { server } from './support/on-service.ts';
import type { InPage } from './support/payer.ts';

onCheckoutPages();

const APPROVED = '4111111111111111';
const NO_SCRIPT = /needs JavaScript/;

/** Replaces a file of the page in the browser. @param body undefined for a failed request. */
async function replaceAsset(name: string, body?: string): Promise<void> {
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    if (!request.url().endsWith(name)) return request.continue();
    return body === undefined ? request.abort('failed') : request.respond({ status: 200, body });
  });
}

describe('the checkout page without its script', () => {
  it('the checkout page says that it needs its script, and disables its button, if the script is missing', async () => {
    await replaceAsset('checkout.js');
    await openCheckout();
    await payer.shown('#no-script', NO_SCRIPT);
    expect(await page.$eval('#pay button', (button: InPage) => button.disabled)).toBe(true);
    await payer.expectAccessible();
    await payer.picture('no-script');
  });

  it('the checkout page says that it needs its script, and disables its button, if scripts are off', async () => {
    await page.setJavaScriptEnabled(false);
    await openCheckout();
    expect(await payer.textOf('#no-script')).toMatch(NO_SCRIPT);
    expect(await page.$('#pay button:disabled')).not.toBeNull();
    await payer.picture('scripts-off');
  });

  it('the checkout page says that it needs its script, and disables its button, if the script is invalid', async () => {
    const complaints: string[] = [];
    await replaceAsset('checkout.js', '<!doctype html><title>Blocked</title>');
    page.removeAllListeners('pageerror').on('pageerror', (error) => complaints.push(String(error)));
    await openCheckout();
    await payer.shown('#no-script', NO_SCRIPT);
    expect(complaints).toEqual([expect.stringContaining('SyntaxError')]);
    expect(await page.$('#pay button:disabled')).not.toBeNull();
  });

  it('the checkout page of a paid session says that it needs its script if the script does not arrive', async () => {
    const session = await calls.openSession();
    expect((await calls.payAsBrowser(session, { token: await calls.token(session) })).status).toBe(201);
    await replaceAsset('checkout.js');
    await page.goto(`${server.url}/checkout/${session}`);
    await payer.shown('#no-script', NO_SCRIPT);
  });
});

it('a late script causes no message in the first three seconds, and the payer can pay once it arrives', async () => {
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
  // The style that hides the message at first may load after the markup.
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

it('the checkout page is readable and usable without its stylesheet', async () => {
  await replaceAsset('checkout.css');
  await openCheckout();
  await payer.expectAccessible();
  await payer.picture('no-style');
  await payer.fillCard(APPROVED);
  await payer.press();
  await payer.shown('#outcome h2', /Payment complete/);
  await payer.picture('no-style-paid');
});
