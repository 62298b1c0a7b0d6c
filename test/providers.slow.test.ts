import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser } from './support/browser.ts';
import { FAKE_SECRETS, startFakeProviders } from './support/fake-providers.ts';
import {
  cardPayment,
  headersOne,
  type RequestJson,
  walletPayment,
  withField,
} from './support/payment-requests.ts';
import { createServiceDatabase, type ServiceDatabase } from './support/service-database.ts';
import { type ServiceProcess, startService } from './support/service-process.ts';
import { type Site, startSite } from './support/site.ts';

/* The service with config/examples/all-providers.yaml as a separate process, with the fakes of all four providers. */

let fakes: Awaited<ReturnType<typeof startFakeProviders>>;
let database: ServiceDatabase;
let service: ServiceProcess;
let browser: Browser;
let environment: Record<string, string>;
const home = mkdtempSync(join(tmpdir(), 'providers-test-'));
/** The merchant's shop, to which payers return. */
let shop: Site;

beforeAll(async () => {
  shop = await startSite();
  [fakes, database, browser] = await Promise.all([
    startFakeProviders(),
    createServiceDatabase(),
    startBrowser(),
  ]);
  const catalogue = join(home, 'catalogue.yaml');
  // The work of a process that died stays leased for the provider's timeout plus a second.
  writeFileSync(catalogue, fakes.catalogue().replaceAll(/^( +)base_url: .*$/gm, '$&\n$1timeout_ms: 5000'));
  environment = {
    ...FAKE_SECRETS,
    ...database.environment,
    CATALOGUE_FILE: catalogue,
    LEASE_MARGIN_MS: '1000',
    LOOK_UP_FIRST_MS: '200',
    RECOVERY_INTERVAL_MS: '100',
    IN_PROGRESS_WAIT_MS: '1000',
  };
  service = await startService(environment);
});
afterAll(async () => {
  service?.child.kill('SIGKILL');
  await service?.ended;
  await browser?.close();
  await fakes?.close();
  await database?.drop();
  shop?.close();
  rmSync(home, { recursive: true, force: true });
});

// biome-ignore lint/suspicious/noExplicitAny: the record, as a merchant's code sees it.
type Json = any;

