import type { IncomingMessage } from 'node:http';
import http, { type ServerResponse } from 'node:http';
import http2, { type Http2Server } from 'node:http2';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { FastifyServerFactory, FastifyServerOptions } from 'fastify';
import { LISTENER_LIMITS, type ListenerLimits } from './listener-limits.ts';
import { routeConnections } from './route-connections.ts';
import { beginExchange, type Connections, createPeerClock, type PeerClock, supervise } from './supervise.ts';

/** Options for a listener. */
export type ListenerOptions = {
  /** PEM certificate chain and private key. Without them, connections are in cleartext. */
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer };
  readonly limits?: Partial<ListenerLimits>;
  /** Returns the client at a peer's address; undefined if many clients connect through it. By default, the address. */
  readonly clientAt?: (address: string) => string | undefined;
};

/** Options for Fastify: `Fastify({ ...createListener(options) })`. */
type Listener = Required<Pick<FastifyServerOptions, 'serverFactory' | 'clientErrorHandler'>>;

type Handler = Parameters<FastifyServerFactory>[0];

/**
 * Listens for HTTP/1.1 (RFC 9112) and HTTP/2 (RFC 9113) on one address. In cleartext, a connection's first bytes show
 * the protocol: HTTP/2 with prior knowledge begins with a fixed preface. Over TLS, ALPN selects it (RFC 7301).
 *
 * `app.close()` drains: it accepts no further connections, closes idle ones, answers on busy HTTP/1.1 connections with
 * `Connection: close`, sends GOAWAY on HTTP/2 connections and lets their streams finish, and cuts the rest after
 * `drainTimeoutMs`.
 *
 * The server is Node's own `http.Server`, except that it routes new connections by protocol. Once the protocol is
 * known, Node owns the socket's native handle, so no bytes pass through this code.
 */
export function createListener(options: ListenerOptions = {}): Listener {
  const limits = { ...LISTENER_LIMITS, ...options.limits };
  const connections: Connections = new Map();
  const clock = createPeerClock();

  function serverFactory(handler: Handler): http.Server {
    const admitted = admit(handler, limits);
    const server = createHttp1Server(noteResponses(admitted, connections, clock), options, limits);
    const http2Server = createHttp2Server(admitted, limits);
    const { tls, clientAt = (address) => address } = options;
    routeConnections({ server, http2Server, connections, clock, limits, isTls: tls !== undefined, clientAt });
    endSilentConnections(server, connections);
    makeCloseDrain(server, connections, limits.drainTimeoutMs);
    const refuseLate = (socket: Socket) =>
      refuseMalformed('ERR_HTTP_REQUEST_TIMEOUT', socket, connections.get(socket)?.response);
    server.once('listening', () => server.once('close', supervise(connections, clock, limits, refuseLate)));
    return server;
  }

  return {
    serverFactory,
    clientErrorHandler: (error, socket) =>
      refuseMalformed(error.code ?? '', socket, connections.get(socket)?.response),
  };
}

function createHttp1Server(handler: Handler, options: ListenerOptions, limits: ListenerLimits): http.Server {
  const settings: http.ServerOptions = {
    headersTimeout: Math.min(limits.headersTimeoutMs, limits.receiveTimeoutMs),
    requestTimeout: limits.receiveTimeoutMs,
    keepAliveTimeout: limits.idleTimeoutMs,
    // Interval at which Node checks for requests past their deadline.
    connectionsCheckingInterval: Math.min(1_000, limits.headersTimeoutMs),
    maxHeaderSize: limits.maxHeaderBytes,
    // TCP keep-alive detects peers that disappear while a response is due.
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    // No upgrade is offered: RFC 9110 lets a server ignore a request for one and respond in HTTP/1.1.
    shouldUpgradeCallback: () => false,
  };
  const server = options.tls
    ? https.createServer(
        {
          ...settings,
          ...options.tls,
          ALPNProtocols: ['h2', 'http/1.1'],
          handshakeTimeout: limits.sniffTimeoutMs,
        },
        handler,
      )
    : http.createServer(settings, handler);
  // One more than allowed, to detect an excess.
  server.maxHeadersCount = limits.maxHeaderFields + 1;
  server.maxConnections = limits.maxConnections;
  // Needed in workers too: if refused connections were passed on, they would circulate forever once all workers are
  // full.
  Object.assign(server, { dropMaxConnection: true });
  server.setTimeout(limits.idleTimeoutMs);
  // A failed accept loses one connection, not the process. Failures to listen reach Fastify's own handler.
  server.on('error', () => {});
  return server;
}

function createHttp2Server(handler: Handler, limits: ListenerLimits): Http2Server {
  return http2.createServer(
    {
      settings: {
        maxConcurrentStreams: limits.maxConcurrentStreams,
        maxHeaderListSize: limits.maxHeaderBytes,
        enablePush: false,
      },
      maxHeaderListPairs: limits.maxHeaderFields,
      streamResetBurst: limits.streamResetBurst,
      streamResetRate: limits.streamResetRatePerS,
      maxSessionMemory: limits.maxSessionMegabytes,
      // Node's own limits apply to SETTINGS entries (32), refused streams (100) and unread ping replies (1,000).
      maxSessionInvalidFrames: limits.maxInvalidFrames,
    },
    // Fastify serves Node's HTTP/2 compatibility API with the same handler; only its types distinguish the two.
    handler as unknown as Parameters<typeof http2.createServer>[1],
  );
}

