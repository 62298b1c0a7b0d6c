import { expect, it } from 'vitest';
import { PUBLIC_ONE } from './customers/calls.ts';
import { call, calls, onCheckoutPages, openCheckout, page, payer } from './support/checkout-pages.ts';
import { server } from './support/on-service.ts';
import type { InPage } from './support/payer.ts';

onCheckoutPages();

/** Keeps the payer on the page, as when a wallet's app opens over it. */
async function stayHere(): Promise<void> {
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    // A response without content leaves the browser where it is.
    if (request.isNavigationRequest()) void request.respond({ status: 204 });
    else void request.continue();
  });
}

/** Divides the page's waits by a thousand. */
async function waitBriefly(): Promise<void> {
  await page.evaluateOnNewDocument(() => {
    const wait = globalThis.setTimeout;
    globalThis.setTimeout = ((act: () => void, ms: number) => wait(act, ms / 1000)) as typeof setTimeout;
  });
}

/** Declines the wallet payment of a session, changes the amount and pays the new one, all in another window. */
async function payAnother(session: string): Promise<void> {
  const { json } = await call('GET', `/v1/checkout/sessions/${session}/payment`, undefined, PUBLIC_ONE);
  const app = await page.browserContext().newPage();
  await app.goto(json.redirect_url);
  await app.$$eval('button', (all) => all.find((one: InPage) => /decline/i.test(one.textContent))?.click());
  await app.waitForFunction("location.pathname.startsWith('/checkout/')");
  await app.close();
  const change = { amount: { currency: 'USD', value: 99 } };
  expect((await call('PATCH', `/v1/checkout/sessions/${session}`, change)).status).toBe(200);
  const paid = await calls.payAsBrowser(session, { token: await calls.token(session) });
  expect(paid.json.status).toBe('SUCCEEDED');
}

it('a payer who stays on the page after choosing a wallet can continue, but not pay a second time', async () => {
  await openCheckout();
  await stayHere();
  await payer.choose('Wallet B');
  await payer.press();
  await payer.shown('#outcome h2', /not finished/);
  expect(await page.$eval('#pay', (form: InPage) => form.hidden)).toBe(true);
  expect(await payer.textOf('#outcome button')).toBe('Continue');
});

it('a payer who declines in the wallet’s app sees the form with the chosen method', async () => {
  const session = await openCheckout();
  await stayHere();
  await payer.choose('Wallet B');
  await payer.press();
  await payer.shown('#outcome h2', /not finished/);
  const { json } = await call('GET', `/v1/checkout/sessions/${session}/payment`, undefined, PUBLIC_ONE);
  const app = await page.browserContext().newPage();
  await app.goto(json.redirect_url);
  await app.$$eval('button', (all) => all.find((one: InPage) => /decline/i.test(one.textContent))?.click());
  await page.bringToFront();
  await payer.shown('#notice', /declined/);
  const chosen = await page.$$eval('[name=method]', (all) => all.map((one: InPage) => one.checked));
  expect(await page.$$eval('.panel', (all) => all.map((one: InPage) => !one.hidden))).toEqual(chosen);
  expect(await payer.textOf('#pay button')).toBe('Pay $55.75');
});

it('a payer who approves in another window sees the outcome on the checkout page that stayed open', async () => {
  const session = await openCheckout();
  await payer.choose('Wallet B');
  await Promise.all([page.waitForNavigation(), payer.press()]);
  const left = await page.browserContext().newPage();
  await left.goto(`${server.url}/checkout/${session}`);
  await page.bringToFront();
  await payer.pressButton(/pay/i);
  await payer.cameBack();
  await payer.shown('#outcome h2', /Payment complete/);
  await left.waitForFunction("document.querySelector('#outcome h2').textContent === 'Payment complete'");
});

it('a payer who is slow in the wallet’s app sees the outcome on returning to the checkout page', async () => {
  await waitBriefly();
  const session = await openCheckout();
  await stayHere();
  let polls = 0;
  let polled = (): void => {};
  const gaveUp = new Promise<void>((resolve) => {
    polled = resolve;
  });
  page.on('response', (response) => {
    if (response.url().endsWith('/payment')) polls += 1;
    if (polls === 40) polled();
  });
  await payer.choose('Wallet B');
  await payer.press();
  await gaveUp;
  const { json } = await call('GET', `/v1/checkout/sessions/${session}/payment`, undefined, PUBLIC_ONE);
  const app = await page.browserContext().newPage();
  await app.goto(json.redirect_url);
  await app.$$eval('button', (all) => all.find((one: InPage) => /pay/i.test(one.textContent))?.click());
  await app.waitForFunction("location.pathname.startsWith('/checkout/')");
  await app.close();
  await page.bringToFront();
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  await payer.shown('#outcome h2', /Payment complete/);
});

it('the page title is reset if the payment is declined while it is being confirmed', async () => {
  await openCheckout({ payment_description: 'sandbox:fail_after:1000' });
  await payer.fillCard('4111111111111111');
  await payer.press();
  await payer.shown('#outcome h2', /being confirmed/);
  expect(await page.title()).toBe('Your payment is being confirmed');
  await payer.shown('#notice', /was declined/);
  expect(await page.title()).toBe('Payment · $55.75');
});

