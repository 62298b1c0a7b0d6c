import { randomUUID } from 'node:crypto';
import { create as message } from '@bufbuild/protobuf';
import type { Browser } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AmountSchema, Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { decodeRecord, encodeRecord } from '#src/payments/stored-record.ts';
import { startBrowser } from './support/browser.ts';
import { onService, server, tables } from './support/on-service.ts';
import { headersOne, type RequestJson, walletPayment, withField } from './support/payment-requests.ts';
import { type Site, startSite } from './support/site.ts';

let browser: Browser;
/** The merchant's shop, to which payers return. */
let shop: Site;

onService();
beforeAll(async () => {
  shop = await startSite();
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  shop?.close();
});

// biome-ignore lint/suspicious/noExplicitAny: the record, as a merchant's code sees it.
type Record = any;

async function create(over: { [path: string]: unknown } = {}): Promise<Record> {
  let json: RequestJson = withField(walletPayment(), 'callback_url', `${shop.url}/done?order=7`);
  for (const [path, value] of Object.entries(over)) json = withField(json, path, value);
  const response = await fetch(`${server.url}/v1/payments`, {
    method: 'POST',
    headers: { ...headersOne(randomUUID()), 'content-type': 'application/json' },
    body: JSON.stringify(json),
  });
  expect(response.status).toBe(201);
  return response.json();
}

async function get(id: string): Promise<Record> {
  return (await fetch(`${server.url}/v1/payments/${id}`, { headers: headersOne() })).json();
}

const stateOf = (record: Record) => `${record.status}/${record.sub_status}`;
const redirectOf = ({ payment_method: { payment_method_detail: detail } }: Record) =>
  (detail.card ?? detail.wallet).redirect_url;

/** Follows the redirect and presses a button. @returns the final URL. */
async function press(record: Record, label: RegExp): Promise<string> {
  const page = await browser.newPage();
  try {
    await page.goto(redirectOf(record));
    const buttons = await page.$$('button');
    for (const button of buttons) {
      if (!label.test((await button.evaluate((one) => one.textContent)) ?? '')) continue;
      await button.click();
      // The way back leads through pages of the provider and the service.
      await page.waitForFunction("document.title === 'Shop'");
      return page.url();
    }
    throw new Error(`no button reads ${label}`);
  } finally {
    await page.close();
  }
}

describe('a payer at a wallet', () => {
  it('a payer who pays at the wallet returns to the shop, and the payment is SUCCEEDED', async () => {
    const record = await create();
    expect(stateOf(record)).toBe('READY_TO_PAY/CREATED');
    const back = new URL(await press(record, /pay/i));
    expect([back.pathname, back.searchParams.get('order')]).toEqual(['/done', '7']);
    expect(back.searchParams.get('payment_id')).toBe(record.id);
    expect(back.searchParams.get('status')).toBe('SUCCEEDED');
    const after = await get(record.id);
    expect(stateOf(after)).toBe('SUCCEEDED/APPROVED');
    expect(after.checkout.sdk_action_required).toBe(false);
  });

  it('a payer who approves at a wallet with a completion step returns to a payment that is SUCCEEDED', async () => {
    const record = await create({ 'payment_method.type': 'WALLET_D' });
    expect(new URL(await press(record, /approve|pay/i)).searchParams.get('status')).toBe('SUCCEEDED');
    expect(stateOf(await get(record.id))).toBe('SUCCEEDED/APPROVED');
  });

  it('a payer who declines at the wallet returns to a payment that is DECLINED', async () => {
    const record = await create();
    expect(new URL(await press(record, /decline/i)).searchParams.get('status')).toBe('DECLINED');
    expect(stateOf(await get(record.id))).toBe('DECLINED/DECLINED');
  });
});

