import { AsyncLocalStorage } from 'node:async_hooks';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { RefusedBy } from '#src/api/admission.ts';
import type { ClientAddress } from '#src/api/client-address.ts';
import { reasonOf } from '#src/api/errors.ts';
import type { Metrics } from './metrics.ts';
import { sentStatus, type Tracing } from './tracing.ts';

/** A request's line in the log; `open` is undefined once it is written. */
type RequestLine = {
  open: { fields: object; msg: string } | undefined;
  refusedBy?: Limit;
  /** The caller, for the line of a refused call. */
  caller?: object;
};

const requestLine = new AsyncLocalStorage<RequestLine>();
/** The lines of the requests in progress. */
const lines = new WeakMap<FastifyRequest, RequestLine>();

/** Returns the line of a request in progress. */
export function lineOf(request: FastifyRequest): RequestLine | undefined {
  return lines.get(request);
}

/**
 * Logs the result of a request in the request's own line. Writes a separate line outside a request, or if the request's
 * line is already written because the client disconnected or got an unknown outcome.
 */
export function logWithRequest(log: Logger, fields: object, msg: string): void {
  const line = requestLine.getStore();
  if (line?.open) line.open = { fields, msg };
  else log.info(fields, msg);
}

/** The callers' addresses, and the peers whose forwarded headers count. */
type Peers = {
  readonly clientAddress: ClientAddress;
  isTrustedPeer(request: FastifyRequest): boolean;
};

/** Records a span, metrics and, after the response, a log line for each request. */
export function observeRequests(
  app: FastifyInstance,
  metrics: Metrics,
  tracing: Tracing,
  { clientAddress, isTrustedPeer }: Peers,
): void {
  tracing.traceRequests(app, isTrustedPeer);
  const logRefused = logRefusedCalls(app);
  app.addHook('onRequest', (request, reply, done) => {
    metrics.inFlight.inc();
    const remoteAddress = clientAddress(request);
    const line: RequestLine = { open: { fields: {}, msg: 'request' } };
    lines.set(request, line);
    // The raw response also closes when the client disconnects early, and for the rpc protocols.
    reply.raw.once('close', () => {
      const route = request.routeOptions.url ?? 'unknown';
      const status = sentStatus(reply.raw);
      const { fields, msg } = line.open ?? {};
      line.open = undefined;
      metrics.inFlight.dec();
      metrics.requests.observe({ route, status }, reply.elapsedTime / 1000);
      if (QUIET_ROUTES.has(route)) return;
      if (line.refusedBy) return logRefused(line.refusedBy, route);
      const ms = Math.round(reply.elapsedTime);
      const code = reasonOf(request);
      const refused = code && { code, ...line.caller };
      request.log.info(
        { method: request.method, route, status, remote_address: remoteAddress, ms, ...refused, ...fields },
        msg,
      );
    });
    done();
  });
  // Not in an earlier hook: the body is read in the connection's context, not in the request's.
  app.addHook('preHandler', (request, _reply, done) => {
    const line = lines.get(request);
    if (line) requestLine.run(line, done);
    else done();
  });
}

/** Counts calls that a limit refuses, and logs totals instead of each call. */
export function observeRefusals(metrics: Metrics): (request: FastifyRequest, limit: RefusedBy) => void {
  return (request, limit) => countRefusal(metrics, request, limit);
}

/** Counts a call that a limit refuses. @param request the call; by default, the one in progress. */
export function countRefusal(metrics: Metrics, request: FastifyRequest | undefined, limit: Limit): void {
  metrics.refusals.inc({ limit });
  const line = request ? lines.get(request) : requestLine.getStore();
  if (line) line.refusedBy = limit;
}

/** Paths that machines request every few seconds. */
const QUIET_ROUTES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/** A limit that refuses calls: admission's, connection slots or an account's rate. */
type Limit = RefusedBy | 'on_their_way' | 'rate';

/** Pause between two lines about the same limit and route. */
const SUM_MS = 1_000;

/**
 * Logs refused calls as totals: one line per second for each limit and route. In a flood, a line for each call would
 * add no information, but make each refusal a tenth more expensive.
 *
 * @returns a function that adds a call to the total.
 */
function logRefusedCalls(app: FastifyInstance): (limit: Limit, route: string) => void {
  const sums = new Map<string, { readonly limit: Limit; readonly route: string; calls: number }>();
  let timer: NodeJS.Timeout | undefined;

  function write(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const sum of sums.values()) app.log.warn(sum, 'calls refused');
    sums.clear();
  }

  app.addHook('onClose', async () => write());
  return (limit, route) => {
    sums.getOrInsert(`${limit} ${route}`, { limit, route, calls: 0 }).calls += 1;
    timer ??= setTimeout(write, SUM_MS);
  };
}
