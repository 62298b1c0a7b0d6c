import { describe, expect, it } from 'vitest';
import { createDemoShop } from '#examples/demo-shop/demo-shop.ts';
import { call, onCheckoutPages, openCheckout, page, payer } from './support/checkout-pages.ts';
import { server } from './support/on-service.ts';
import type { InPage } from './support/payer.ts';
import { ACCOUNT_ONE } from './support/payment-requests.ts';

onCheckoutPages();

const BRAZIL = { country: 'BR', amount: { currency: 'BRL', value: 349.9 } };
const MEXICO = { country: 'MX', amount: { currency: 'MXN', value: 350 } };
const COLOMBIA = { country: 'CO', amount: { currency: 'COP', value: 90_000 } };

/** Fills the visible fields of the chosen method, by the last parts of their paths. */
async function fill(values: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(values)) {
    const [input] = await page.$$(`.panel:not([hidden]) [id$=-${name}]`);
    const tag = await input?.evaluate((one: InPage) => one.tagName);
    if (tag === 'SELECT') await input?.select(value);
    else await input?.type(value);
  }
}

const widths = () => page.$eval('html', (html: InPage) => html.scrollWidth);
const onPayPage = () => page.waitForFunction('/^\\/v1\\/payments\\/[^/]+\\/pay$/.test(location.pathname)');
const paymentId = () => new URL(page.url()).pathname.split('/')[3] ?? '';

const ADDRESS = {
  ...{ first_name: 'Ana', last_name: 'Gómez', document_type: 'CPF', document_number: '39053344705' },
  ...{ address_line_1: 'Rua A 1', city: 'São Paulo', state: 'SP', zip_code: '01310-100' },
};

