import type { JsonObject } from '@bufbuild/protobuf';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { createLedger } from './fake-ledger.ts';
import { checkParameters } from './fake-parameters.ts';
import { createReports } from './fake-reports.ts';
import { type Answer, invalid, newId, parseForm, StripeError, stripeSignature } from './fake-wire.ts';

/** A request as the fake saw it. */
export type Seen = {
  readonly call: string;
  readonly key: string | undefined;
  readonly fields: JsonObject;
  readonly headers: Readonly<Record<string, unknown>>;
};

/**
 * A fault for the next request whose `POST /v1/…` or `GET /v1/…` matches.
 * - `lost_before`: the connection breaks before the request is processed; `lost_after`: after that.
 * - `silent`: the request is processed, and no response comes.
 * - `late`: the connection breaks, and the request is processed once the promise resolves.
 * - a response: it is returned instead of processing the request.
 * - `error_after`: the request is processed, and a 500 is returned and stored under the key.
 */
export type Fault =
  | 'lost_before'
  | 'lost_after'
  | 'silent'
  | 'error_after'
  | { readonly late: Promise<void> }
  | { readonly answer: Answer };

export const FAKE_API_KEY = 'sk_test_fake_key_of_the_fake';
export const FAKE_ACCOUNT_ID = 'acct_1FakeOfTheFake';
export const FAKE_WEBHOOK_SECRET = 'whsec_fake_secret';
const VERSION = '2023-08-16';
const KEY_LIFETIME_MS = 24 * 3_600_000;

type Kept = { readonly call: string; readonly params: string; readonly atMs: number; answer?: Answer };

/**
 * Starts a stateful fake of Stripe's API on a free loopback port, written from the documentation, not from the
 * connector.
 */
