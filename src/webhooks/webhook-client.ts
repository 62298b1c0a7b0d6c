import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector, type Dispatcher, Pool } from 'undici';
import { isPublicAddress } from '#src/public-address.ts';

/** Result of one POST: the receiver's status, or the reason why there is none. */
export type PostResult =
  | { readonly status: number }
  | { readonly status: undefined; readonly error: PostError };

/** Reason why a receiver could not be reached. */
export type PostError =
  | 'TIMEOUT'
  | 'CONNECTION_FAILED'
  | 'NAME_NOT_RESOLVED'
  | 'TLS_FAILED'
  | 'ADDRESS_NOT_ALLOWED';

/** HTTP/1.1 client for one receiver. It follows no redirects, reads at most 4 KB of a response, and never throws. */
export type WebhookClient = {
  post(headers: Readonly<Record<string, string>>, body: string): Promise<PostResult>;
  close(): Promise<void>;
};

/** Limits on a receiver's addresses and response time. */
export type WebhookClientOptions = {
  /** Also allows private, loopback and link-local addresses. */
  readonly allowPrivate: boolean;
  /** Time limit from the call to the first byte of the response. */
  readonly timeoutMs: number;
  readonly maxConnections: number;
  /** Resolves host names; by default the system's resolver. */
  readonly lookup?: LookupFunction;
};

/** Maximum number of bytes read from a response. Only its status matters. */
const MAX_RESPONSE_BYTES = 4 * 1024;
/** Time limit for a response's body. Reading it to the end keeps the connection reusable. */
const BODY_TIMEOUT_MS = 1_000;
const MAX_HEADER_BYTES = 16 * 1024;

/** Creates a client that connects to the receiver at a URL as needed. */
export function createWebhookClient(url: string, options: WebhookClientOptions): WebhookClient {
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, {
    connect: guardedConnector(options),
    connections: options.maxConnections,
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    // The deadlines in `post` apply instead.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return {
    post: (headers, body) =>
      post(pool, { method: 'POST', path: pathname + search, headers, body }, options.timeoutMs),
    close: () => pool.destroy(),
  };
}

class AddressNotAllowedError extends Error {
  readonly code = 'ADDRESS_NOT_ALLOWED';
}

/**
 * Returns a connector that connects only to public addresses. The name is resolved once, as part of connecting, so the
 * address cannot change between the check and the connection.
 */
function guardedConnector(options: WebhookClientOptions): buildConnector.connector {
  const lookup = options.lookup ?? (systemLookup as LookupFunction);
  const base = { timeout: options.timeoutMs };
  if (options.allowPrivate) return buildConnector({ ...base, lookup });
  const connect = buildConnector({ ...base, lookup: publicLookup(lookup) });
  return (target, callback) => {
    // An address in the URL is not resolved.
    const host = target.hostname.replace(/^\[|\]$/g, '');
    if (isIP(host) && !isPublicAddress(host)) {
      callback(new AddressNotAllowedError(), null);
      return;
    }
    connect(target, (...[error, socket]) => {
      if (error) {
        callback(error, null);
      } else if (isPublicAddress(socket.remoteAddress ?? '')) {
        callback(null, socket);
      } else {
        socket.destroy();
        callback(new AddressNotAllowedError(), null);
      }
    });
  };
}

/** Rejects a name with any private address, even if it also has public ones: no honest receiver has one. */
function publicLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, options, (error, address, family) => {
      const addresses = typeof address === 'string' ? [address] : address?.map((one) => one.address);
      if (!error && !addresses?.every(isPublicAddress)) {
        callback(new AddressNotAllowedError(), '', 0);
        return;
      }
      callback(error, address, family);
    });
  };
}

/** Aborts a request whose result is already settled. Callers never see this error. */
const ABANDONED = new Error('abandoned');

function post(pool: Pool, request: Dispatcher.DispatchOptions, timeoutMs: number): Promise<PostResult> {
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | undefined;
    let status: number | undefined;
    let read = 0;
    let settled = false;

    function settle(error: PostError): void {
      settled = true;
      clearTimeout(deadline);
      resolve(status === undefined ? { status, error } : { status });
    }
    function abandon(): void {
      settle('TIMEOUT');
      controller?.abort(ABANDONED);
    }
    let deadline = setTimeout(abandon, timeoutMs);

    pool.dispatch(request, {
      onRequestStart(started) {
        // The request timed out while waiting for a connection and must no longer be sent.
        if (settled) throw ABANDONED;
        controller = started;
      },
      onResponseStart(_controller, statusCode) {
        if (statusCode < 200) return;
        status = statusCode;
        clearTimeout(deadline);
        deadline = setTimeout(abandon, BODY_TIMEOUT_MS);
      },
      onResponseData(current, chunk) {
        read += chunk.length;
        if (read <= MAX_RESPONSE_BYTES) return;
        settle('CONNECTION_FAILED');
        current.abort(ABANDONED);
      },
      onResponseEnd() {
        settle('CONNECTION_FAILED');
      },
      onResponseError(_controller, error) {
        settle(errorOf(error));
      },
    });
  });
}

function errorOf(error: Error): PostError {
  const code = String((error as { code?: unknown }).code ?? '');
  if (code === 'ADDRESS_NOT_ALLOWED') return code;
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'TIMEOUT';
  if (/^(ENOTFOUND|EAI_|ENODATA)/.test(code)) return 'NAME_NOT_RESOLVED';
  return /^(ERR_TLS|ERR_SSL|CERT|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|EPROTO)/.test(code)
    ? 'TLS_FAILED'
    : 'CONNECTION_FAILED';
}
