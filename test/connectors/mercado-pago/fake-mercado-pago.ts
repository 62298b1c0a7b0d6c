import { createHmac, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import type { JsonObject } from '@bufbuild/protobuf';
import type { UserResponse } from 'mercadopago/dist/clients/user/get/types.js';
import { startSite } from '../../support/site.ts';
import {
  type FakeToken,
  faultOfCharge,
  faultOfToken,
  methodsByBin,
  shownCard,
  stateOfCharge,
} from './fake-cards.ts';
import { detailOfOpen, faultOfCode, paymentMethods, shownFieldsOf } from './fake-codes.ts';
import { choose, pageOf } from './fake-page.ts';

export const FAKE_ACCESS_TOKEN = 'APP_USR-fake-access-token';
export const FAKE_WEBHOOK_SECRET = 'fake-secret-signature-of-webhooks';
export const FAKE_ACCOUNT = 123456789;

/**
 * A fault for the next request of a method and path: the connection breaks before or after the fake acts, or no
 * response comes.
 */
export type Loss = { readonly on: RegExp; readonly when: 'before' | 'after' | 'silent' };

type Request = { readonly method: string; readonly path: string; readonly query: URLSearchParams } & {
  readonly key: string | undefined;
  readonly showsRefundsInProcess: boolean;
  readonly body: JsonObject | undefined;
  readonly text: string;
};
type Answer = { readonly status: number; readonly body: unknown };

/** Time for which a key is kept: as short as the connector may assume. */
const KEY_LIVES_MS = 10 * 60_000;

/**
 * A fake of Mercado Pago, written from its documentation and independently of the connector: preferences, their
 * payments, payments by local methods and by card, refunds and signed webhooks. One account, in `currency`.
 */
export async function startFakeMercadoPago(currency = 'ARS') {
  const preferences = new Map<string, JsonObject>();
  const payments = new Map<string, JsonObject>();
  const refunds = new Map<string, JsonObject[]>();
  const chargebacks = new Map<string, JsonObject>();
  /** Requests and responses by idempotency key. A repeat gets the first response. */
  const keys = new Map<string, { readonly asked: string; readonly answer: Answer; readonly atMs: number }>();
  const requests: Request[] = [];
  const losses: Loss[] = [];
  const answers: { readonly on: RegExp; readonly answer: Answer }[] = [];
  const tokens = new Map<string, FakeToken>();
  let takesNoCode = false;
  let nextId = 1_000_000_001;
  let searchLags = false;
  let ignoresKeys = false;
  let holdsRefunds = false;

  const { url, close } = await startSite(async (request, response) => {
    const read = await readRequest(request);
    requests.push(read);
    const line = `${read.method} ${read.path}`;
    if (read.path.startsWith('/checkout/v1/')) return showPage(read, response);
    const loss = take(losses, ({ on }) => on.test(line));
    if (loss?.when === 'before') return void request.socket.destroy();
    const told = take(answers, ({ on }) => on.test(line))?.answer;
    const answer =
      told ?? (isAuthorized(request) ? withKey(read, () => answerTo(read)) : error(401, 'invalid_token'));
    if (loss?.when === 'silent') return;
    if (loss) return void request.socket.destroy();
    write(response, answer);
  });

  /** The payer's page. */
  function showPage({ path, query }: Request, response: ServerResponse): void {
    const preference = preferences.get(query.get('pref_id') ?? '');
    if (!preference) return void response.writeHead(404).end();
    if (path !== '/checkout/v1/choose') {
      return void response.setHeader('content-type', 'text/html').end(pageOf(preference));
    }
    const location = choose(preference, query.get('choice') ?? '', (status, detail) =>
      pay(preference, status, detail),
    );
    response.writeHead(303, { location }).end();
  }

  function withKey({ key, method, path, text }: Request, act: () => Answer): Answer {
    if (method !== 'POST') return act();
    if (key === undefined) {
      return path.startsWith('/v1/payments') ? error(400, 'X-Idempotency-Key is required') : act();
    }
    const asked = `${path} ${text}`;
    const before = ignoresKeys ? undefined : keys.get(key);
    if (before && Date.now() - before.atMs < KEY_LIVES_MS)
      return before.asked === asked ? before.answer : error(409, 'idempotency_conflict');
    const answer = act();
    if (answer.status < 300) keys.set(key, { asked, answer, atMs: Date.now() });
    return answer;
  }

  function answerTo(request: Request): Answer {
    const { method, path, query } = request;
    if (path === '/checkout/preferences' && method === 'POST') return createPreference(request.body ?? {});
    if (path === '/users/me' && method === 'GET') return { status: 200, body: user() };
    if (path === '/v1/payments/search' && method === 'GET') return search(query);
    if (path === '/v1/card_tokens' && method === 'POST') return createToken(request.body ?? {});
    if (path === '/v1/payment_methods/search') {
      return { status: 200, body: methodsByBin(query.get('bin') ?? '') };
    }
    if (path === '/v1/payments' && method === 'POST') {
      const { body = {} } = request;
      return body.token === undefined ? createCode(body) : charge(body);
    }
    if (path === '/v1/payment_methods') return { status: 200, body: paymentMethods(currency) };
    const chargeback = /^\/v1\/chargebacks\/([^/]+)$/.exec(path)?.[1];
    if (chargeback !== undefined) {
      const body = chargebacks.get(chargeback);
      return body ? { status: 200, body } : error(404, 'chargeback not found');
    }
    const preference = /^\/checkout\/preferences\/([^/]+)$/.exec(path)?.[1];
    if (preference !== undefined)
      return onPreference(method, preferences.get(preference), request.body ?? {});
    const [, id = '', rest] = /^\/v1\/payments\/(\d+)(\/refunds)?$/.exec(path) ?? [];
    const payment = payments.get(id);
    if (!payment) return error(404, 'Payment not found');
    if (rest === undefined)
      return method === 'PUT' ? update(payment, request.body ?? {}) : { status: 200, body: payment };
    if (method === 'POST') return refund(payment, request);
    const made = refunds.get(id) ?? [];
    const isShown = (one: JsonObject) => request.showsRefundsInProcess || one.status !== 'in_process';
    return { status: 200, body: made.filter(isShown) };
  }

  /** The account, which is a test user. */
  function user(): Omit<UserResponse, 'api_response'> {
    return { id: FAKE_ACCOUNT, nickname: 'TESTUSER', tags: ['normal', 'test_user'] };
  }

  function createToken(body: JsonObject): Answer {
    const fault = faultOfToken(body);
    if (fault) {
      const { body: refusal } = error(400, fault.message);
      const cause = [{ code: fault.code, description: fault.message }];
      return { status: 400, body: { ...(refusal as JsonObject), cause } };
    }
    const id = randomUUID().replaceAll('-', '');
    tokens.set(id, { card: body, isUsed: false });
    return { status: 201, body: { id, ...shownCard(body), status: 'active', luhn_validation: true } };
  }

  /** Charges a card, or authorizes a charge. A rejection is a success, too. */
  function charge({ token: tokenId, ...body }: JsonObject): Answer {
    const token = tokens.get(String(tokenId));
    const fault = faultOfCharge(body, token, takesNoCode);
    if (fault !== undefined || !token) return error(400, fault ?? '');
    token.isUsed = true;
    const [status, status_detail] = stateOfCharge(body, token);
    const id = nextId++;
    const payment: JsonObject = {
      ...body,
      ...{ id, status, status_detail, captured: status === 'approved', payment_type_id: 'credit_card' },
      ...{ transaction_amount_refunded: 0, currency_id: currency, collector_id: FAKE_ACCOUNT },
      date_created: new Date().toISOString(),
      date_of_expiration: null,
      authorization_code: status === 'rejected' ? null : '301299',
      card: shownCard(token.card),
      transaction_details: { total_paid_amount: body.transaction_amount ?? 0, external_resource_url: null },
    };
    payments.set(String(id), payment);
    return { status: 201, body: payment };
  }

  /** Creates a payment by a local method, which its payer pays later. */
  function createCode(body: JsonObject): Answer {
    const fault = faultOfCode(body, currency);
    if (fault) {
      const { body: refusal } = error(400, fault.message);
      const cause = [{ code: fault.code, description: fault.message }];
      return { status: 400, body: { ...(refusal as JsonObject), cause } };
    }
    const id = nextId++;
    const endMs = Date.now() + 3 * 24 * 60 * 60_000;
    const payment: JsonObject = {
      ...body,
      id,
      status: 'pending',
      status_detail: detailOfOpen(body.payment_method_id),
      transaction_amount_refunded: 0,
      currency_id: currency,
      collector_id: FAKE_ACCOUNT,
      date_created: new Date().toISOString(),
      date_of_expiration: body.date_of_expiration ?? new Date(endMs).toISOString(),
      authorization_code: null,
      ...shownFieldsOf(body, id, url),
    };
    payments.set(String(id), payment);
    return { status: 201, body: payment };
  }

  /** Captures an authorization, whose rest is released, or cancels a payment that nobody has paid. */
  function update(payment: JsonObject, body: JsonObject): Answer {
    if (body.capture === true) {
      const amount = Number(body.transaction_amount ?? payment.transaction_amount);
      const isWithin = amount > 0 && amount <= Number(payment.transaction_amount);
      if (payment.status !== 'authorized' || !isWithin) return error(400, 'the payment cannot be captured');
      Object.assign(payment, { status: 'approved', status_detail: 'accredited', captured: true });
      payment.transaction_amount = amount;
      return { status: 200, body: payment };
    }
    const isOpen = ['pending', 'in_process', 'authorized'].includes(String(payment.status));
    if (body.status !== 'cancelled' || !isOpen) return error(400, 'the payment cannot be cancelled');
    Object.assign(payment, { status: 'cancelled', status_detail: 'by_collector' });
    return { status: 200, body: payment };
  }

  function createPreference(body: JsonObject): Answer {
    const fault = faultOfPreference(body);
    if (fault) return error(400, fault);
    const id = `${FAKE_ACCOUNT}-${randomUUID()}`;
    const preference: JsonObject = {
      ...body,
      id,
      collector_id: FAKE_ACCOUNT,
      client_id: '42',
      date_created: new Date().toISOString(),
      init_point: `${url}/checkout/v1/redirect?pref_id=${id}`,
      sandbox_init_point: `${url}/sandbox/checkout/v1/redirect?pref_id=${id}`,
    };
    preferences.set(id, preference);
    return { status: 201, body: preference };
  }

  function faultOfPreference(body: JsonObject): string | undefined {
    const items = body.items as JsonObject[] | undefined;
    if (!Array.isArray(items) || items.length === 0) return 'items needed';
    for (const { unit_price, quantity, currency_id } of items) {
      if (typeof unit_price !== 'number' || unit_price <= 0) return 'unit_price invalid';
      if (!Number.isInteger(quantity)) return 'quantity invalid';
      if (currency_id !== currency) return 'currency_id invalid';
      if (['CLP', 'COP'].includes(currency) && !Number.isInteger(unit_price)) return 'unit_price invalid';
    }
    const backUrls = body.back_urls as JsonObject | undefined;
    if (body.auto_return !== undefined && !String(backUrls?.success).startsWith('https:')) {
      return 'auto_return invalid. back_url.success must be defined';
    }
    const email = (body.payer as JsonObject | undefined)?.email;
    if (email !== undefined && !/^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(String(email)))
      return 'payer.email invalid';
    if (String(body.notification_url ?? '').length > 248) return 'notification_url too long';
    return undefined;
  }

  function onPreference(method: string, preference: JsonObject | undefined, body: JsonObject): Answer {
    if (!preference) return error(404, 'preference not found');
    if (method === 'PUT') Object.assign(preference, body);
    return { status: 200, body: preference };
  }

  function search(query: URLSearchParams): Answer {
    const wanted = query.get('external_reference');
    const found = [...payments.values()].filter((payment) => payment.external_reference === wanted);
    const results = searchLags ? [] : found.toReversed();
    const limit = Number(query.get('limit') ?? 30);
    return {
      status: 200,
      body: { paging: { total: results.length, limit, offset: 0 }, results: results.slice(0, limit) },
    };
  }

  function refund(payment: JsonObject, { body = {}, showsRefundsInProcess }: Request): Answer {
    const id = String(payment.id);
    const made = refunds.get(id) ?? [];
    const left = Number(payment.transaction_amount) - Number(payment.transaction_amount_refunded);
    const amount = typeof body.amount === 'number' ? body.amount : left;
    if (payment.status !== 'approved' && payment.status !== 'refunded') return error(400, 'invalid state');
    if (amount <= 0 || amount > left + 1e-9) return error(400, 'Invalid refund amount');
    const one: JsonObject = {
      id: nextId++,
      payment_id: Number(id),
      amount,
      status: 'approved',
      date_created: new Date().toISOString(),
    };
    refunds.set(id, [...made, one]);
    if (holdsRefunds) {
      one.status = 'in_process';
      // Although it may still go through.
      return showsRefundsInProcess ? { status: 201, body: one } : error(400, 'Bad Request');
    }
    payment.transaction_amount_refunded = Number(payment.transaction_amount_refunded) + amount;
    const isWhole = amount >= left - 1e-9;
    payment.status_detail = isWhole ? 'refunded' : 'partially_refunded';
    if (isWhole) payment.status = 'refunded';
    return { status: 201, body: one };
  }

  /** The payer tries to pay a preference on its page. */
  function pay(preference: JsonObject, status = 'approved', detail = 'accredited', over: JsonObject = {}) {
    const expiresAt = Date.parse(String(preference.expiration_date_to));
    if (preference.expires === true && expiresAt <= Date.now()) throw new Error('the preference is closed');
    const items = preference.items as { unit_price: number; quantity: number }[];
    const payment: JsonObject = {
      id: nextId++,
      status,
      status_detail: detail,
      transaction_amount: items.reduce((sum, item) => sum + item.unit_price * item.quantity, 0),
      transaction_amount_refunded: 0,
      currency_id: currency,
      external_reference: preference.external_reference ?? null,
      collector_id: FAKE_ACCOUNT,
      date_created: new Date().toISOString(),
      authorization_code: status === 'approved' ? '301299' : null,
      payer: { email: 'payer@example.com' },
      ...over,
    };
    payments.set(String(payment.id), payment);
    return payment;
  }

  /** A bank takes the money of a payment back. */
  function chargeBack(payment: JsonObject, over: JsonObject = {}): string {
    Object.assign(payment, { status: 'charged_back', status_detail: 'in_process' });
    const id = `2170000876543${nextId++}`;
    chargebacks.set(id, {
      ...{ id, payments: [payment.id ?? 0], currency, amount: payment.transaction_amount ?? 0 },
      ...{ reason: 'fraud', coverage_applied: null, coverage_elegible: true },
      ...{ documentation_required: true, documentation_status: 'pending', documentation: [] },
      date_documentation_deadline: '2026-12-08T09:50:37.000-04:00',
      date_created: '2026-11-28T16:20:54.000-04:00',
      date_last_updated: '2026-11-28T16:20:54.000-04:00',
      live_mode: true,
      ...over,
    });
    return id;
  }

  return {
    url,
    preferences,
    payments,
    refunds,
    chargebacks,
    chargeBack,
    requests,
    tokens,
    pay,
    /** Enables payments without a security code. */
    takeNoCode: () => {
      takesNoCode = true;
    },
    /** The only preference. */
    preference(): JsonObject {
      const [preference, ...others] = [...preferences.values()];
      if (!preference || others.length > 0) throw new Error(`${others.length + 1} preferences, or none`);
      return preference;
    },
    lose: (on: RegExp, when: Loss['when']) => void losses.push({ on, when }),
    answerOnce: (on: RegExp, status: number, body: unknown) =>
      void answers.push({ on, answer: { status, body } }),
    /** Moves a payment to another state: its payer pays, its bank confirms or refuses, or it runs out. */
    move(payment: JsonObject, status: string, detail: string): void {
      Object.assign(payment, { status, status_detail: detail });
    },
    /** Lets each later refund wait for the central bank. */
    holdRefunds: () => {
      holdsRefunds = true;
    },
    lagSearch: (lags: boolean) => {
      searchLags = lags;
    },
    /** Treats every request as new, whatever its idempotency key. */
    ignoreKeys: () => {
      ignoresKeys = true;
    },
    close,
  };
}

/** A webhook about a chargeback. */
export function chargebackWebhookOf(id: string) {
  return webhookOf(id, { query: `data.id=${id}&type=topic_chargebacks_wh` });
}

/** A webhook as the provider posts it, signed. */
export function webhookOf(
  paymentId: string,
  over: { secret?: string; ts?: string; requestId?: string; query?: string } = {},
) {
  const { secret = FAKE_WEBHOOK_SECRET, ts = String(Date.now()), requestId = randomUUID() } = over;
  // A missing part is left out together with its name.
  const request = requestId === '' ? '' : `request-id:${requestId};`;
  const manifest = `${paymentId === '' ? '' : `id:${paymentId};`}${request}ts:${ts};`;
  const v1 = createHmac('sha256', secret).update(manifest).digest('hex');
  const headers: Record<string, string> = {
    'x-signature': `ts=${ts},v1=${v1}`,
    ...(requestId && { 'x-request-id': requestId }),
  };
  const body = {
    id: 1,
    live_mode: true,
    type: 'payment',
    action: 'payment.updated',
    data: { id: paymentId },
  };
  return {
    header: (name: string) => headers[name],
    query: over.query ?? `data.id=${paymentId}&type=payment`,
    body: Buffer.from(JSON.stringify(body)),
  };
}

function isAuthorized(request: IncomingMessage): boolean {
  return request.headers.authorization === `Bearer ${FAKE_ACCESS_TOKEN}`;
}

function error(status: number, message: string): Answer {
  return { status, body: { message, error: 'bad_request', status, cause: [] } };
}

function take<T>(list: T[], wanted: (one: T) => boolean): T | undefined {
  const index = list.findIndex(wanted);
  return index < 0 ? undefined : list.splice(index, 1)[0];
}

async function readRequest(request: IncomingMessage): Promise<Request> {
  const text = await textOf(request);
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://fake');
  const key = request.headers['x-idempotency-key'];
  return {
    method: request.method ?? '',
    path: pathname,
    query: searchParams,
    key: typeof key === 'string' ? key : undefined,
    showsRefundsInProcess: request.headers['x-render-in-process-refunds'] === 'true',
    body: text === '' ? undefined : (JSON.parse(text) as JsonObject),
    text,
  };
}

function write(response: ServerResponse, { status, body }: Answer): void {
  const headers = { 'content-type': 'application/json', 'x-request-id': randomUUID() };
  response.writeHead(status, headers).end(JSON.stringify(body));
}