describe('a cardholder at a 3-D Secure challenge', () => {
  const card = (number: string) => ({
    payment_method: {
      type: 'CARD',
      detail: {
        card: { card_data: { number, expiration_month: 11, expiration_year: 31, security_code: '737' } },
      },
    },
    workflow: 'DIRECT',
  });

  it('a cardholder who passes the challenge returns to a payment that is SUCCEEDED', async () => {
    const record = await create(card('4000000000003105'));
    expect(stateOf(record)).toBe('PENDING/WAITING_ADDITIONAL_STEP');
    expect(record.transactions.response_code).toBe('CHALLENGE_REQUIRED');
    expect(record.checkout.sdk_action_required).toBe(true);
    expect(new URL(await press(record, /yes, it is me/i)).searchParams.get('status')).toBe('SUCCEEDED');
    const after = await get(record.id);
    expect(stateOf(after)).toBe('SUCCEEDED/APPROVED');
    expect(after.checkout.sdk_action_required).toBe(false);
  });

  it('a cardholder who fails the challenge returns to a payment that is DECLINED', async () => {
    const record = await create(card('4000000000003204'));
    expect(new URL(await press(record, /yes, it is me/i)).searchParams.get('status')).toBe('DECLINED');
    expect(stateOf(await get(record.id))).toBe('DECLINED/DECLINED');
  });
});

it('a payment is not paid just because the payer opens the return URL', async () => {
  const record = await create();
  const response = await fetch(`${server.url}/v1/payments/${record.id}/return?status=approved&paid=1`, {
    redirect: 'manual',
  });
  expect(response.status).toBe(303);
  expect(new URL(response.headers.get('location') ?? '').searchParams.get('status')).toBe('READY_TO_PAY');
  expect(stateOf(await get(record.id))).toBe('READY_TO_PAY/CREATED');
});

