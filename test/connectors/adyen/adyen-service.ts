import { afterAll, beforeAll, expect } from 'vitest';
import { merchantOne } from '../../support/dashboard.ts';
import { tell } from '../../support/fake-providers.ts';
import { onService, server, tables } from '../../support/on-service.ts';
import { cardPayment, headersOne, withField } from '../../support/payment-requests.ts';
import { untilNewsIsSettled } from '../../support/settled-news.ts';
import { FAKE_API_KEY, type FakeAdyen, startFakeAdyen } from './fake-adyen.ts';
import { FAKE_ACCOUNT, FAKE_HMAC_KEY, type Item, notificationOf } from './fake-notifications.ts';

/* The whole service with a connection to the fake of Adyen, whose notifications a test delivers. */

/** The fake of Adyen behind the service. */
export let fake: FakeAdyen;

/** Opens the service with a connection to the fake, for a file's tests. */
export function onAdyenService(): void {
  beforeAll(async () => {
    fake = await startFakeAdyen();
  });
  onService(() => ({
    catalogue: `payment_method_types:
  - { type: CARD, category: CARD, workflows: [DIRECT] }
  - { type: IDEAL, category: WALLET, workflows: [REDIRECT] }
  - { type: PIX, category: BANK_TRANSFER, workflows: [REDIRECT] }
  - { type: BOLETO, category: TICKET, workflows: [REDIRECT] }
  - { type: OXXO, category: TICKET, workflows: [REDIRECT] }
  - { type: PSE, category: BANK_TRANSFER, workflows: [REDIRECT] }
  - { type: GOOGLE_PAY, category: WALLET, workflows: [DIRECT] }
connections:
  - id: adyen
    name: Adyen
    provider_id: ADYEN
    connector: adyen
    settings: { base_url: '${fake.url}', merchant_account: ${FAKE_ACCOUNT}, redirect_methods: { IDEAL: ideal } }
    secrets_from_environment: { api_key: KEY, hmac_key: HMAC }
routes:
  - { id: 1, targets: [{ connection: adyen }] }
`,
    config: { environment: (name: string) => ({ KEY: FAKE_API_KEY, HMAC: FAKE_HMAC_KEY })[name] },
  }));
  afterAll(() => fake?.close());
}

/** Any record. */
// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the record.
export type Record = any;

/** Makes a call about payments. */
export const call = (path: string, body?: object): Promise<Record> =>
  merchantOne(server).call(`/v1/payments${path}`, body);

const PLACES: { readonly [type: string]: readonly [country: string, currency: string] } = {
  OXXO: ['MX', 'MXN'],
  PSE: ['CO', 'COP'],
};

/** Makes a call about payments that is refused. */
export async function refusalOf(path: string, body: object): Promise<Record> {
  const headers = { ...headersOne(), 'content-type': 'application/json' };
  const request = { method: 'POST', headers, body: JSON.stringify(body) };
  const response = await fetch(`${server.url}/v1/payments${path}`, request);
  expect(response.status).toBeGreaterThanOrEqual(400);
  return response.json();
}

/** Pays 10.00 by a local method. */
export const payLocally = (type: string, detail?: object): Promise<Record> =>
  call('', localPayment(type, detail));

/** A payment of 10.00 by a local method. */
export function localPayment(type: string, detail?: object): object {
  const [country, currency] = PLACES[type] ?? ['BR', 'BRL'];
  return {
    ...cardPayment(),
    ...{
      workflow: 'REDIRECT',
      country,
      amount: { currency, value: 10 },
      callback_url: 'https://shop.example/back',
    },
    customer_payer: {
      ...{ first_name: 'Ana', last_name: 'Gómez', email: 'ana@example.com' },
      phone: { country_code: '57', number: '3001234567' },
      document: { document_type: type === 'PSE' ? 'CC' : 'CPF', document_number: '12345678909' },
    },
    payment_method: { type, ...(detail && { detail }) },
  };
}

/** The states of a payment. */
export async function stateOf({ id }: Record): Promise<string> {
  const { status, sub_status } = await call(`/${id}`);
  return `${status}/${sub_status}`;
}

/** Delivers a notification. */
export async function post(body: string): Promise<void> {
  const notification = { header: () => undefined, query: '', body: Buffer.from(body) };
  expect(await tell(server.url, 'adyen', notification)).toBe(200);
}

/** Delivers a notification and waits until it is settled. */
export async function deliver(body: string): Promise<void> {
  await post(body);
  await untilNewsIsSettled(tables);
}

/** Counts the alarms so far. */
export async function alarms(): Promise<number> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  return Number(/^provider_alarms_total\{[^}]*\} (\d+)/m.exec(metrics)?.[1] ?? 0);
}

/** A card payment of 10.00 USD, and the subject of a notification about it. */
export async function payByCard(
  capture = true,
): Promise<{ payment: Record; about: Item; told: (item: Partial<Item>, more?: object) => string }> {
  const request = withField(cardPayment(), 'amount', { currency: 'USD', value: 10 });
  const payment = await call('', withField(request, 'payment_method.detail.card.capture', capture));
  const reference = payment.transactions.id;
  const paid = [...fake.payments.values()].find((one) => one.reference === reference);
  const about = { eventCode: 'AUTHORISATION', success: true, psp: paid?.pspReference ?? '', reference };
  const modification = { psp: 'QFQTPCQ8HXSKGK82', original: about.psp };
  const told = (item: Partial<Item>, more: object = {}) =>
    notificationOf({ ...about, ...modification, ...item }, { value: 1_000, currency: 'USD' }, more);
  return { payment, about, told };
}

/** Delivers the fake's waiting notifications. */
export async function deliverAll(): Promise<void> {
  for (const body of fake.notifications.splice(0)) await deliver(body);
}
