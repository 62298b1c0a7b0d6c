import { type Dispatcher, Pool } from 'undici';
import type { Secret } from '#src/secret.ts';
import { createSlots } from '#src/slots.ts';
import { isOnThisMachine, proxyConnector } from './proxy-tunnel.ts';

/** Outbound HTTP/1.1 to one provider. It never repeats a request, follows no redirect and asks for no compression. */
export type HttpClient = {
  /** Sends one request, once. Never throws, and resolves within `timeoutMs` and by the request's own deadline. */
  request(request: HttpRequest): Promise<HttpResult>;
  /** Waits for the requests in flight, then closes every socket. Later requests are `not_sent`. */
  close(): Promise<void>;
};

/** A provider's origin, and the limits on its requests. */
export type HttpClientOptions = {
  /** Scheme, host and port: `https://api.provider.example`. */
  readonly origin: string;
  /** One deadline for everything: connecting, sending, and receiving the response's last byte. */
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  /**
   * Maximum number of requests in flight, each on its own socket; further requests are `not_sent`. Default: no limit.
   */
  readonly maxInFlight?: number;
  /** URL of the forward proxy to connect through, which may contain a password. An origin on this machine ignores it. */
  readonly proxy?: Secret | undefined;
};

/** One call. */
export type HttpRequest = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Begins with a slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /**
   * Deadline for the result, on the clock of `performance.now()`; the client's `timeoutMs` still applies. An attempt
   * that makes several requests gives each the same deadline. A request whose deadline has already passed is
   * `not_sent`.
   */
  readonly deadlineAtMs?: number;
};

/**
 * Response headers that connectors see, in lower case: they distinguish outcomes, identify requests, and give the
 * provider's time.
 */
const ANSWER_HEADERS = [
  'content-type',
  'date',
  'idempotent-replayed',
  'paypal-debug-id',
  'pspreference',
  'request-id',
  'retry-after',
  'stripe-should-retry',
  'transient-error',
  'x-request-id',
] as const;

/** Response headers by name. A header that was sent twice, or is longer than 256 characters, is left out. */
export type AnswerHeaders = Readonly<Partial<Record<(typeof ANSWER_HEADERS)[number], string>>>;

/**
 * The known result of a request. `detail` is a phase and an error code ("awaiting the response: UND_ERR_SOCKET"), never
 * a body, a header or an address.
 */
export type HttpResult =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: AnswerHeaders;
      readonly body: Uint8Array;
    }
  /** It is certain that no byte of the request was written to a socket. */
  | {
      readonly kind: 'not_sent';
      readonly detail: string;
      /** `turned_away`: by the client's own limit, which says nothing about the provider. */
      readonly because: 'unreachable' | 'turned_away';
    }
  /** Some of the request may have reached the provider. */
  | { readonly kind: 'unknown'; readonly detail: string };

/** The code at the end of a `detail`, if the request's deadline has passed. */
export const DEADLINE = 'DEADLINE';

const KEEP_ALIVE_MS = 4_000;
const MAX_KEEP_ALIVE_MS = 30_000;
const MAX_HEADER_LENGTH = 256;
const ERROR_CODE = /^[A-Z][A-Z0-9_]{0,63}$/;

/**
 * Encodes a body into memory of its own. Buffer.from, which undici uses for strings, takes it from a block of 64 KiB, and
 * the body would keep that whole block in memory until the provider answers.
 */
const UTF8 = new TextEncoder();

/** Thrown or passed to undici to end a request whose result is already settled; nothing else sees it. */
const ABANDONED = new Error('abandoned');