it('the page checks an open payment forty times, and after that only when the payer requests it', async () => {
  await waitBriefly();
  await openCheckout({ payment_description: 'sandbox:fail_after:60000' });
  const polls = () => payer.requests.filter(({ url }) => url.endsWith('/payment')).length;
  await payer.fillCard('4111111111111111');
  await payer.press();
  await payer.shown('#outcome button', /Check again/);
  expect(polls()).toBe(40);
  await page.click('#outcome button');
  await payer.shown('#outcome button', /Check again/);
  expect(polls()).toBe(80);
});

it('a payment page that is reopened on a slow network shows that the payment is being confirmed', async () => {
  const session = await openCheckout();
  await calls.payAsBrowser(session, { token: await calls.token(session) });
  await page.setRequestInterception(true);
  page.on('request', async (request) => {
    if (!request.url().endsWith('/payment')) return request.continue();
    await payer.shown('#outcome h2', /being confirmed/);
    return request.continue();
  });
  await page.goto(`${server.url}/checkout/${session}`);
  await payer.shown('#outcome h2', /Payment complete/);
});

it('if a call gets no response, the checkout page repeats the call with the same key', async () => {
  await page.evaluateOnNewDocument(() => {
    AbortSignal.timeout = () => {
      const clock = new AbortController();
      (globalThis as InPage).letTimePass = () => clock.abort();
      return clock.signal;
    };
  });
  await openCheckout();
  await payer.fillCard('4111111111111111');
  const keys: unknown[] = [];
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    const isPayment = request.url().endsWith('/payments');
    if (isPayment) keys.push(request.headers()['x-idempotency-key']);
    if (isPayment && keys.length === 1) void page.evaluate('letTimePass()');
    else void request.continue();
  });
  await payer.press();
  await payer.shown('#outcome h2', /Payment complete/);
  expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
});

it('a payer is not charged an amount that the shop changed while the page was open', async () => {
  const session = await openCheckout({ merchant_order_id: 'changed-amount' });
  const change = { amount: { currency: 'USD', value: 99 } };
  expect((await call('PATCH', `/v1/checkout/sessions/${session}`, change)).status).toBe(200);
  await payer.fillCard('4111111111111111');
  await payer.press();
  await payer.shown('#outcome h2', /amount has changed/);
  expect((await call('GET', '/v1/payments?merchant_order_id=changed-amount')).json).toEqual([]);
  await payer.follow('#outcome button');
  expect(await payer.textOf('#pay button')).toBe('Pay $99.00');
  await payer.fillCard('4111111111111111');
  await payer.press();
  await payer.shown('#outcome p', /Your payment of \$99\.00 is complete/);
});

it.each([
  [{ currency: 'USD', value: 99 }, '$99.00', 'responds', false],
  [{ currency: 'EUR', value: 55.75 }, '€55.75', 'responds', false],
  [{ currency: 'USD', value: 99 }, '$99.00', 'does not respond', true],
])(
  'if a replica of the previous release charges the changed amount %j, the payer sees %s (that replica %s)',
  async (changed, told, _does, isLost) => {
    const session = await openCheckout();
    const change = { amount: changed };
    expect((await call('PATCH', `/v1/checkout/sessions/${session}`, change)).status).toBe(200);
    await page.setRequestInterception(true);
    page.on('request', async (request) => {
      if (!request.url().endsWith('/payments')) return request.continue();
      const { amount, ...body } = JSON.parse(request.postData() ?? '');
      expect(amount).toEqual({ currency: 'USD', value: '55.75' });
      if (!isLost) return request.continue({ postData: JSON.stringify(body) });
      const { 'x-idempotency-key': key = '' } = request.headers();
      await calls.payAsBrowser(session, body.payment_method, key, body);
      return request.continue();
    });
    await payer.fillCard('4111111111111111');
    await payer.press();
    await payer.shown('#outcome p', /is complete/);
    expect(await payer.textOf('#outcome p')).toContain(`Your payment of ${told} is complete`);
  },
);

it('a payer with an old page that was left open sees the amount that they paid in the meantime', async () => {
  const session = await openCheckout();
  let others: Promise<void> | undefined;
  await page.setRequestInterception(true);
  page.on('request', async (request) => {
    const isAway = request.isNavigationRequest() && !request.url().includes(session);
    if (isAway) return request.respond({ status: 204 });
    if (request.url().endsWith('/payment')) {
      others ??= payAnother(session);
      await others;
    }
    return request.continue();
  });
  await payer.choose('Wallet B');
  await payer.press();
  await payer.shown('#outcome p', /Your payment of \$99\.00 is complete/);
});

it('the printed payment page has no buttons or links', async () => {
  await openCheckout();
  await page.emulateMediaType('print');
  const isShown = (selector: string) => page.$eval(selector, (one: InPage) => one.checkVisibility());
  expect([await isShown('nav'), await isShown('#pay button'), await isShown('.amount')]).toEqual([
    false,
    false,
    true,
  ]);
});
