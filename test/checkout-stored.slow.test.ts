import { beforeEach, describe, expect, it } from 'vitest';
import { restCalls } from './customers/calls.ts';
import { checkoutCalls } from './customers/checkout.ts';
import { call, calls, onCheckoutPages, openCheckout, page, payer } from './support/checkout-pages.ts';
import { server, tables } from './support/on-service.ts';
import type { InPage } from './support/payer.ts';
import { startTestServer } from './support/server.ts';

const CARD = '4539578763621486';
const OTHER = '5555555555554444';

onCheckoutPages();

let customer: string;
beforeEach(async () => {
  customer = await calls.customer();
});

const methods = async () =>
  (await call('GET', `/v1/customers/${customer}/payment-methods`)).json.payment_methods;
const enroll = async (number: string): Promise<string> => {
  const card_data = { number, expiration_month: 12, expiration_year: 30, holder_name: 'ANA GOMEZ' };
  return (await call('POST', `/v1/customers/${customer}/payment-methods`, { card_data })).json.id;
};

const open = (terms: object = {}) => openCheckout({ customer_id: customer, ...terms });

const choices = () => page.$$eval('.choice', (all: InPage) => all.map((one: InPage) => one.textContent));

/** Returns the last payment of a session, as the merchant reads it. */
async function paid(session: string): Promise<InPage> {
  const { id } = (await call('GET', `/v1/checkout/sessions/${session}/payment`)).json;
  return (await call('GET', `/v1/payments/${id}`)).json;
}

describe('the checkout page of a customer', () => {
  it('the checkout page saves a card if the payer chooses to, offers it the next time, and pays with it', async () => {
    await open();
    expect((await choices())[0]).toBe('Card');
    await payer.fillCard(CARD);
    await page.click('#save');
    await payer.expectAccessible();
    await payer.picture('10-save');
    await payer.press();
    await payer.shown('#outcome h2', /Payment complete/);
    const [saved] = await methods();
    expect(saved.name).toBe('VISA ****1486');

    const session = await open();
    expect((await choices()).slice(0, 2)).toEqual(['VISA ****1486', 'Card']);
    await payer.expectAccessible();
    await payer.picture('11-stored');
    await payer.press();
    await payer.shown('#code-0-error', /security code/);
    await page.type('#code-0', '123');
    await page.select('#installments-0', '3');
    await payer.press();
    await payer.shown('#outcome h2', /Payment complete/);
    await payer.picture('12-stored-paid');
    const { payment_method } = await paid(session);
    expect(payment_method.vaulted_token).toBe(saved.id);
    const { card } = payment_method.payment_method_detail;
    expect([card.installments, card.card_data.security_code_length, card.card_data.lfd]).toEqual([
      3,
      0,
      '1486',
    ]);
    const [used] = await methods();
    expect(Date.parse(used.last_successfully_used_at)).toBeGreaterThan(
      Date.parse(saved.last_successfully_used_at),
    );
    const said = [server.logLines, payer.requests.filter(({ url }) => !url.endsWith('/token'))];
    expect(JSON.stringify(said)).not.toContain(CARD);
  });

  it('the checkout page saves a card only if the payer chooses to and the session has a customer', async () => {
    await open();
    await payer.fillCard(CARD);
    await payer.press();
    await payer.shown('#outcome h2', /Payment complete/);
    expect(await methods()).toEqual([]);
    await open({ customer_id: null });
    expect(await page.$('#save')).toBeNull();
  });

  it('the checkout page accepts another card after a stored one is declined', async () => {
    await enroll('4000000000009995');
    await open();
    await page.type('#code-0', '123');
    await payer.press();
    await payer.shown('#notice', /insufficient funds/);
    await payer.choose('Card');
    const values = { number: OTHER, expiry: '1230', 'code-1': '123', holder: 'ANA GOMEZ' };
    for (const [id, text] of Object.entries(values)) await page.type(`#${id}`, text);
    await payer.press();
    await payer.shown('#outcome h2', /Payment complete/);
  });

  it('the checkout page pays with an enrolled wallet without leaving the page', async () => {
    const path = `/v1/customers/${customer}/payment-methods`;
    const made = await call('POST', path, { type: 'WALLET_C_ENROLLMENT', country: 'CO' });
    await fetch(`${made.json.redirect_url}/pay`, { method: 'POST', redirect: 'manual' });
    await fetch(`${server.url}/v1/enrollments/${made.json.id}/return`);
    const amount = { currency: 'COP', value: 9000 };
    const session = await open({ country: 'CO', amount, payment_description: 'sandbox:done_after:1' });
    expect((await choices())[0]).toBe('Wallet C Enrollment');
    expect(await payer.textOf('#pay button')).toMatch(/^Pay COP/);
    await payer.expectAccessible();
    await payer.picture('13-stored-wallet');
    await payer.press();
    await payer.shown('#outcome h2', /Payment complete/);
    expect((await paid(session)).payment_method.vaulted_token).toBe(made.json.id);
  });

  it('the checkout page says that too many cards are stored, and accepts a card without saving it', async () => {
    const id = await enroll(OTHER);
    await tables.query(
      `INSERT INTO vaulted_token (account_id, customer_id, id, type, card, card_number, active)
       SELECT account_id, customer_id, gen_random_uuid(), type, card, card_number, true
       FROM vaulted_token, generate_series(1, 99) WHERE id = $1`,
      [id],
    );
    await open();
    expect((await choices()).indexOf('Card')).toBe(100);
    await payer.choose('Card');
    const values = { number: CARD, expiry: '1230', 'code-100': '123', holder: 'ANA GOMEZ' };
    for (const [field, text] of Object.entries(values)) await page.type(`#${field}`, text);
    await page.click('#save');
    await payer.press();
    await payer.shown('#notice', /cannot be saved/);
    await payer.press();
    await payer.shown('#outcome h2', /Payment complete/);
  });
});

it('with CHECKOUT_PAGE=off, there is no checkout page, but browsers can still make calls', async () => {
  const off = await startTestServer({ config: { checkoutPage: false } });
  const there = checkoutCalls(restCalls(off.url));
  const session = await there.openSession();
  for (const path of [session, 'assets/checkout.js', 'assets/checkout.css']) {
    expect((await fetch(`${off.url}/checkout/${path}`)).status).toBe(404);
  }
  const wallet = await there.payAsBrowser(session, { type: 'WALLET_B' });
  expect([wallet.status, wallet.json.status]).toEqual([201, 'READY_TO_PAY']);
  // Even a payer whose browser has the page's cookie goes to the shop.
  const headers = { cookie: 'checkout_page=1' };
  const back = await fetch(`${off.url}/v1/payments/${wallet.json.id}/return`, {
    headers,
    redirect: 'manual',
  });
  expect(back.headers.get('location')).toMatch(/^https:\/\/shop\.example\/back\?/);
  await off.close();
});

it('the pay button shows a payment in progress whatever the payer chooses, and then the chosen method', async () => {
  const button = () => payer.textOf('#pay [type=submit]');
  await open();
  await payer.fillCard('4000000000000002');
  const meanwhile = await page.evaluate(() => {
    const { document } = globalThis as InPage;
    const pay = document.querySelector('#pay [type=submit]');
    pay.click();
    [...document.querySelectorAll('[name=method]')].at(-1).click();
    return [pay.textContent, pay.getAttribute('aria-disabled')];
  });
  expect(meanwhile).toEqual(['Paying…', 'true']);
  await payer.shown('#notice', /was declined/);
  expect(await button()).toMatch(/^Continue to /);
  await payer.choose('Card');
  expect(await button()).toBe('Pay $55.75');
});