/**
 * Creates the only outbound path to a provider.
 *
 * @throws Error if the origin is not http(s).
 */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { proxy } = options;
  const isDirect = !proxy || isOnThisMachine(options.origin);
  const pool = new Pool(options.origin, {
    ...(!isDirect && { connect: proxyConnector(proxy, options.timeoutMs) }),
    // Without a limit, no request waits for another's socket.
    connections: null,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: MAX_KEEP_ALIVE_MS,
    connectTimeout: options.timeoutMs,
    // Disabled: the deadline below covers both phases, to the millisecond and without a gap between them.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const inFlight = createSlots(options.maxInFlight ?? Number.POSITIVE_INFINITY);
  let whenIdle: (() => void) | undefined;
  let closed: Promise<void> | undefined;

  async function request(httpRequest: HttpRequest): Promise<HttpResult> {
    if (closed) return notSent('CLOSED');
    const nowMs = performance.now();
    const dueMs = Math.min(httpRequest.deadlineAtMs ?? Number.POSITIVE_INFINITY, nowMs + options.timeoutMs);
    if (dueMs <= nowMs) return notSent(DEADLINE);
    const release = inFlight.take();
    if (!release) return notSent('TOO_MANY_IN_FLIGHT', 'turned_away');
    const result = await exchange(pool, httpRequest, dueMs - nowMs, options.maxResponseBytes);
    release();
    if (inFlight.count() === 0) whenIdle?.();
    return result;
  }

  async function closePool(): Promise<void> {
    const idle = Promise.withResolvers<void>();
    whenIdle = idle.resolve;
    if (inFlight.count() > 0) await idle.promise;
    await pool.destroy();
  }

  function close(): Promise<void> {
    closed ??= closePool();
    return closed;
  }

  return { request, close };
}

/**
 * Makes one request. `not_sent` is certain because undici calls `onRequestStart` right before it writes the first byte,
 * in the same turn (writeH1 in undici's client-h1.js), and only once the socket is connected and TLS is set up. Until
 * it is called, or if it throws, nothing was written; once it has returned, everything may have been written.
 *
 * undici puts a request back in its queue when a socket closes for a reason of undici's own. That would cause a second
 * `onRequestStart`, which is refused before any byte is written again.
 */
function exchange(
  pool: Pool,
  request: HttpRequest,
  timeoutMs: number,
  maxResponseBytes: number,
): Promise<HttpResult> {
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | undefined;
    let settled = false;
    let status = 0;
    let headers: AnswerHeaders = {};
    let size = 0;
    const chunks: Buffer[] = [];

    function settle(result: HttpResult): void {
      // Stryker disable next-line ConditionalExpression: a promise ignores all but its first result
      if (settled) return;
      settled = true;
      clearTimeout(deadline);
      resolve(result);
    }

    function fail(code: string): void {
      if (controller === undefined) settle(notSent(code));
      else if (status === 0) settle({ kind: 'unknown', detail: `awaiting the response: ${code}` });
      else settle({ kind: 'unknown', detail: `reading the response: ${code}` });
    }

    const deadline = setTimeout(() => {
      fail(DEADLINE);
      // Destroys the socket. A request whose socket is still connecting has no controller, and is refused afterwards.
      controller?.abort(ABANDONED);
    }, timeoutMs);

    const body = request.body === undefined ? null : UTF8.encode(request.body);
    pool.dispatch(
      { method: request.method, path: request.path, headers: request.headers, body },
      {
        onRequestStart(started) {
          if (controller !== undefined) fail('RESEND_REFUSED');
          // Thrown rather than aborted: aborting would destroy a healthy socket that others can use.
          if (settled) throw ABANDONED;
          controller = started;
        },
        onResponseStart(_controller, statusCode, received) {
          // A 1xx response precedes the final one.
          if (statusCode < 200) return;
          status = statusCode;
          headers = shownHeaders(received);
        },
        onResponseData(current, chunk) {
          size += chunk.length;
          if (size <= maxResponseBytes) {
            chunks.push(chunk);
            return;
          }
          fail('ANSWER_TOO_LARGE');
          current.abort(ABANDONED);
        },
        onResponseEnd() {
          const body = (chunks.length === 1 && chunks[0]) || Buffer.concat(chunks);
          settle({ kind: 'answer', status, headers, body });
        },
        onResponseError(_controller, error) {
          fail(codeOf(error));
        },
      },
    );
  });
}

function shownHeaders(received: Readonly<Record<string, string | string[] | undefined>>): AnswerHeaders {
  const shown: Partial<Record<(typeof ANSWER_HEADERS)[number], string>> = {};
  for (const name of ANSWER_HEADERS) {
    const value = received[name];
    if (typeof value === 'string' && value.length <= MAX_HEADER_LENGTH) shown[name] = value;
  }
  return shown;
}

function notSent(code: string, because: 'unreachable' | 'turned_away' = 'unreachable'): HttpResult {
  return { kind: 'not_sent', detail: `before sending: ${code}`, because };
}

/** Returns an error's code, if any. Messages are not used: they contain addresses and parts of responses. */
function codeOf(error: Error): string {
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' && ERROR_CODE.test(code) ? code : 'UNKNOWN_ERROR';
}
