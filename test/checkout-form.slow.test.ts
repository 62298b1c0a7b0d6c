import { describe, expect, it } from 'vitest';
import { call, calls, onCheckoutPages, openCheckout, page, payer } from './support/checkout-pages.ts';
import { server, tables } from './support/on-service.ts';
import type { InPage } from './support/payer.ts';
import { ACCOUNT_ONE } from './support/payment-requests.ts';

onCheckoutPages();

const setValue = (selector: string, value: string) =>
  page.$eval(
    selector,
    (input: InPage, text) => {
      input.value = text;
      input.dispatchEvent(new Event('input', { bubbles: true }));
    },
    value,
  );
const textIn = (selector: string) => page.$eval(selector, (input: InPage) => input.value);
/** Returns an element's property as the browser computes it. */
const drawn = (selector: string, property: string, part = '') =>
  page.$eval(
    selector,
    (one: InPage, name, pseudo) => (globalThis as InPage).getComputedStyle(one, pseudo)[name],
    property,
    part,
  );

describe('the expiry date', () => {
  it('the expiry date is accepted in every common format that a payer types', async () => {
    await openCheckout();
    const typed: Record<string, string> = {};
    for (const text of ['12/30', '12 / 30', '12-30', '12.30', '1230', '12 30', '12/2030', '122030']) {
      await setValue('#expiry', '');
      await page.type('#expiry', text);
      typed[text] = await textIn('#expiry');
      await payer.press();
      expect([text, await page.$eval('#expiry', (one: InPage) => one.ariaInvalid)]).toEqual([text, null]);
    }
    expect(new Set(Object.values(typed))).toEqual(new Set(['12 / 30', '12 / 2030']));
  });

  it('the month of the expiry date may have one digit', async () => {
    await openCheckout();
    const expected = {
      '3/30': '03 / 30',
      '330': '03 / 30',
      '1/30': '01 / 30',
      '130': '01 / 30',
      '01/30': '01 / 30',
    };
    const shown: Record<string, string> = {};
    for (const text of Object.keys(expected)) {
      await setValue('#expiry', '');
      await page.type('#expiry', text);
      shown[text] = await textIn('#expiry');
    }
    expect(shown).toEqual(expected);
  });

  it('the expiry date is accepted in the formats that browser autofill uses', async () => {
    await openCheckout();
    for (const text of ['12/30', '12/2030', '1230', '2030-12']) {
      await setValue('#expiry', text);
      await payer.press();
      expect([text, await page.$eval('#expiry', (one: InPage) => one.ariaInvalid)]).toEqual([text, null]);
    }
  });
});

it('the checkout page shows its colors in browsers without light-dark(), such as those of iOS 16', async () => {
  await page.setRequestInterception(true);
  page.on('request', async (request) => {
    if (!request.url().endsWith('.css')) return request.continue();
    const css = await (await fetch(request.url())).text();
    return request.respond({ contentType: 'text/css', body: css.replaceAll('light-dark(', 'not-known(') });
  });
  await openCheckout();
  expect(await drawn('#pay button', 'backgroundColor')).toBe('rgb(29, 79, 216)');
  expect(await drawn('#number', 'borderTopWidth')).toBe('1px');
});

it('the placeholder of the expiry date has the color of other secondary text, in light and dark mode', async () => {
  for (const value of ['light', 'dark']) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);
    await openCheckout();
    expect(await drawn('#expiry', 'color', '::placeholder')).toBe(await drawn('.safe', 'color'));
  }
});

it('an amount of millions fits on one line of a small phone', async () => {
  await page.setViewport({ width: 320, height: 700 });
  await openCheckout({ country: 'CO', amount: { currency: 'COP', value: 12345678.5 } });
  expect(await payer.textOf('.amount')).toMatch(/12,345,678\.50/);
  const lines = await page.$eval('.amount', (one: InPage) => {
    const range = one.ownerDocument.createRange();
    range.selectNodeContents(one);
    return range.getClientRects().length;
  });
  expect(lines).toBe(1);
});

