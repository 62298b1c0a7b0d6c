import {
  createPrivateKey,
  createPublicKey,
  createSign,
  createVerify,
  randomBytes,
  randomUUID,
} from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { crc32 } from 'node:zlib';
import type { RawNotification } from '#src/connectors/port/connector.ts';
import { startSite } from '../../support/site.ts';
import { createFakeLedger, type FakeAnswer, type Json } from './fake-ledger.ts';

/** A fault for the next request of a call, instead of a normal response. */
export type Trouble =
  | 'lost before'
  | 'lost after'
  | 'error before'
  | 'error after'
  | 'no answer'
  | FakeAnswer;

/** A request as the fake saw it. */
export type Seen = {
  readonly call: string;
  readonly requestId: string | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
};

export const FAKE_CLIENT_ID = 'fake-client-id';
export const FAKE_CLIENT_SECRET = 'fake-client-secret';
export const FAKE_MERCHANT_ID = 'WDJJHEBZ4X2LY';
export const FAKE_WEBHOOK_ID = '8PT597110X687430LKGECATA';
const EXPIRES_IN_S = 32_400;
const certificateFile = (name: string) => new URL(`certificates/${name}.pem`, import.meta.url);
const certificate = (name: string) => readFileSync(certificateFile(name), 'utf8');
/** The root of the fake's certificate chain, which nobody trusts by default. */
export const FAKE_ROOT_FILE = certificateFile('root');
/** The certificate chains that the fake serves, by their id. */
export const FAKE_CHAINS: Readonly<Record<string, string>> = {
  'CERT-360caa42-fca2a594-1d93a270': certificate('paypal'),
  'CERT-other-host': certificate('other-host'),
  'CERT-signed-by-leaf': certificate('signed-by-leaf'),
};
/** PayPal's own key, one for all fakes. */
const signer = {
  privateKey: createPrivateKey(certificate('paypal-key')),
  publicKey: createPublicKey(certificate('paypal')),
};

