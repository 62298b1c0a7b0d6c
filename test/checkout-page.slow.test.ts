import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDemoShop } from '#examples/demo-shop/demo-shop.ts';
import { UNKNOWN } from './customers/calls.ts';
import { call, calls, onCheckoutPages, openCheckout, page, payer } from './support/checkout-pages.ts';
import { server, tables } from './support/on-service.ts';
import type { InPage } from './support/payer.ts';
import { ACCOUNT_ONE } from './support/payment-requests.ts';
import { type Site, startSite } from './support/site.ts';

const APPROVED = '4111111111111111';

/** The merchant's shop, to which payers return. */
let shop: Site;

onCheckoutPages();
beforeAll(async () => {
  shop = await startSite();
});
afterAll(() => shop?.close());

const addressOf = (session: string, query = '') => `${server.url}/checkout/${session}${query}`;

const open = (terms: object = {}) => openCheckout({ callback_url: `${shop.url}/done?order=7`, ...terms });

/** Returns the payments of an order, as the merchant lists them. */
async function paymentsOf(order: string): Promise<{ readonly status: string }[]> {
  return (await call('GET', `/v1/payments?merchant_order_id=${order}`)).json;
}

describe('the checkout page', () => {
  it('the checkout page accepts a card, shows its brand while the payer types, and confirms the payment', async () => {
    const session = await open();
    expect(await payer.textOf('h1')).toBe('Two tickets');
    expect(await payer.textOf('.amount')).toBe('$55.75');
    await payer.expectAccessible();
    await payer.picture('1-form');
    await page.type('#number', '37828');
    expect(await payer.textOf('#brand')).toBe('American Express');
    await payer.fillCard(APPROVED);
    expect(await payer.textOf('#brand')).toBe('Visa');
    const values = await page.$$eval('#number, #expiry', (all) => all.map((one: InPage) => one.value));
    expect(values).toEqual(['4111 1111 1111 1111', '12 / 30']);
    await page.select('#installments-0', '3');
    await payer.picture('2-filled');
    await payer.press();
    await payer.shown('#outcome h2', /Payment complete/);
    await payer.expectAccessible();
    await payer.picture('3-paid');
    await payer.follow('#outcome a');
    const back = new URL(page.url());
    const told = [back.origin, back.searchParams.get('order'), back.searchParams.get('status')];
    expect(told).toEqual([shop.url, '7', 'SUCCEEDED']);
    const { json } = await call('GET', `/v1/payments/${back.searchParams.get('payment_id')}`);
    expect([json.status, json.checkout.session, json.workflow]).toEqual([
      'SUCCEEDED',
      session,
      'SDK_CHECKOUT',
    ]);
    expect(json.payment_method.payment_method_detail.card.installments).toBe(3);

    await page.goto(addressOf(session));
    await payer.shown('#outcome h2', /Payment complete/);
    expect(await page.$('#pay')).toBeNull();
  });

  it('the checkout page shows the error of each field, and sends nothing', async () => {
    await open();
    await payer.press();
    await payer.shown('#number-error', /Check the card number/);
    const wrong = await page.$$eval('[aria-invalid]', (all) => all.map(({ id }) => id));
    expect(wrong).toEqual(['number', 'expiry', 'code-0', 'holder']);
    expect(await page.evaluate('document.activeElement.id')).toBe('number');
    await payer.expectAccessible();
    await payer.picture('4-faults');
    expect(payer.requests.filter(({ body }) => body !== '')).toEqual([]);
  });

  it('the checkout page reports a declined card and accepts another', async () => {
    await open({ merchant_order_id: 'declined-then-paid' });
    await payer.fillCard('4000000000009995');
    await payer.press();
    await payer.shown('#notice', /insufficient funds/);
    await payer.expectAccessible();
    await payer.picture('5-declined');
    await payer.fillCard(APPROVED);
    await payer.press();
    await payer.shown('#outcome h2', /Payment complete/);
    const statuses = (await paymentsOf('declined-then-paid')).map(({ status }) => status);
    expect(statuses.sort()).toEqual(['DECLINED', 'SUCCEEDED']);
  });

  it('the checkout page sends a cardholder to 3-D Secure and shows the outcome on return', async () => {
    await open();
    await payer.fillCard('4000000000003105');
    await Promise.all([page.waitForNavigation(), payer.press()]);
    await payer.pressButton(/yes, it is me/i);
    await payer.cameBack();
    await payer.shown('#outcome h2', /Payment complete/);
    await payer.follow('#outcome a');
    expect(new URL(page.url()).searchParams.get('status')).toBe('SUCCEEDED');
  });

  it('the checkout page sends a payer to a wallet, and offers other ways if they decline there', async () => {
    const session = await open({ merchant_order_id: 'wallet-then-card' });
    await payer.choose('Wallet B');
    expect(await payer.textOf('#pay button')).toBe('Continue to Wallet B');
    await payer.expectAccessible();
    await payer.picture('6-wallet');
    await Promise.all([page.waitForNavigation(), payer.press()]);
    const there = page.url();
    await page.goto(addressOf(session));
    await payer.shown('#outcome h2', /not finished/);
    await payer.expectAccessible();
    await payer.picture('7-open');
    await page.goto(there);
    await payer.pressButton(/decline/i);
    await payer.cameBack();
    await payer.shown('#notice', /declined/);
    expect(page.url()).toBe(addressOf(session));
    await payer.choose('Wallet B');
    await Promise.all([page.waitForNavigation(), payer.press()]);
    await payer.pressButton(/pay/i);
    await payer.cameBack();
    await payer.shown('#outcome h2', /Payment complete/);
    const statuses = (await paymentsOf('wallet-then-card')).map(({ status }) => status);
    expect(statuses.sort()).toEqual(['DECLINED', 'SUCCEEDED']);
  });

  it('the checkout page charges once if the button is pressed twice', async () => {
    await open({ merchant_order_id: 'pressed-twice' });
    await payer.fillCard(APPROVED);
    await page.$eval('#pay button', (button: InPage) => {
      button.click();
      button.click();
    });
    await payer.press().catch(() => {});
    await payer.shown('#outcome h2', /Payment complete/);
    expect(payer.requests.filter(({ url }) => url.endsWith('/payments'))).toHaveLength(1);
    expect(await paymentsOf('pressed-twice')).toHaveLength(1);
  });

  it('if a response is lost, the checkout page repeats the call with the same key, and charges once', async () => {
    await open({ merchant_order_id: 'lost-response' });
    await payer.fillCard(APPROVED);
    const keys: unknown[] = [];
    await page.setRequestInterception(true);
    page.on('request', async (request) => {
      if (!request.url().endsWith('/payments')) return request.continue();
      keys.push(request.headers()['x-idempotency-key']);
      if (keys.length > 1) return request.continue();
      // The service receives the call and makes the payment, but the browser gets no response.
      const headers = request.headers();
      await fetch(request.url(), { method: 'POST', headers, body: request.postData() ?? '' });
      return request.abort('connectionreset');
    });
    await payer.press();
    await payer.shown('#outcome h2', /Payment complete/);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(await paymentsOf('lost-response')).toHaveLength(1);
  });

  it('the checkout page has the card number only in its field and sends it only in the tokenization call', async () => {
    const session = await open({ customer_id: await calls.customer() });
    await payer.fillCard('4000000000009995');
    await payer.press();
    await payer.shown('#notice', /insufficient funds/);
    await payer.fillCard(APPROVED);
    await payer.press();
    await payer.shown('#outcome h2', /Payment complete/);
    const kept = await page.evaluate(
      '[document.documentElement.outerHTML, document.cookie, location.href, JSON.stringify({ ...localStorage, ...sessionStorage })].join()',
    );
    const values = await page.$$eval('input', (all) => all.map((one: InPage) => one.value).join());
    const others = payer.requests.filter(({ url }) => !url.endsWith(`/${session}/token`));
    const said = [kept, values, others.map(({ url, body }) => url + body), server.logLines].join('\n');
    for (const number of ['4000000000009995', APPROVED]) {
      expect(said.replaceAll(' ', '')).not.toContain(number);
      expect(payer.requests.filter(({ body }) => body.includes(number))).toHaveLength(1);
    }
    // The page sends requests to no other origin.
    expect([...new Set(payer.requests.map(({ url }) => new URL(url).origin))]).toEqual([server.url]);
  });

  it.each([
    ['de-AT, en;q=0.5', 'DE', 'de', 'Zahlen mit', /^55,75\s€ zahlen$/],
    ['fr-FR, en;q=0.5', 'FR', 'fr', 'Payer avec', /^Payer 55,75\s€$/],
    ['it, en;q=0.5', 'IT', 'it', 'Paga con', /^Paga 55,75\s€$/],
  ])(
    'the checkout page is shown in the language of each sandbox country on a small screen: %s',
    async (accepted, country, language, legend, pay) => {
      const session = await calls.openSession({ country, amount: { currency: 'EUR', value: 55.75 } });
      await page.setExtraHTTPHeaders({ 'accept-language': accepted });
      await page.setViewport({ width: 320, height: 700 });
      await page.goto(addressOf(session));
      expect([await payer.textOf('legend'), await payer.textOf('#pay button')]).toEqual([
        legend,
        expect.stringMatching(pay),
      ]);
      await payer.press();
      expect(await page.$eval('html', (html: InPage) => [html.lang, html.scrollWidth])).toEqual([
        language,
        320,
      ]);
      await payer.expectAccessible();
      await payer.picture(`9-${language}`);
      const dead = await fetch(addressOf(UNKNOWN, `?lang=${language}`));
      expect([dead.status, dead.headers.get('content-language')]).toEqual([404, language]);
    },
  );

  it('the checkout page is available in Spanish and Portuguese, even on a small screen in dark mode', async () => {
    const session = await calls.openSession({ country: 'BR', amount: { currency: 'BRL', value: 1234.5 } });
    await page.setExtraHTTPHeaders({ 'accept-language': 'nl, es-MX;q=0.9, en;q=0.1' });
    await page.goto(addressOf(session));
    expect(await payer.textOf('legend')).toBe('Pagar con');
    await page.setViewport({ width: 320, height: 700 });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
    await page.goto(addressOf(session, '?lang=pt'));
    expect(await payer.textOf('#pay button')).toMatch(/^Pagar R\$\s1\.234,50$/);
    expect(await page.$eval('html', (html: InPage) => [html.lang, html.scrollWidth])).toEqual(['pt', 320]);
    await payer.expectAccessible();
    await payer.picture('8-portuguese-dark');
  });

  it('the checkout page keeps the language that the payer chose when they return from a wallet', async () => {
    await page.goto(addressOf(await calls.openSession(), '?lang=pt'));
    await payer.choose('Wallet B');
    await Promise.all([page.waitForNavigation(), payer.press()]);
    await payer.pressButton(/pay/i);
    await payer.cameBack();
    await payer.shown('#outcome h2', /Pagamento concluído/);
  });

  it('the checkout page says that a session has expired or is unknown', async () => {
    const session = await calls.openSession({ callback_url: shop.url });
    await tables.query("UPDATE checkout_session SET expires_at = now() - interval '1 s' WHERE id = $1", [
      session,
    ]);
    const expired = await page.goto(addressOf(session));
    expect([expired?.status(), await payer.textOf('h1')]).toEqual([410, 'This payment page has expired']);
    await payer.expectAccessible();
    await payer.picture('9-expired');
    await payer.follow('main a');
    expect(page.url()).toBe(`${shop.url}/`);
    // The last ID is that of the sandbox's fixture, a session without an amount.
    for (const unknown of [UNKNOWN, 'nothing', '%3Cscript%3E', '5e550000-0000-4000-8000-000000000001']) {
      const response = await page.goto(addressOf(unknown));
      expect([response?.status(), await payer.textOf('h1')]).toEqual([404, 'There is no such payment']);
    }
  });

  it('the checkout page says that the session was paid elsewhere in the meantime', async () => {
    const session = await open();
    await payer.fillCard(APPROVED);
    expect((await calls.payAsBrowser(session, { token: await calls.token(session) })).status).toBe(201);
    await payer.press();
    await payer.shown('#outcome h2', /Payment complete/);
  });

  it('the checkout page shows markup in a merchant’s texts as plain text', async () => {
    const description = '</script><script>document.title = 1</script><b>כרטיס 🎟️</b>';
    await open({ payment_description: description, merchant_order_id: '"><i>' });
    expect(await payer.textOf('h1')).toBe(description);
    expect(await page.title()).toBe('Payment · $55.75');
  });

  it('the checkout page’s headers allow only the service’s own scripts and styles, and no framing', async () => {
    const { headers } = await fetch(addressOf(await calls.openSession()));
    const policy = headers.get('content-security-policy');
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(headers.get('cache-control')).toBe('no-store');
  });
});

it('the demo shop sends a payer to the checkout page and shows what they paid on return', async () => {
  const keys = { accountId: ACCOUNT_ONE, publicKey: 'pk_sandbox_one', secretKey: 'sk_sandbox_one' };
  const demo = createDemoShop({ service: server.url, ...keys });
  const address = await demo.listen({ host: '127.0.0.1', port: 0 });
  for (const country of ['US', 'BR']) {
    await page.goto(address);
    await payer.picture('a-shop');
    await page.select('select', country);
    await payer.follow('button');
    await payer.shown('h1', /1 × Coffee beans, 1 kg, 1 × Stoneware cup/);
    await payer.fillCard(APPROVED);
    await payer.picture('b-shop-checkout');
    await payer.press();
    await payer.shown('#outcome h2', /Payment complete/);
    await payer.follow('#outcome a');
    await payer.picture('c-shop-thanks');
    expect(await payer.textOf('h1')).toBe('Thank you for your order');
    const total = country === 'US' ? '42.50 USD' : '212.50 BRL';
    expect(await payer.textOf('p')).toMatch(new RegExp(`^Order demo-.*: ${total}, SUCCEEDED/APPROVED\\.$`));
  }
  await demo.close();
});