async function post(path: string, body: object, key: string = randomUUID()): Promise<Json> {
  const response = await fetch(`${service.url}/v1/payments${path}`, {
    method: 'POST',
    headers: { ...headersOne(key), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return response.json();
}

async function get(id: string): Promise<Json> {
  return (await fetch(`${service.url}/v1/payments/${id}`, { headers: headersOne() })).json();
}

const stateOf = (record: Json) => `${record.status}/${record.sub_status}`;
const redirectOf = (record: Json) => record.payment_method.payment_method_detail.wallet.redirect_url;
const tried = (record: Json) => {
  return record.transactions_history.map((one: Json) => [one.provider_data.id, one.status]);
};

/** A card that Adyen softly declines; Stripe ignores the holder's name. */
function softlyDeclined(): RequestJson {
  const card = cardPayment('4242424242424242');
  return withField(card, 'payment_method.detail.card.card_data.holder_name', 'NOT_ENOUGH_BALANCE');
}

function paypalPayment(): RequestJson {
  const wallet = withField(walletPayment(), 'payment_method.type', 'PAYPAL');
  const amount = { currency: 'USD', value: 30 };
  return { ...wallet, amount, callback_url: `${shop.url}/done` };
}

function mercadoPagoPayment(): RequestJson {
  const wallet = withField(walletPayment(), 'payment_method.type', 'MERCADO_PAGO_CHECKOUT_PRO');
  const amount = { currency: 'ARS', value: 4500.5 };
  return { ...wallet, country: 'AR', amount, callback_url: `${shop.url}/done` };
}

/** Follows the redirect and presses a button. @returns the final URL. */
async function press(record: Json, selector: string, timeout = 20_000): Promise<URL> {
  const page = await browser.newPage();
  try {
    await page.goto(redirectOf(record));
    await page.click(selector);
    await page.waitForFunction("document.title === 'Shop'", { timeout });
    return new URL(page.url());
  } finally {
    await page.close();
  }
}

describe('card payments', () => {
  it('a card payment goes to Adyen and is refunded there in two parts, which notifications confirm', async () => {
    const record = await post('', cardPayment());
    expect([stateOf(record), tried(record)]).toEqual(['SUCCEEDED/APPROVED', [['ADYEN', 'SUCCEEDED']]]);
    await fakes.tellAdyens(service.url);
    for (const [part, state] of [
      [4, 'SUCCEEDED/PARTIALLY_REFUNDED'],
      [6, 'REFUNDED/REFUNDED'],
    ] as const) {
      const amount = { currency: 'USD', value: part };
      const refund = await post(`/${record.id}/refund`, { merchant_reference: `part ${part}`, amount });
      expect(refund.transactions.status).toBe('PENDING');
      expect(await fakes.tellAdyens(service.url)).toEqual([200]);
      await expect.poll(async () => stateOf(await get(record.id))).toBe(state);
    }
    expect([...fakes.adyen.payments.values()].at(-1)).toMatchObject({ captured: 1000, refunded: 1000 });
  });

  it('a card payment that Adyen softly declines goes to Stripe and is refunded there in two parts', async () => {
    const record = await post('', softlyDeclined());
    expect([stateOf(record), tried(record)]).toEqual([
      'SUCCEEDED/APPROVED',
      [
        ['ADYEN', 'DECLINED'],
        ['STRIPE', 'SUCCEEDED'],
      ],
    ]);
    const states: string[] = [];
    for (const value of [4, 6]) {
      const amount = { currency: 'USD', value };
      const refund = await post(`/${record.id}/refund`, { merchant_reference: `part ${value}`, amount });
      states.push(stateOf(refund));
    }
    expect(states).toEqual(['SUCCEEDED/PARTIALLY_REFUNDED', 'REFUNDED/REFUNDED']);
    expect([...fakes.stripe.ledger.refunds.values()].map(({ amount }) => amount)).toEqual([400, 600]);
  });

  it('a card verification goes to Adyen and skips Stripe', async () => {
    const verification = withField(cardPayment(), 'amount', { currency: 'USD', value: 0 });
    const record = await post('', withField(verification, 'payment_method.detail.card.verify', true));
    expect([record.status, tried(record)]).toEqual(['VERIFIED', [['ADYEN', 'SUCCEEDED']]]);
  });
});

describe('a payer in a browser', () => {
  it('a payer approves at PayPal, and the service captures the money once', async () => {
    const record = await post('', paypalPayment());
    expect(stateOf(record)).toBe('READY_TO_PAY/CREATED');
    expect((await press(record, '#approve')).searchParams.get('status')).toBe('SUCCEEDED');
    const after = await get(record.id);
    expect(stateOf(after)).toBe('SUCCEEDED/APPROVED');
    const order = [...fakes.paypal.ledger.orders.values()].at(-1);
    expect(order?.captures).toMatchObject([{ amount: { currency_code: 'USD', value: '30.00' } }]);
  });

  it('a payer pays at Mercado Pago and returns to a payment that is SUCCEEDED', async () => {
    const record = await post('', mercadoPagoPayment());
    expect((await press(record, 'button[value=pay]')).searchParams.get('status')).toBe('SUCCEEDED');
    const [payment] = fakes.mercadoPago.payments.values();
    expect((await get(record.id)).transactions.provider_data.transaction_id).toBe(String(payment?.id));
  });
});

it('a service that is killed during a call to each provider recovers the outcomes in their ledgers', async () => {
  const { adyen, stripe, paypal, mercadoPago } = fakes;
  const charged = () =>
    [...stripe.ledger.intents.values()].filter((one) => one.status === 'succeeded').length;
  const before = [adyen.payments.size, charged(), mercadoPago.refunds.size, mercadoPago.payments.size];
  const order = await post('', paypalPayment());
  const paid = await post('', mercadoPagoPayment());
  mercadoPago.pay([...mercadoPago.preferences.values()].at(-1) ?? {});
  await fetch(`${service.url}/v1/payments/${paid.id}/return`, { redirect: 'manual' });
  expect(stateOf(await get(paid.id))).toBe('SUCCEEDED/APPROVED');

  // Each provider does what is requested, but its response never arrives.
  const paying = await post('', mercadoPagoPayment());
  const refund = { merchant_reference: 'half', amount: { currency: 'ARS', value: 2000 } };
  const [atAdyen, atStripe] = [randomUUID(), randomUUID()];
  const lost: Promise<unknown>[] = [];
  const lose = (call: Promise<unknown>) => lost.push(call.catch(() => {}));
  stripe.fail(/POST .*confirm$/, 'silent');
  lose(post('', softlyDeclined(), atStripe));
  await expect.poll(charged).toBe((before[1] ?? 0) + 1);
  adyen.next('silent');
  lose(post('', cardPayment(), atAdyen));
  paypal.trouble(/capture$/, 'no answer');
  // The browsers wait for a page that never arrives and eventually give up.
  const waiting = [press(order, '#approve', 5_000).catch(() => {})];
  mercadoPago.lose(/search$/, 'silent');
  waiting.push(press(paying, 'button[value=pay]', 5_000).catch(() => {}));
  mercadoPago.lose(/refunds$/, 'silent');
  lose(post(`/${paid.id}/refund`, refund));
  const captures = () => [...paypal.ledger.orders.values()].at(-1)?.captures.length;
  const paidNow = () => [...mercadoPago.payments.values()].filter((one) => one.status === 'approved').length;
  const done = () => [adyen.payments.size, captures(), mercadoPago.refunds.size, paidNow()];
  await expect.poll(done).toEqual([(before[0] ?? 0) + 2, 1, (before[2] ?? 0) + 1, (before[3] ?? 0) + 2]);
  service.child.kill('SIGKILL');
  await service.ended;
  await Promise.all(lost);

  service = await startService(environment);
  await fakes.tellAdyens(service.url);
  const again = { interval: 250 };
  /** Returns the payment of a call without a response, by repeating the call. */
  const repeated = async (request: RequestJson, key: string): Promise<string> => {
    await expect.poll(async () => (await post('', request, key)).id, again).toBeTypeOf('string');
    return (await post('', request, key)).id;
  };
  const ofAdyen = await repeated(cardPayment(), atAdyen);
  const ofStripe = await repeated(softlyDeclined(), atStripe);
  /** Requests the page that the payer's browser never received. */
  const reload = (id: string) =>
    fetch(`${service.url}/v1/payments/${id}/return`, { redirect: 'manual' }).then((page) => page.text());
  for (const id of [ofAdyen, ofStripe, order.id, paying.id]) {
    const state = async () => {
      if (id === order.id || id === paying.id) await reload(id);
      return stateOf(await get(id));
    };
    await expect.poll(state, again).toBe('SUCCEEDED/APPROVED');
  }
  await expect.poll(async () => stateOf(await get(paid.id)), again).toBe('SUCCEEDED/PARTIALLY_REFUNDED');

  const atLast = [...adyen.payments.values()].at(-1);
  const { provider_data } = (await get(ofAdyen)).transactions;
  expect(provider_data.transaction_id).toBe(atLast?.pspReference);
  expect(charged()).toBe((before[1] ?? 0) + 1);
  expect(captures()).toBe(1);
  expect([...mercadoPago.refunds.values()].at(-1)).toMatchObject([{ amount: 2000 }]);
  await Promise.all(waiting);
});
