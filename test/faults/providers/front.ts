import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Acquirer, Call } from './provider.ts';

/** A request to a fake. */
export type FrontRequest = {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly acquirer: Acquirer;
};

export type FrontAnswer = { readonly status: number; readonly contentType: string; readonly body: string };

/** Facts about the provider behind a front. */
export type Dialect = {
  /** Classifies a request by its method, path, headers and body. */
  callOf(head: string): Call | undefined;
  /** The header with a request's idempotency key. */
  readonly keyHeader: string;
  /** Returns the account of a request's credentials, and the headers with credentials that the fake accepts. */
  readonly account: (headers: FrontRequest['headers']) => {
    readonly acquirer: Acquirer;
    readonly headers: FrontRequest['headers'];
  };
  /** Changes a request in transit, for example for one account only. */
  readonly changed?: (request: FrontRequest) => FrontRequest;
  /** Makes a charge that is declined with an ISO 8583 code. @returns the fake's response. */
  readonly decline?: (
    request: FrontRequest,
    code: string,
    ask: (request: FrontRequest) => Promise<FrontAnswer>,
  ) => Promise<FrontAnswer>;
  /** Called for every request to which the fake has responded. */
  readonly heard?: (request: FrontRequest, answer: FrontAnswer) => void;
};

/** A proxy in front of a fake. */
export type Front = {
  readonly port: number;
  /** Causes trouble for charges and operations that contain an id in their body or path. */
  trouble(id: string, word: string): void;
  close(): Promise<void>;
};

const WORD = /sandbox:([a-z_]+)(?::(\w+))?/;
const FAILED: FrontAnswer = { status: 500, contentType: 'text/plain', body: 'it failed' };
const HUGE_BYTES = 10 * 1024 * 1024;
const DRIP_MS = 100;
/** The names of the amount and currency fields of all providers. */
const AMOUNTS = /^(amount|amount_received|amount_capturable|value|unit_price|transaction_amount)$/;
const CURRENCIES = /^(currency|currency_code|currency_id)$/;

/**
 * Starts a proxy in front of a provider's fake. It does to responses what the sandbox does when a description requests
 * it (`sandbox:reset_after`; see sandbox/README.md). A payment's requests contain this word themselves; its operations
 * get the trouble set for the payment. Each idempotency key causes trouble once, and its repeat gets a response.
 */
export async function startFront(fakeUrl: string, dialect: Dialect): Promise<Front> {
  const words = new Map<string, string>();
  const troubled = new Set<string>();
  const ask = (request: FrontRequest) => exchange(fakeUrl, request);

  /** Returns the trouble for a request, but only once. */
  function troubleOf({ method, path, headers, body }: FrontRequest): RegExpExecArray | null {
    const text = `${path} ${body.replaceAll('%3A', ':')}`;
    const named = [...words].find(([id]) => text.includes(id))?.[1];
    const word = WORD.exec(text) ?? WORD.exec(named ?? '');
    const call = dialect.callOf(`${method} ${path} ${JSON.stringify(headers)} ${body}`);
    const key = headers[dialect.keyHeader] ?? '';
    if (!word || (call !== 'charge' && call !== 'operation') || troubled.has(key)) return null;
    troubled.add(key);
    return word;
  }

  /** Stores the ids that a request with trouble created, because later requests name them. */
  function remember({ body }: FrontRequest, answer: FrontAnswer): void {
    const word = WORD.exec(body.replaceAll('%3A', ':'))?.[0];
    const id = /"id":"([^"]{8,})"/.exec(answer.body)?.[1];
    if (word && id) words.set(id, word);
  }

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await readRequest(incoming, dialect);
    const [, kind = '', argument = ''] = troubleOf(request) ?? [];
    if (kind === 'hang_before') return;
    if (kind === 'reset_before') return void incoming.socket.resetAndDestroy();
    if (kind === 'error_before') return write(response, FAILED);
    if (kind === 'late_approval') await sleep(Number(argument));
    const answer =
      kind === 'decline' && dialect.decline
        ? await dialect.decline(request, argument, ask)
        : await ask(request);
    remember(request, answer);
    dialect.heard?.(request, answer);
    after(kind, answer, incoming, response);
  }

  const server = createServer((incoming, response) => {
    // The caller may have disconnected or the fake may be closed; then there is no response to send.
    serve(incoming, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    trouble: (id, word) => void words.set(id, word),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Sends the response unchanged or as the trouble requires. */
function after(kind: string, answer: FrontAnswer, incoming: IncomingMessage, response: ServerResponse): void {
  const { status, contentType, body } = answer;
  const { socket } = incoming;
  const head = `HTTP/1.1 ${status} Answer\r\ncontent-type: ${contentType}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  const say = (said: Partial<FrontAnswer>) => write(response, { ...answer, ...said });
  switch (kind) {
    case 'hang_after':
      break;
    case 'reset_after':
      socket.resetAndDestroy();
      break;
    case 'error_after':
      say(FAILED);
      break;
    case 'html':
      say({ status: 200, contentType: 'text/html', body: '<!doctype html><h1>It works!' });
      break;
    case 'truncated':
      socket.end(head + body.slice(0, body.length / 2));
      break;
    case 'duplicate_approval':
      socket.end((head + body).repeat(2));
      break;
    case 'huge':
      say({ body: body.replace(/}\s*$/, `,"x":"${'x'.repeat(HUGE_BYTES)}"}`) });
      break;
    case 'slow_drip':
      drip(body, head, incoming);
      break;
    case 'wrong_amount':
      say({ body: changedIn(body, AMOUNTS, (value) => value + 1) });
      break;
    case 'wrong_currency':
      say({ body: changedIn(body, CURRENCIES, () => 'CHF') });
      break;
    default:
      say({});
  }
}

function drip(body: string, head: string, { socket }: IncomingMessage): void {
  socket.write(head);
  let sent = 0;
  const timer = setInterval(() => {
    if (sent < body.length) socket.write(body.slice(sent, ++sent));
    else socket.end();
  }, DRIP_MS);
  socket.once('close', () => clearInterval(timer)).on('error', () => {});
}

/** Replaces the values of fields with these names in JSON. A decimal in a string remains one. */
function changedIn(body: string, fields: RegExp, change: (value: number) => number | string): string {
  return JSON.stringify(
    JSON.parse(body, (name, value) => {
      if (!fields.test(name) || typeof value === 'object') return value;
      const changed = change(Number(value));
      return typeof value === 'string' ? String(changed) : changed;
    }),
  );
}

async function readRequest(incoming: IncomingMessage, dialect: Dialect): Promise<FrontRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const told = Object.entries(incoming.headers).filter(
    ([name]) => !/^(host|connection|content-length)$/.test(name),
  );
  const { acquirer, headers } = dialect.account(Object.fromEntries(told) as Record<string, string>);
  const { method = 'GET', url: path = '/' } = incoming;
  const request = { method, path, headers, body: Buffer.concat(chunks).toString(), acquirer };
  return dialect.changed?.(request) ?? request;
}

function exchange(fakeUrl: string, { method, path, headers, body }: FrontRequest): Promise<FrontAnswer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(fakeUrl + path, { method, headers, agent: false }, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      const contentType = response.headers['content-type'] ?? 'application/json';
      resolve({ status: response.statusCode ?? 0, contentType, body: Buffer.concat(chunks).toString() });
    });
    request.once('error', reject);
    request.end(body);
  });
}

function write(response: ServerResponse, { status, contentType, body }: FrontAnswer): void {
  response
    .writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) })
    .end(body);
}