/** Refuses requests that Node accepts but handlers must not receive. */
function admit(handler: Handler, limits: ListenerLimits): Handler {
  return (request, response) => {
    // RFC 9112, section 3.2: HTTP/1.0 may omit Host. An invalid Host must be refused, and code that builds a URL from
    // it would throw. In HTTP/2, it is ":authority".
    if (request.httpVersion === '1.0') request.headers.host ??= 'localhost';
    const authority = request.headers[':authority'] ?? request.headers.host;
    // rawHeaders alternates between names and values.
    if (request.rawHeaders.length > 2 * limits.maxHeaderFields) refuse(response, 431);
    else if (namesTwoHosts(request) || authority === undefined || !URL.canParse(`http://${authority}`)) {
      refuse(response, 400);
    }
    // HTTP/2 accepts any token as a method; the HTTP/1.1 parser refuses unknown methods.
    else if (!METHODS.has(request.method ?? '')) refuse(response, 400);
    else handler(request, response);
  };
}

const METHODS: ReadonlySet<string> = new Set(http.METHODS);

function refuse(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-length': '0' }).end();
}

/** Tracks the unfinished responses of each HTTP/1.1 connection, and the latest response even when finished. */
function noteResponses(handler: Handler, connections: Connections, clock: PeerClock): Handler {
  return (request, response) => {
    const connection = connections.get(request.socket);
    if (connection) {
      connection.response = response;
      connection.unfinished.set(response, beginExchange(clock));
    }
    // Connect stops reading a body that is too large. The rest must be skipped: the connection's next request follows
    // it.
    request[Symbol.asyncIterator] = () => request.iterator({ destroyOnReturn: false });
    response.once('finish', () => {
      connection?.unfinished.delete(response);
      if (!request.complete) request.removeAllListeners('readable').resume();
    });
    handler(request, response);
  };
}

function isOwed(response: ServerResponse | undefined): response is ServerResponse {
  return response !== undefined && !response.writableFinished;
}

/** Closes inactive HTTP/1.1 connections, except those to which we still owe a response. */
function endSilentConnections(server: http.Server, connections: Connections): void {
  server.on('timeout', (socket) => {
    // While a response is due and the peer reads what we send, the silence is ours: a slow provider, a quiet stream.
    const waitsForUs = isOwed(connections.get(socket)?.response) && socket.writableLength === 0;
    if (!waitsForUs) socket.destroy();
  });
}

/** Replaces `server.close`, which `app.close()` calls, so that it ends the connections of both protocols gracefully. */
function makeCloseDrain(server: http.Server, connections: Connections, timeoutMs: number): void {
  // Node's own version treats a connection as idle once its response is written, even if it is not yet sent or
  // pipelined requests follow.
  server.closeIdleConnections = () => {
    for (const [socket, { session, response }] of connections) {
      if (!session && !isOwed(response)) socket.destroy();
    }
  };
  const close = server.close.bind(server);
  server.close = (callback) => {
    // First closes idle connections.
    close(callback);
    for (const [socket, { session, response }] of connections) {
      session?.close();
      if (!isOwed(response)) continue;
      // Only the last of the pipelined responses may announce the end: later ones would be lost.
      response.shouldKeepAlive = false;
      // If its headers are already sent, they have announced keep-alive, so close explicitly.
      response.once('close', () => socket.destroySoon());
    }
    const cut = setTimeout(() => {
      for (const socket of connections.keys()) socket.destroy();
    }, timeoutMs).unref();
    server.once('close', () => clearTimeout(cut));
    return server;
  };
}

/**
 * Responds to a request that is not HTTP/1.1, or arrives too slowly, with a bare 4xx, and closes the connection. Logs
 * nothing: the error contains the received bytes, which may include a card number.
 */
function refuseMalformed(code: string, socket: Socket, response: ServerResponse | undefined): void {
  if (isOwed(response) && response.req.complete) {
    // The unreadable bytes follow a complete request, which still gets its response.
    response.shouldKeepAlive = false;
    response.once('close', () => socket.destroySoon());
    return;
  }
  const status = refusalStatus(code);
  if (status === undefined || !socket.writable || (isOwed(response) && response.headersSent)) {
    socket.destroy();
    return;
  }
  socket.write(
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
  );
  socket.destroySoon();
}

/** Returns the status of a refusal; undefined if the peer or TLS failed, so that nobody can receive a response. */
function refusalStatus(code: string): number | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 413;
  if (code === 'HPE_HEADER_OVERFLOW') return 431;
  return code.startsWith('HPE_') ? 400 : undefined;
}

/**
 * Reports whether a request names two hosts, in Host, `:authority` or its target. It is refused (RFC 9112, section 3.2;
 * RFC 9113, section 8.3.1), since a proxy may have used the other one.
 */
function namesTwoHosts(request: IncomingMessage): boolean {
  const { host } = request.headers;
  const authority = request.headers[':authority'] ?? host;
  return repeatsHost(request) || differ(host, authority) || targetDiffers(request.url ?? '', authority);
}

/** Reports whether a request has several Host headers: Node keeps only the first in `headers`. */
function repeatsHost({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === HOST.length && name.toLowerCase() === HOST) hosts++;
  }
  return hosts > 1;
}

const HOST = 'host';

function differ(host: string | undefined, authority: string | string[] | undefined): boolean {
  return host !== undefined && host !== authority && host.toLowerCase() !== String(authority).toLowerCase();
}

const ABSOLUTE_FORM = /^[a-z][a-z0-9+.-]*:/i;

/**
 * Reports whether a target in absolute form (RFC 9112, section 3.2.2), as clients send it to proxies, names another host
 * than the request: the target's would count, but handlers read Host.
 */
function targetDiffers(target: string, authority: string | string[] | undefined): boolean {
  if (!ABSOLUTE_FORM.test(target)) return false;
  const url = URL.parse(target);
  return !url || url.host !== URL.parse(`${url.protocol}//${authority}`)?.host;
}