it('a payer without a callback_url sees the state of the payment on a page of the service', async () => {
  const record = await create({ callback_url: null });
  const response = await fetch(`${server.url}/v1/payments/${record.id}/return`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(await response.text()).toContain('Payment in progress');
  const unknown = await fetch(`${server.url}/v1/payments/${randomUUID()}/return`);
  expect(unknown.status).toBe(404);
});

it('a payer without a callback_url sees the state in their language, with the amount in that language’s format', async () => {
  const record = await create({ callback_url: null });
  const [row] = await tables.query('SELECT record FROM payment WHERE id = $1', [record.id]);
  const yen = decodeRecord(row?.record as Buffer);
  yen.country = 'JP';
  yen.amount = message(AmountSchema, { currency: 'JPY', value: { value: '1200.0' } });
  await tables.query('UPDATE payment SET record = $1 WHERE id = $2', [encodeRecord(yen), record.id]);
  const seen = async (language: string) => {
    const headers = { 'accept-language': language };
    return (await fetch(`${server.url}/v1/payments/${record.id}/return`, { headers })).text();
  };
  expect(await seen('nl, en')).toMatch(/<html lang="en">.*Payment in progress.*¥1,200</s);
  expect(await seen('es-MX')).toMatch(/<html lang="es">.*Pago en curso.*1200\sJPY</s);
  expect(await seen('de')).toMatch(/<html lang="de">.*Zahlung in Bearbeitung/s);
  expect(await seen('fr')).toMatch(/<html lang="fr">.*Paiement en cours/s);
  expect(await seen('it')).toMatch(/<html lang="it">.*Pagamento in corso/s);
  expect(await seen('pt-BR')).toMatch(/<html lang="pt">.*Pagamento em andamento.*JP¥\s1\.200</s);
});

it('a payer without a callback_url who cancels at the wallet is told that they canceled', async () => {
  const record = await create({ callback_url: null });
  const page = await browser.newPage();
  await page.goto(redirectOf(record));
  const buttons = await page.$$('button');
  await buttons.at(-1)?.click();
  await page.waitForFunction("document.body.textContent.includes('You canceled. Nothing was charged.')");
  expect(await page.title()).toContain('Payment canceled');
  await page.close();
});

it.each([
  [Payment_Status.VERIFIED, 'Payment complete'],
  [Payment_Status.CANCELED, 'Payment not made'],
  [Payment_Status.ERROR, 'Payment not made'],
  [Payment_Status.IN_DISPUTE, 'Payment closed'],
])('a payer without a callback_url whose payment has the status %i sees: %s', async (status, told) => {
  const record = await create({ callback_url: null });
  const [row] = await tables.query('SELECT record FROM payment WHERE id = $1', [record.id]);
  const ended = decodeRecord(row?.record as Buffer);
  ended.status = status;
  await tables.query('UPDATE payment SET record = $1 WHERE id = $2', [encodeRecord(ended), record.id]);
  expect(await (await fetch(`${server.url}/v1/payments/${record.id}/return`)).text()).toContain(told);
});

it('a payer whose return fails sees a page, not JSON', async () => {
  const headers = { accept: 'text/html,*/*;q=0.8', 'accept-language': 'pt' };
  const unknown = await fetch(`${server.url}/v1/payments/${randomUUID()}/return`, { headers });
  expect([unknown.status, unknown.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
  expect(await unknown.text()).toContain('Este pagamento não existe');
  const record = await create({ callback_url: null });
  await tables.query('ALTER TABLE payment RENAME TO payment_gone');
  const failed = await fetch(`${server.url}/v1/payments/${record.id}/return`, { headers });
  await tables.query('ALTER TABLE payment_gone RENAME TO payment');
  expect(failed.status).toBeGreaterThanOrEqual(500);
  expect(await failed.text()).toContain('Se você já pagou, não pague de novo.');
});

it('a payer who reopens the page after a refund does not see that the payment is being confirmed', async () => {
  const record = await create({ callback_url: null, description: 'sandbox:done_after:300' });
  await expect.poll(async () => stateOf(await get(record.id))).toBe('SUCCEEDED/APPROVED');
  const page = async () => (await fetch(`${server.url}/v1/payments/${record.id}/return`)).text();
  expect(await page()).toContain('Payment complete');
  const refund = await fetch(`${server.url}/v1/payments/${record.id}/refund`, {
    method: 'POST',
    headers: { ...headersOne(), 'content-type': 'application/json' },
    body: JSON.stringify({ merchant_reference: 'back' }),
  });
  expect([refund.status, stateOf(await refund.json())]).toEqual([200, 'REFUNDED/REFUNDED']);
  expect(await page()).toContain('Payment closed');
});

describe('notifications from the provider', () => {
  it('a notification makes a payment SUCCEEDED even if its payer does not return', async () => {
    const record = await create({ description: 'sandbox:done_after:300' });
    await expect.poll(async () => stateOf(await get(record.id))).toBe('SUCCEEDED/APPROVED');
    const rows = await tables.query(
      'SELECT result FROM notification WHERE transaction_id = $1 AND result IS NOT NULL',
      [record.transactions.id],
    );
    expect(rows.length).toBeGreaterThan(0);
  });

  it('a forged notification is refused and not stored', async () => {
    const before = await tables.query('SELECT count(*)::integer AS n FROM notification');
    const url = `${server.url}/v1/providers/sandbox-one/notifications`;
    const body = JSON.stringify({ id: `ev_${randomUUID()}`, type: 'charge.approved', data: {} });
    const forged = await fetch(url, { method: 'POST', headers: { 'sandbox-signature': 't=1,v1=00' }, body });
    expect(forged.status).toBe(401);
    expect((await fetch(url, { method: 'POST', body })).status).toBe(401);
    expect((await fetch(url.replace('sandbox-one', 'nobody'), { method: 'POST', body })).status).toBe(401);
    expect((await fetch(url, { method: 'POST', body: 'x'.repeat(300_000) })).status).toBe(413);
    expect(await tables.query('SELECT count(*)::integer AS n FROM notification')).toEqual(before);
  });
});
