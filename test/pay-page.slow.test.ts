import { describe, expect, it } from 'vitest';
import { ONE } from './customers/calls.ts';
import { call, onCheckoutPages, page, payer } from './support/checkout-pages.ts';
import { server } from './support/on-service.ts';
import type { InPage } from './support/payer.ts';
import { ACCOUNT_ONE } from './support/payment-requests.ts';

onCheckoutPages();

const PAYER = {
  ...{ first_name: 'Ana', last_name: 'Gómez', email: 'ana@example.com' },
  document: { document_type: 'CPF', document_number: '39053344705' },
  billing_address: {
    ...{ address_line_1: 'Rua A 1', city: 'São Paulo', state: 'SP' },
    ...{ zip_code: '01310-100', country: 'BR' },
  },
};
const COUNTRIES = { BRL: 'BR', MXN: 'MX', COP: 'CO' } as const;

type Shown = { readonly id: string; readonly text: string; readonly document: string };

/** Makes a payment, and opens its page. */
async function pay(
  type: string,
  currency: keyof typeof COUNTRIES,
  { description = 'Two tickets', query = '' }: { description?: string; query?: string } = {},
): Promise<Shown> {
  const key = { ...ONE, 'x-idempotency-key': `pay-page-${type}-${description}-${query}-${Math.random()}` };
  const body = {
    ...{ account_id: ACCOUNT_ONE, merchant_order_id: '7', description, country: COUNTRIES[currency] },
    ...{ amount: { currency, value: 52 }, customer_payer: PAYER, callback_url: 'https://shop.example/done' },
    payment_method: { type },
  };
  const { status, json } = await call('POST', '/v1/payments', body, key);
  expect(status).toBe(201);
  const detail = json.payment_method.payment_method_detail;
  const group = detail.bank_transfer ?? detail.ticket;
  expect(group.redirect_url).toBe(`${server.url}/v1/payments/${json.id}/pay`);
  await page.goto(`${group.redirect_url}${query}`);
  return {
    id: json.id,
    text: group.payment_instruction ?? group.provider_number ?? group.bank_account,
    document: group.document_url,
  };
}

const hasNoSidewaysScroll = () =>
  page.evaluate(
    () => (globalThis as InPage).document.documentElement.scrollWidth <= (globalThis as InPage).innerWidth,
  );
/** Pays on the simulated provider's page. */
const payThere = (document: string) => fetch(`${document}/pay`, { method: 'POST', redirect: 'manual' });