describe('local methods on the checkout page', () => {
  it('a payer of Pix gets the page with the code, in the language that they chose', async () => {
    const session = await openCheckout(BRAZIL);
    await page.goto(`${server.url}/checkout/${session}?lang=pt`);
    await payer.choose('Pix');
    await payer.expectAccessible();
    await payer.picture('local-1-pix');
    await payer.press();
    await onPayPage();
    expect(await page.$eval('html', (html: InPage) => html.lang)).toBe('pt');
    expect(await page.$('.qr svg')).not.toBeNull();
    const { json } = await call('GET', `/v1/payments/${paymentId()}`);
    expect([json.status, json.checkout.session]).toEqual(['READY_TO_PAY', session]);
  });

  it('a payer of a boleto enters what it needs, and is told which fields are empty', async () => {
    await page.setViewport({ width: 390, height: 844 });
    await openCheckout(BRAZIL);
    await payer.choose('Boleto');
    await payer.press();
    await payer.shown('.panel:not([hidden]) .error', /Please fill in this field/);
    expect(await widths()).toBe(390);
    await payer.expectAccessible();
    await payer.picture('local-2-boleto-empty');
    await fill(ADDRESS);
    await payer.picture('local-3-boleto-filled');
    await payer.press();
    await onPayPage();
    expect(await page.$('.bars svg')).not.toBeNull();
    await payer.picture('local-4-boleto');
    const { json } = await call('GET', `/v1/payments/${paymentId()}`);
    expect(json.customer_payer).toMatchObject({
      first_name: 'Ana',
      document: { document_type: 'CPF', document_number: '39053344705' },
      billing_address: { city: 'São Paulo' },
    });
  });

  it('a field that the service refuses is marked, and nothing is made', async () => {
    await openCheckout(MEXICO);
    await payer.choose('OXXO');
    await fill({ first_name: 'Ana', last_name: 'Gómez', email: 'no-address' });
    await payer.press();
    await payer.shown('.panel:not([hidden]) .error:not([hidden])', /Please check this field/);
    await payer.expectAccessible();
  });

  it('the page says before it makes a code that it cannot be canceled, and afterwards why no other way is left', async () => {
    const session = await openCheckout(MEXICO);
    await payer.choose('SPEI');
    expect(await page.$('.panel:not([hidden]) .caution')).toBeNull();
    await payer.choose('OXXO');
    expect(await payer.textOf('.panel:not([hidden]) .caution')).toMatch(/cannot be canceled/);
    await payer.expectAccessible();
    await payer.picture('local-5-oxxo');
    await fill({ first_name: 'Ana', last_name: 'Gómez', email: 'ana@example.com' });
    await payer.press();
    await onPayPage();
    await page.goto(`${server.url}/checkout/${session}`);
    await payer.shown('#outcome h2', /not finished/);
    await page.click('#outcome .second');
    await payer.shown('#outcome p', /cannot be closed now, and you must not pay twice/);
    await payer.expectAccessible();
  });

  it('a payer who chooses another way has the first code closed at its provider, and pays with another', async () => {
    const session = await openCheckout(BRAZIL);
    await payer.choose('Pix');
    await payer.press();
    await onPayPage();
    const first = paymentId();
    await page.goto(`${server.url}/checkout/${session}`);
    await payer.shown('#outcome h2', /not finished/);
    await payer.picture('local-6-not-finished');
    await page.click('#outcome .second');
    await payer.shown('#pay', /Pay with/);
    expect((await call('GET', `/v1/payments/${first}`)).json.status).toBe('EXPIRED');
    await payer.choose('Pix');
    await payer.press();
    await onPayPage();
    expect(paymentId()).not.toBe(first);
  });

  it('a payer of PSE chooses a bank, and goes to its page', async () => {
    await page.setViewport({ width: 390, height: 844 });
    const session = await openCheckout(COLOMBIA);
    await payer.choose('PSE');
    await payer.picture('local-7-pse');
    await payer.expectAccessible();
    const needs = { bank_id: '1901', first_name: 'Ana', last_name: 'Gómez', email: 'ana@example.com' };
    await fill({ ...needs, document_type: 'CC', document_number: '52123456', number: '3001234567' });
    await Promise.all([page.waitForNavigation(), payer.press()]);
    await payer.picture('local-8-bank');
    expect(page.url()).not.toContain('/checkout/');
    const { json } = await call('GET', `/v1/payments?merchant_order_id=order-77`);
    const made = json.find((one: { checkout: { session: string } }) => one.checkout.session === session);
    expect(made.customer_payer.ip_address).toMatch(/^[0-9a-f.:]+$/);
    expect(made.payment_method.payment_method_detail.bank_transfer.bank_id).toBe('1901');
  });

  it.each(['es', 'de', 'pt'])(
    'the fields are in the payer’s language, on a phone and a desktop: %s',
    async (lang) => {
      const session = await openCheckout(COLOMBIA);
      for (const width of [390, 1280]) {
        await page.setViewport({ width, height: 900 });
        await page.goto(`${server.url}/checkout/${session}?lang=${lang}`);
        await payer.choose('PSE');
        expect(await widths()).toBe(width);
        await payer.expectAccessible();
        await payer.picture(`local-9-${lang}-${width}`);
      }
    },
  );
});

it('the demo shop sells with Pix: the payer pays the code at the simulated bank, and returns to the shop', async () => {
  const keys = { accountId: ACCOUNT_ONE, publicKey: 'pk_sandbox_one', secretKey: 'sk_sandbox_one' };
  const demo = createDemoShop({ service: server.url, ...keys });
  await page.goto(await demo.listen({ host: '127.0.0.1', port: 0 }));
  await page.select('select', 'BR');
  await payer.follow('button');
  await payer.choose('Pix');
  await payer.press();
  await onPayPage();
  await payer.picture('demo-1-pix');
  const payPage = page.url();
  await payer.follow('.back a');
  expect(await payer.textOf('h1')).toBe('Your order awaits your payment');
  await page.goto(payPage);
  await payer.follow('main a.button.second');
  await payer.picture('demo-2-bank');
  await payer.pressButton(/^pay/i);
  await page.goto(payPage);
  await payer.shown('main h2', /Payment complete/);
  await payer.picture('demo-3-paid');
  await payer.follow('.back a');
  expect(await payer.textOf('h1')).toBe('Thank you for your order');
  await demo.close();
});