export async function startFakeStripe() {
  const app = Fastify({ forceCloseConnections: true });
  const time = { shiftMs: 0 };
  const nowMs = () => Date.now() + time.shiftMs;
  let url = '';
  const ledger = createLedger(nowMs, (id) => `${url}/redirect/authenticate/${id}`);
  const reports = createReports();
  const keys = new Map<string, Kept>();
  const faults: { pattern: RegExp; fault: Fault }[] = [];
  const requests: Seen[] = [];
  let running = 0;
  /** A confirmation lasts until its promise resolves, and locks its intent; the search lags behind. */
  const pace = { confirmed: undefined as Promise<void> | undefined, searchLagMs: 60_000 };

  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, body, done) => done(null, body),
  );

  app.all('/v1/*', async (request, reply) => {
    const path = request.url.split('?')[0] ?? '';
    const call = `${request.method} ${path}`;
    const text = request.method === 'GET' ? (request.url.split('?')[1] ?? '') : String(request.body ?? '');
    const fields = parseForm(text);
    const key = request.headers['idempotency-key'] as string | undefined;
    requests.push({ call, key, fields, headers: request.headers });
    const index = faults.findIndex(({ pattern }) => pattern.test(call));
    const fault = index < 0 ? undefined : faults.splice(index, 1)[0]?.fault;
    running += 1;
    try {
      return await respond(request, reply, fault, () => perform(request, call, fields, key));
    } finally {
      running -= 1;
    }
  });

  async function respond(
    request: FastifyRequest,
    reply: FastifyReply,
    fault: Fault | undefined,
    act: () => Promise<Answer & { replayed?: true }>,
  ): Promise<unknown> {
    const breakOff = () => {
      reply.hijack();
      request.raw.socket.destroy();
    };
    if (fault === 'lost_before') return breakOff();
    if (typeof fault === 'object' && 'late' in fault) {
      breakOff();
      await fault.late;
      await act();
      return;
    }
    const { status, body, replayed } =
      typeof fault === 'object' ? { ...fault.answer, replayed: undefined } : await act();
    if (fault === 'lost_after') return breakOff();
    if (fault === 'silent') return reply.hijack();
    reply.header('request-id', newId('req'));
    if (replayed) reply.header('idempotent-replayed', 'true');
    if (fault === 'error_after') {
      const answer = { status: 500, body: { error: { type: 'api_error', message: 'An error' } } };
      const kept = keys.get(String(request.headers['idempotency-key']));
      if (kept) kept.answer = answer;
      return reply.code(500).send(answer.body);
    }
    return reply.code(status).send(body);
  }

  /** Authenticates, handles idempotency keys and processes requests. */
  async function perform(
    request: FastifyRequest,
    call: string,
    fields: JsonObject,
    key: string | undefined,
  ): Promise<Answer & { replayed?: true }> {
    if (request.headers.authorization !== `Bearer ${FAKE_API_KEY}`) {
      return invalid('Invalid API Key provided', {}, 401).answer;
    }
    if (request.headers['stripe-version'] !== VERSION) {
      return invalid('Received unknown parameter: payment_method_types', { code: 'parameter_unknown' })
        .answer;
    }
    const params = JSON.stringify(fields);
    const known = key === undefined ? undefined : keys.get(key);
    if (known && nowMs() - known.atMs < KEY_LIFETIME_MS) {
      if (known.call !== call || known.params !== params) {
        const error = {
          type: 'idempotency_error',
          message: 'Keys can only be used with the same parameters',
        };
        return { status: 400, body: { error } };
      }
      if (known.answer) return { ...known.answer, replayed: true };
      const error = { type: 'invalid_request_error', code: 'idempotency_key_in_use', message: 'in use' };
      return { status: 409, body: { error } };
    }
    const kept: Kept = { call, params, atMs: nowMs() };
    if (key !== undefined && request.method === 'POST') keys.set(key, kept);
    try {
      if (call.endsWith('/confirm') && pace.confirmed) await lockedUntil(pace.confirmed);
      kept.answer = route(call, fields);
      return kept.answer;
    } catch (error) {
      if (!(error instanceof StripeError)) throw error;
      if (error.saved) kept.answer = error.answer;
      else if (key !== undefined) keys.delete(key);
      return error.answer;
    }
  }

  async function lockedUntil(end: Promise<void>): Promise<void> {
    ledger.mode.locked = true;
    await end;
    ledger.mode.locked = false;
  }

  function route(call: string, fields: JsonObject): Answer {
    const reported = reports.answer(call, fields);
    if (reported) return reported;
    const [, id = '', verb] = /^(?:GET|POST) \/v1\/[a-z_]+\/([^/]+)(?:\/([a-z_]+))?$/.exec(call) ?? [];
    if (call === 'POST /v1/payment_methods') return ledger.createMethod(fields);
    if (call === 'POST /v1/customers') {
      checkParameters('customer', fields);
      return { status: 200, body: ledger.codes.createCustomer(fields) };
    }
    if (verb === 'cash_balance') return { status: 200, body: ledger.codes.cashBalance(id) };
    if (call === 'POST /v1/tokens') {
      checkParameters('token', fields);
      if (!fields.pk_token) throw invalid('Missing pk_token', { param: 'pk_token' });
      return { status: 200, body: ledger.createToken('apple_pay') };
    }
    if (call === 'POST /v1/payment_intents') return ledger.createIntent(fields);
    if (call === 'GET /v1/account') return { status: 200, body: { id: FAKE_ACCOUNT_ID, object: 'account' } };
    if (call === 'GET /v1/payment_intents') return listed([...ledger.intents.values()], call);
    if (call === 'GET /v1/payment_intents/search') return search(String(fields.query));
    if (call === 'POST /v1/refunds') return ledger.refund(fields);
    if (call === 'GET /v1/refunds') {
      const made = [...ledger.refunds.values()].reverse();
      return listed(
        made.filter((it) => it.payment_intent === fields.payment_intent),
        call,
      );
    }
    if (call.startsWith('GET /v1/payment_intents/')) return ledger.read(id, fields);
    if (verb === 'confirm') return ledger.confirm(id, fields);
    if (verb === 'capture') return ledger.capture(id, fields);
    if (verb === 'cancel') return ledger.cancel(id, fields);
    if (call.startsWith('POST /v1/payment_intents/') && verb === undefined) return ledger.update(id, fields);
    throw invalid('Unrecognized request URL', {}, 404);
  }

  function search(query: string): Answer {
    const [, name = '', value] = /^metadata\['(\w+)'\]:'([^']*)'$/.exec(query) ?? [];
    const old = [...ledger.intents.values()].filter(
      (it) => Number(it.created) * 1000 < nowMs() - pace.searchLagMs && it.metadata[name] === value,
    );
    return {
      status: 200,
      body: { object: 'search_result', data: old.map((it) => ledger.told(it, {})), has_more: false },
    };
  }

  // The issuer's page. The data in its return URL is unsigned.
  app.get<{ Params: { id: string } }>('/redirect/authenticate/:id', async (request, reply) => {
    const button = (word: string) =>
      `<form method="post"><input type="hidden" name="result" value="${word}"><button>${word}</button></form>`;
    reply.type('text/html');
    return `<!doctype html><title>${request.params.id}</title>${button('complete')}${button('fail')}`;
  });
  app.post<{ Params: { id: string } }>('/redirect/authenticate/:id', async (request, reply) => {
    const { id } = request.params;
    const intent = ledger.intents.get(id);
    const action = intent?.next_action as { redirect_to_url?: { return_url: string } } | null | undefined;
    if (!intent || !action?.redirect_to_url) return reply.code(404).send();
    const passes = parseForm(String(request.body)).result === 'complete';
    const back = new URL(action.redirect_to_url.return_url);
    ledger.authenticate(id, passes);
    back.searchParams.set('payment_intent', id);
    back.searchParams.set('payment_intent_client_secret', String(intent.client_secret));
    back.searchParams.set('redirect_status', passes ? 'succeeded' : 'failed');
    return reply.redirect(back.href, 303);
  });

  /** A signed notification of an event, as the endpoint receives it. */
  function notification(
    type: string,
    object: JsonObject,
    over: JsonObject = {},
    secrets = [FAKE_WEBHOOK_SECRET],
  ) {
    const event = {
      id: newId('evt'),
      object: 'event',
      type,
      created: Math.floor(nowMs() / 1000),
      livemode: false,
    };
    const body = JSON.stringify({ ...event, api_version: VERSION, data: { object }, ...over });
    return { body, signature: stripeSignature(body, secrets, Math.floor(nowMs() / 1000)) };
  }

  url = await app.listen({ host: '127.0.0.1', port: 0 });
  return {
    url,
    ledger,
    reports,
    requests,
    pace,
    notification,
    nowMs,
    /** Lets time pass, for keys and authorizations. */
    advance: (ms: number) => {
      time.shiftMs += ms;
    },
    fail: (pattern: RegExp, fault: Fault) => faults.push({ pattern, fault }),
    /** True while no request is in progress, including late ones. */
    idle: () => running === 0,
    /** The calls made so far, such as `POST /v1/refunds`, with ids left out. */
    calls: () => requests.map(({ call }) => call.replace(/\/(pi|re|cus)_\w+/, '/{id}')),
    close: () => app.close(),
  };
}

function listed(data: JsonObject[], call: string): Answer {
  return { status: 200, body: { object: 'list', url: call.slice('GET '.length), data, has_more: false } };
}
