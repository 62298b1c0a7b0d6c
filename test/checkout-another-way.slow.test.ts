import { describe, expect, it } from 'vitest';
import { PUBLIC_ONE } from './customers/calls.ts';
import { call, calls, onCheckoutPages, openCheckout, page, payer } from './support/checkout-pages.ts';
import { server } from './support/on-service.ts';

onCheckoutPages();

const WALLET = 'Wallet B';
const addressOf = (session: string) => `${server.url}/checkout/${session}`;

/** Returns the statuses of an order's payments, oldest first. */
async function statesOf(order: string): Promise<string[]> {
  const { json } = await call('GET', `/v1/payments?merchant_order_id=${order}`);
  return json.map(({ status }: { status: string }) => status).reverse();
}

/** Opens a session's page and goes to the wallet. @returns the session and the wallet's page. */
async function goToWallet(terms: object): Promise<{ session: string; wallet: string }> {
  const session = await openCheckout(terms);
  await payer.choose(WALLET);
  await Promise.all([page.waitForNavigation(), payer.press()]);
  return { session, wallet: page.url() };
}

async function payByCard(): Promise<void> {
  await payer.fillCard('4111111111111111');
  await payer.press();
  await payer.shown('#outcome h2', /Payment complete/);
}

describe('a payer who leaves the provider’s page', () => {
  it.each([
    ['a wallet', () => payer.choose(WALLET)],
    ['a 3-D Secure challenge', () => payer.fillCard('4000000000003105')],
  ])(
    'a payer who goes back from %s can pay another way, and the closed payment charges nothing',
    async (what, begin) => {
      const order = `left ${what}`.replaceAll(' ', '-');
      await openCheckout({ merchant_order_id: order, callback_url: 'https://shop.example/back' });
      await begin();
      await Promise.all([page.waitForNavigation(), payer.press()]);
      const there = page.url();
      await page.goBack();
      await payer.shown('#outcome h2', /not finished/);
      await payer.shown('#outcome button.second', /Pay another way/);
      await payer.shown('#outcome a', /Back to the shop/);
      await payer.expectAccessible();
      await payer.picture('left-open');
      await page.click('#outcome button.second');
      await payer.shown('#notice', /closed. Nothing was charged/);
      await payer.expectAccessible();
      await payer.picture('left-closed');
      await payByCard();
      expect(await statesOf(order)).toEqual(['EXPIRED', 'SUCCEEDED']);
      await page.goto(there);
      await payer.cameBack();
      await payer.shown('#outcome h2', /Payment complete/);
      expect(await statesOf(order)).toEqual(['EXPIRED', 'SUCCEEDED']);
    },
  );

  it('a payer who has paid at the wallet and then chooses another way sees that the payment is complete', async () => {
    const { session, wallet } = await goToWallet({ merchant_order_id: 'paid-after-all' });
    const id = wallet.split('/').at(-1);
    await page.goto(addressOf(session));
    await payer.shown('#outcome button.second', /Pay another way/);
    // The payer has paid at the wallet but has not come back from it.
    await fetch(`${server.url}/sandbox/checkout/${id}/pay`, { method: 'POST', redirect: 'manual' });
    await page.click('#outcome button.second');
    await payer.shown('#outcome h2', /Payment complete/);
    expect(await statesOf('paid-after-all')).toEqual(['SUCCEEDED']);
  });

  it('a payer whose payment cannot be closed is told so and cannot pay another way', async () => {
    const terms = { merchant_order_id: 'stays-open', payment_description: 'sandbox:stay_open' };
    const { session, wallet } = await goToWallet(terms);
    await page.goto(addressOf(session));
    await payer.shown('#outcome button.second', /Pay another way/);
    await page.click('#outcome button.second');
    await payer.shown('#outcome p', /cannot be closed now/);
    await payer.picture('cannot-close');
    expect(await page.$('#pay')).toBeNull();
    const other = await calls.payAsBrowser(session, {
      token: await calls.token(session).catch(() => 'none'),
    });
    expect(other.status).toBe(400);
    await page.goto(wallet);
    await payer.pressButton(/pay/i);
    await payer.cameBack();
    await payer.shown('#outcome h2', /Payment complete/);
    expect(await statesOf('stays-open')).toEqual(['SUCCEEDED']);
  });
});

it('a payer who pays at the wallet in one window and another way in a second is charged once', async () => {
  for (let i = 0; i < 5; i++) {
    const order = `two-windows-${i}`;
    const { session, wallet } = await goToWallet({ merchant_order_id: order });
    const other = await page.browserContext().newPage();
    await other.goto(addressOf(session));
    await other.waitForFunction("document.querySelector('#outcome button.second')?.checkVisibility()");
    const press = (window: typeof page, selector: string) =>
      window.$eval(selector, (button) => (button as unknown as { click(): void }).click());
    await Promise.all([press(page, 'form button'), press(other, '#outcome button.second')]);
    await other.waitForFunction(
      "!document.querySelector('#notice').hidden || document.title === 'Payment complete'",
    );
    const token = await calls.token(session).catch(() => undefined);
    if (token) await calls.payAsBrowser(session, { token });
    await other.goto(wallet);
    await other.waitForFunction("location.pathname.startsWith('/checkout/')");
    const charged = (await statesOf(order)).filter((status) => status === 'SUCCEEDED');
    expect([order, charged]).toEqual([order, ['SUCCEEDED']]);
    await other.close();
  }
});

it('a window whose payment is closed elsewhere shows the form again', async () => {
  const { session } = await goToWallet({ merchant_order_id: 'closed-elsewhere' });
  await page.goto(addressOf(session));
  await payer.shown('#outcome button.second', /Pay another way/);
  const { json } = await call('GET', `/v1/checkout/sessions/${session}/payment`, undefined, PUBLIC_ONE);
  const path = `/v1/checkout/sessions/${session}/payments/${json.id}/close`;
  const closed = await call('POST', path, undefined, PUBLIC_ONE);
  expect([closed.status, closed.json.status, closed.json.redirect_url]).toEqual([200, 'EXPIRED', '']);
  await payer.shown('#notice', /closed. Nothing was charged/);
});

it('a payer who cancels at the wallet is told that they canceled, and can pay by card', async () => {
  const { session } = await goToWallet({ merchant_order_id: 'canceled' });
  await payer.pressButton(/cancel/i);
  await payer.cameBack();
  await payer.shown('#notice', /^You canceled. Nothing was charged.$/);
  await payer.picture('canceled');
  const { json } = await call('GET', `/v1/checkout/sessions/${session}/payment`, undefined, PUBLIC_ONE);
  expect([json.status, json.response_code]).toEqual(['DECLINED', 'CANCELED_BY_PAYER']);
  await payByCard();
  expect(await statesOf('canceled')).toEqual(['DECLINED', 'SUCCEEDED']);
});