/** Starts a fake of PayPal on a free loopback port: tokens, orders, refunds, webhook signatures and a payer's page. */
export async function startFakePayPal() {
  let url = '';
  const ledger = createFakeLedger(() => url);
  const tokens = new Map<string, number>();
  const requests: Seen[] = [];
  const troubles: { call: RegExp; trouble: Trouble }[] = [];
  const nowMs = () => Date.now() + ledger.clock.aheadMs;

  function answerTo(request: IncomingMessage, path: string, text: string): FakeAnswer {
    const call = `${request.method} ${path}`;
    if (call === 'POST /v1/oauth2/token') return grant(request, text);
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (!((tokens.get(token) ?? 0) > nowMs())) {
      return {
        status: 401,
        body: {
          error: 'invalid_token',
          error_description: 'The token passed in was not found in the system',
        },
      };
    }
    if (call === 'POST /v1/notifications/verify-webhook-signature') return verify(text);
    const id = header(request, 'paypal-request-id');
    if (id !== undefined && id.length > 108)
      return { status: 400, body: { name: 'INVALID_REQUEST', message: 'too long' } };
    if (call === 'GET /v1/identity/oauth2/userinfo') {
      return { status: 200, body: { user_id: 'https://www.paypal.com/u/1', payer_id: FAKE_MERCHANT_ID } };
    }
    const body = text === '' ? {} : (JSON.parse(text) as Json);
    const [, order, verb] = /^\/v2\/checkout\/orders(?:\/([A-Z0-9]+))?(\/capture)?$/.exec(path) ?? [];
    if (call === 'POST /v2/checkout/orders') return ledger.create(body, id);
    if (order && request.method === 'GET' && !verb) return ledger.get(order);
    if (order && request.method === 'POST' && verb) return ledger.capture(order, id);
    const takenId = /^\/v2\/payments\/captures\/([A-Z0-9]+)$/.exec(path)?.[1];
    if (takenId && request.method === 'GET') return ledger.getCapture(takenId);
    const captureId = /^\/v2\/payments\/captures\/([A-Z0-9]+)\/refund$/.exec(path)?.[1];
    if (captureId && request.method === 'POST') return ledger.refund(captureId, body, id);
    const refundId = /^\/v2\/payments\/refunds\/([A-Z0-9]+)$/.exec(path)?.[1];
    if (refundId && request.method === 'GET') return ledger.getRefund(refundId);
    return { status: 404, body: { name: 'RESOURCE_NOT_FOUND', message: 'no such resource' } };
  }

  function grant(request: IncomingMessage, text: string): FakeAnswer {
    const expected = Buffer.from(`${FAKE_CLIENT_ID}:${FAKE_CLIENT_SECRET}`).toString('base64');
    if (request.headers.authorization !== `Basic ${expected}`) {
      return {
        status: 401,
        body: { error: 'invalid_client', error_description: 'Client Authentication failed' },
      };
    }
    if (text !== 'grant_type=client_credentials')
      return { status: 400, body: { error: 'unsupported_grant_type' } };
    const token = `A21AA${randomBytes(24).toString('base64url')}`;
    tokens.set(token, nowMs() + EXPIRES_IN_S * 1_000);
    return {
      status: 200,
      body: { access_token: token, token_type: 'Bearer', expires_in: EXPIRES_IN_S, scope: 'x', nonce: 'y' },
    };
  }

  /** PayPal's own verification, over the event's bytes exactly as in the request. */
  function verify(text: string): FakeAnswer {
    const asked = JSON.parse(text) as Record<string, string>;
    const raw = text.slice(text.indexOf('"webhook_event":') + '"webhook_event":'.length, -1);
    const {
      transmission_id: id,
      transmission_time: time,
      webhook_id: webhook,
      transmission_sig: signature,
    } = asked;
    const isGenuine = createVerify('RSA-SHA256')
      .update(`${id}|${time}|${webhook}|${crc32(Buffer.from(raw))}`)
      .verify(signer.publicKey, signature ?? '', 'base64');
    return { status: 200, body: { verification_status: isGenuine ? 'SUCCESS' : 'FAILURE' } };
  }

  /** A notification, signed as PayPal signs it. */
  function notify(event: Json | string, over: { atMs?: number; webhookId?: string } = {}): RawNotification {
    const body = Buffer.from(typeof event === 'string' ? event : JSON.stringify(event));
    const id = randomUUID();
    const time = new Date(over.atMs ?? Date.now()).toISOString();
    const signed = `${id}|${time}|${over.webhookId ?? FAKE_WEBHOOK_ID}|${crc32(body)}`;
    const headers: Record<string, string> = {
      'paypal-transmission-id': id,
      'paypal-transmission-time': time,
      'paypal-transmission-sig': createSign('RSA-SHA256').update(signed).sign(signer.privateKey, 'base64'),
      'paypal-cert-url':
        'https://api.sandbox.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-1d93a270',
      'paypal-auth-algo': 'SHA256withRSA',
    };
    return { header: (name) => headers[name], query: '', body };
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await textOf(request);
    const { pathname, searchParams } = new URL(request.url ?? '/', url);
    if (pathname.startsWith('/checkoutnow')) return page(pathname, searchParams.get('token') ?? '', response);
    const call = `${request.method} ${pathname}`;
    const chain = FAKE_CHAINS[/^GET \/v1\/notifications\/certs\/(.+)$/.exec(call)?.[1] ?? ''];
    requests.push({
      call,
      requestId: header(request, 'paypal-request-id'),
      headers: request.headers,
      body: text,
    });

    const at = troubles.findIndex((one) => one.call.test(call));
    const trouble = at < 0 ? undefined : troubles.splice(at, 1)[0]?.trouble;
    if (trouble === 'lost before') return void request.socket.resetAndDestroy();
    if (trouble === 'error before') return send(response, { status: 503, body: { name: 'X', message: 'x' } });
    if (typeof trouble === 'object') return send(response, trouble);
    if (chain !== undefined) return void response.writeHead(200).end(chain);
    const answer = answerTo(request, pathname, text);
    if (trouble === 'lost after') return void request.socket.resetAndDestroy();
    if (trouble === 'error after')
      return send(response, { status: 500, body: { name: 'INTERNAL_SERVER_ERROR', message: 'x' } });
    if (trouble === 'no answer') return;
    const isMinimal =
      answer.status < 300 &&
      header(request, 'prefer') !== 'return=representation' &&
      request.method === 'POST';
    send(response, isMinimal && pathname.startsWith('/v2/') ? minimal(answer) : answer);
  }

  /** The page on which the payer agrees or goes back. */
  function page(path: string, token: string, response: ServerResponse): void {
    const order = ledger.find(token);
    if (!order) return void response.writeHead(404).end('This order has expired.');
    if (path === '/checkoutnow') {
      const button = (name: string) =>
        `<a id="${name}" href="/checkoutnow/${name}?token=${token}">${name}</a>`;
      response.writeHead(200, { 'content-type': 'text/html' });
      return void response.end(
        `<!doctype html><title>PayPal (fake)</title>${button('approve')} ${button('cancel')}`,
      );
    }
    if (path === '/checkoutnow/approve') approve(token);
    const back =
      path === '/checkoutnow/approve'
        ? `${order.returnUrl}?token=${token}&PayerID=QYR5Z8XDVJNXQ`
        : `${order.cancelUrl}?token=${token}`;
    response.writeHead(302, { location: back }).end();
  }

  function approve(orderId: string): void {
    const order = ledger.find(orderId);
    if (order?.status !== 'PAYER_ACTION_REQUIRED') throw new Error('no such order to approve');
    order.status = 'APPROVED';
  }

  const site = await startSite((request, response) => void serve(request, response));
  url = site.url;

  return {
    url,
    ledger,
    requests,
    approve,
    notify,
    /** Sets a fault for the next request of a call. */
    trouble: (call: RegExp, trouble: Trouble) => void troubles.push({ call, trouble }),
    /** Makes PayPal forget every issued token. */
    revokeTokens: () => tokens.clear(),
    close: site.close,
  };
}

/** Without `Prefer: return=representation`, the response omits the ids and amounts of created objects. */
function minimal({ status, body }: FakeAnswer): FakeAnswer {
  return { status, body: { id: body?.id, status: body?.status, links: body?.links ?? [] } };
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
}

function send(response: ServerResponse, { status, body }: FakeAnswer): void {
  const text = JSON.stringify(body ?? {});
  response
    .writeHead(status, { 'content-type': 'application/json', 'paypal-debug-id': 'f7a2b1c3d4e5f' })
    .end(text);
}
