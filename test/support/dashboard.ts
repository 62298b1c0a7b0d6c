import { type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import type { Page } from 'puppeteer-core';
import { expect } from 'vitest';
import { ACCOUNT_ONE, cardPayment, headersOne, withField } from './payment-requests.ts';
import type { TestServer } from './server.ts';

/** A script that a merchant, a payer or a provider may put into any string. */
export const HOSTILE = `"'><img src=/pwned onerror=alert(1)><script>alert(2)</script></pre><svg onload=alert(3)>`;

/** An operator's HTTP client. */
export type Operator = {
  readonly cookie: string;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** Sends a form with the session's token, as our own page would. */
  post(path: string, fields?: Record<string, string>, headers?: Record<string, string>): Promise<Response>;
};

/** Headers of a browser that submits a form from our own page. */
export const OWN_FORM = { 'sec-fetch-site': 'same-origin' };

/** Signs in. @param before a cookie that the browser already has. */
export async function signIn(server: Pick<TestServer, 'url'>, key: string, before = ''): Promise<Operator> {
  const response = await fetch(`${server.url}/dashboard/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { ...OWN_FORM, cookie: before },
    body: new URLSearchParams({ key }),
  });
  expect(response.status).toBe(303);
  const [cookie = ''] = (response.headers.get('set-cookie') ?? '').split(';');
  const get = (path: string, headers = {}) =>
    fetch(`${server.url}/dashboard${path}`, { redirect: 'manual', headers: { cookie, ...headers } });
  const [, token = ''] = /name="form_token" value="([^"]+)"/.exec(await (await get('/route')).text()) ?? [];
  return {
    cookie,
    get,
    post: (path, fields = {}, headers = OWN_FORM) =>
      fetch(`${server.url}/dashboard${path}`, {
        method: 'POST',
        redirect: 'manual',
        headers: { cookie, ...headers },
        body: new URLSearchParams({ form_token: token, ...fields }),
      }),
  };
}

/** Signs a browser's page in. */
export async function enter(page: Page, server: TestServer, key: string): Promise<void> {
  await page.goto(`${server.url}/dashboard/sign-in`);
  await page.type('#key', key);
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
  expect(page.url()).toBe(`${server.url}/dashboard`);
}

/** Replaces every string in a message, in nested messages and in free-form JSON, except the fields in `keep`. */
export function fillTexts(
  desc: DescMessage,
  message: Message,
  text: string,
  keep: ReadonlySet<string>,
): void {
  const members = message as unknown as Record<string, unknown>;
  const setIn = (
    holder: Record<string, unknown>,
    name: string,
    of: DescMessage | undefined,
    isText: boolean,
  ) => {
    const value = holder[name];
    if (Array.isArray(value)) {
      for (const i of value.keys()) setIn(value as never, String(i), of, isText);
    } else if (isText) holder[name] = text;
    else if (of && value && '$typeName' in (value as object)) fillTexts(of, value as Message, text, keep);
    else if (of && value) holder[name] = { [text]: text, list: [text, { [text]: text }] };
  };
  for (const field of desc.fields) {
    if (keep.has(field.name) || field.message?.typeName === 'google.protobuf.Timestamp') continue;
    if (field.message?.typeName === 'google.type.Decimal') continue;
    const isText = field.scalar === ScalarType.STRING;
    if (!field.oneof) {
      setIn(members, field.localName, field.message, isText);
      continue;
    }
    const kind = members[field.oneof.localName] as { case?: string; value?: unknown } | undefined;
    if (kind?.case === field.localName) setIn(kind as never, 'value', field.message, isText);
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the record as a merchant's code sees it.
type Told = any;

/** A merchant who pays through the API and reads the result. */
export type Merchant = {
  call(path: string, json?: object): Promise<Told>;
  pay(over?: object): Promise<Told>;
  payByPix(): Promise<Told>;
  authorize(): Promise<Told>;
  refundsOf(payment: Told): Promise<Told[]>;
};

/** Account one of the sandbox. */
export function merchantOne(server: TestServer): Merchant {
  async function call(path: string, json?: object): Promise<Told> {
    const response = await fetch(server.url + path, {
      headers: { ...headersOne(), 'content-type': 'application/json' },
      ...(json && { method: 'POST', body: JSON.stringify(json) }),
    });
    expect(response.status).toBeLessThan(300);
    return response.json();
  }
  return {
    call,
    pay: (over = {}) => call('/v1/payments', { ...cardPayment(), ...over }),
    payByPix: () =>
      call('/v1/payments', {
        ...{ ...cardPayment(), country: 'BR', amount: { currency: 'BRL', value: 52 }, workflow: 'REDIRECT' },
        payment_method: { type: 'PIX' },
      }),
    authorize: () =>
      call('/v1/payments', withField(cardPayment(), 'payment_method.detail.card.capture', false)),
    async refundsOf({ id }) {
      const { transactions_history: history } = await call(`/v1/payments/${id}`);
      return history.filter(({ type }: Told) => type === 'REFUND');
    },
  };
}

/** The page of a payment of account one. */
export const pathOf = ({ id }: { id: string }): string => `/payments/${ACCOUNT_ONE}/${id}`;

/** The dashboard's pages that need no payment. */
export const PAGES = [
  ...['', '/figures', '/payments', '/disputes', '/settlement', '/export', '/catalogue', '/route', '/audit'],
  ...['/catalogue/versions', '/catalogue/versions/1', '/catalogue/compare?from=1&to=1'],
  ...['/catalogue/route', '/catalogue/route?id=4', '/catalogue/type', '/catalogue/type?id=CARD'],
  ...['/catalogue/connection', '/catalogue/connection?id=guarded-one'],
  ...['adyen', 'mercado-pago', 'paypal', 'stripe'].map((name) => `/catalogue/connection?connector=${name}`),
];