describe('the page on which a payer pays a code', () => {
  it('the pay page shows a Pix code to scan and to copy, until when, and that it was paid', async () => {
    await page.setViewport({ width: 390, height: 900 });
    const { text, document } = await pay('PIX', 'BRL', { query: '?lang=en' });
    expect(await payer.textOf('h1')).toBe('Two tickets');
    expect(await payer.textOf('.amount')).toBe('R$52.00');
    expect(await payer.textOf('#value-0')).toBe(text);
    expect(await payer.textOf('.until time')).toMatch(/^Pay until .* \(Brasilia Standard Time\)$/);
    expect(await page.$eval('.qr svg', (svg: InPage) => svg.getBoundingClientRect().width > 200)).toBe(true);
    await payer.expectAccessible();
    await payer.picture('pay-1-pix');
    expect(await hasNoSidewaysScroll()).toBe(true);
    await page.click('.copy');
    await payer.shown('.copy', /^Copied$/);
    await payThere(document);
    await payer.shown('h2', /^Payment complete$/);
    expect(await page.$('#value-0')).toBeNull();
    expect(await page.$eval('.back a', (link: InPage) => link.href)).toMatch(
      /^https:\/\/shop\.example\/done\?payment_id=[0-9a-f-]{36}&status=SUCCEEDED$/,
    );
    await payer.expectAccessible();
    await payer.picture('pay-2-paid');
  });

  it.each([
    ['BOLETO', 'BRL', 'pt', /^Pague até /, '.bars svg'],
    ['OXXO', 'MXN', 'es', /^Paga hasta el /, '.bars svg'],
    ['SPEI', 'MXN', 'de', /^Bezahlen Sie bis /, '.values'],
    ['EFECTY', 'COP', 'fr', /^Payez avant le /, '.values'],
    ['PIX', 'BRL', 'it', /^Paga entro /, '.qr svg'],
  ] as const)(
    'the pay page shows how to pay %s in %s, in the language %s',
    async (type, currency, lang, until, shows) => {
      await page.setViewport({ width: 1280, height: 900 });
      const { text } = await pay(type, currency, { query: `?lang=${lang}` });
      expect(await page.$eval('html', (root: InPage) => root.lang)).toBe(lang);
      expect(await payer.textOf('.until time')).toMatch(until);
      expect(await page.$(shows)).not.toBeNull();
      expect(await payer.textOf('.values')).toContain(text);
      await payer.expectAccessible();
      expect(await hasNoSidewaysScroll()).toBe(true);
      await payer.picture(`pay-3-${type}`);
    },
  );

  it('the pay page is in the country’s language for a browser that asks for none of ours, and prints on one page', async () => {
    await page.setExtraHTTPHeaders({ 'accept-language': 'ja' });
    await pay('BOLETO', 'BRL');
    expect(await page.$eval('html', (root: InPage) => root.lang)).toBe('pt');
    const pdf = Buffer.from(await page.pdf({ format: 'A4' })).toString('latin1');
    expect(pdf.match(/\/Type\s*\/Page\b/g)).toHaveLength(1);
  });

  it('without JavaScript, the pay page shows the code, loads itself again, and shows the end', async () => {
    await page.setJavaScriptEnabled(false);
    const { document } = await pay('PIX', 'BRL', { query: '?lang=en' });
    await payer.picture('pay-4-no-script');
    expect(await page.$eval('noscript', (one: InPage) => one.innerHTML)).toContain('http-equiv="refresh"');
    expect(await page.$eval('.copy', (button: InPage) => button.hidden)).toBe(true);
    await payThere(document);
    await expect
      .poll(async () => {
        await page.reload();
        return payer.textOf('h2');
      })
      .toBe('Payment complete');
  });

  it('the pay page hides a code that has expired or was canceled, and shows money that is not enough', async () => {
    await pay('PIX', 'BRL', { description: 'sandbox:expire_after:1500', query: '?lang=en' });
    await payer.shown('h2', /^The time to pay is over$/);
    expect(await page.$('.qr')).toBeNull();
    const { id } = await pay('PIX', 'BRL', { query: '?lang=en' });
    await call(
      'POST',
      `/v1/payments/${id}/cancel`,
      { description: 'no' },
      { ...ONE, 'x-idempotency-key': `cancel-${id}` },
    );
    await payer.shown('h2', /^This payment was canceled$/);
    await pay('SPEI', 'MXN', { description: 'sandbox:underpaid', query: '?lang=en' });
    await expect
      .poll(
        async () => {
          await page.reload();
          return (await page.$('.received')) === null;
        },
        { timeout: 15_000 },
      )
      .toBe(false);
    expect(await payer.textOf('.received')).toContain('26.00 has arrived so far');
    await payer.picture('pay-5-part');
  });

  it('the pay page can be used with the keyboard alone', async () => {
    await pay('SPEI', 'MXN', { query: '?lang=en' });
    const focused = async () => {
      await page.keyboard.press('Tab');
      return page.evaluate(() => (globalThis as InPage).document.activeElement?.textContent ?? '');
    };
    const seen: string[] = [];
    for (let presses = 0; presses < 12; presses++) seen.push(await focused());
    expect(seen).toContain('Copy');
    expect(seen).toContain('Back to the shop');
    expect(seen).toContain('Deutsch');
  });

  it('nobody keeps, indexes or frames the pay page, and other payments have none', async () => {
    const { id } = await pay('PIX', 'BRL');
    const { headers } = await fetch(`${server.url}/v1/payments/${id}/pay`);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-robots-tag')).toBe('noindex, nofollow');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    const image = await fetch(`${server.url}/v1/payments/${id}/pay/qr.svg`);
    expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/svg+xml']);
    for (const unknown of ['x', '01a22187-bb8e-7c80-9839-67829e111111']) {
      for (const path of ['', '/status', '/qr.svg'])
        expect((await fetch(`${server.url}/v1/payments/${unknown}/pay${path}`)).status).toBe(404);
    }
  });
});