it('a corrected field is no longer described as wrong to a screen reader', async () => {
  await openCheckout();
  await payer.press();
  const root = await page.$('#number');
  if (!root) throw new Error('the page has no field for the card number');
  const described = async () => (await page.accessibility.snapshot({ root }))?.description;
  expect(await described()).toBe('Check the card number.');
  await page.type('#number', '4111111111111111');
  expect(await described()).toBeUndefined();
});

describe('the security code of a new card', () => {
  const faultOf = async (number: string, code: string) => {
    await payer.fillCard(number);
    await setValue('#code-0', code);
    // With an empty holder, the page sends nothing.
    await setValue('#holder', '');
    await payer.press();
    return payer.textOf('#code-0-error');
  };

  it('the security code has four digits for American Express cards, and three for other known brands', async () => {
    await openCheckout();
    const three = 'Enter the 3 digits of the security code.';
    expect(await faultOf('378282246310005', '123')).toBe('Enter the 4 digits of the security code.');
    expect(await faultOf('378282246310005', '1234')).toBe('');
    for (const number of ['4111111111111111', '5555555555554444', '30569309025904', '3530111333300000']) {
      expect([number, await faultOf(number, '1234')]).toEqual([number, three]);
      expect([number, await faultOf(number, '123')]).toEqual([number, '']);
    }
  });

  it('the security code may have three or four digits for cards of unknown brands', async () => {
    await openCheckout();
    for (const number of ['9999999999999995', '6759649826438453', '6200000000000005']) {
      expect([number, await faultOf(number, '123'), await faultOf(number, '1234')]).toEqual([number, '', '']);
      expect(await faultOf(number, '12')).toBe('Enter the 3 or 4 digits of the security code.');
    }
  });
});

it('the security code of a stored card must have the length of its brand’s codes', async () => {
  const customer_id = await calls.customer();
  const card_data = {
    number: '378282246310005',
    expiration_month: 12,
    expiration_year: 30,
    holder_name: 'ANA',
  };
  expect((await call('POST', `/v1/customers/${customer_id}/payment-methods`, { card_data })).status).toBe(
    201,
  );
  const session = await openCheckout({ customer_id });
  expect(await payer.textOf('.choice')).toBe('AMERICAN EXPRESS ****0005');
  for (const [language, text] of [
    ['en', 'Enter the 4 digits of the security code.'],
    ['es', 'Escribe los 4 dígitos del código de seguridad.'],
    ['pt', 'Informe os 4 dígitos do código de segurança.'],
  ]) {
    await page.goto(`${server.url}/checkout/${session}?lang=${language}`);
    await page.type('#code-0', '123');
    await payer.press();
    expect(await payer.textOf('#code-0-error')).toBe(text);
  }
  await page.type('#code-0', '4');
  await payer.press();
  await payer.shown('#outcome h2', /Pagamento concluído/);
});

it('the checkout page shows the merchant’s display name, if any, in the payer’s language', async () => {
  const name = 'Café & Söhne </title><b>';
  const setName = 'UPDATE account SET display_name = $1 WHERE id = $2';
  await tables.query(setName, [name, ACCOUNT_ONE]);
  const session = await openCheckout();
  expect([await page.title(), await payer.textOf('.payee')]).toEqual([
    `Payment to ${name} · $55.75`,
    `Payment to ${name}`,
  ]);
  expect(await payer.textOf('h1')).toBe('Two tickets');
  await payer.expectAccessible();
  await payer.picture('0-payee');
  for (const [language, text] of [
    ['es', `Pago a ${name}`],
    ['pt', `Pagamento a ${name}`],
  ]) {
    await page.goto(`${server.url}/checkout/${session}?lang=${language}`);
    expect(await payer.textOf('.payee')).toBe(text);
  }
  await tables.query(setName, ['x'.repeat(100), ACCOUNT_ONE]);
  await page.setViewport({ width: 320, height: 700 });
  await page.goto(`${server.url}/checkout/${session}`);
  expect(await page.$eval('html', (html: InPage) => html.scrollWidth)).toBe(320);
  await payer.picture('0-payee-long');
  await tables.query(setName, ['', ACCOUNT_ONE]);
  await page.goto(`${server.url}/checkout/${session}`);
  expect([await page.title(), await page.$('.payee')]).toEqual(['Payment · $55.75', null]);
});
