import { randomUUID } from 'node:crypto';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import type { Logger } from 'pino';
import { type ClientAddress, trusts } from '#src/api/client-address.ts';
import { answerError, answerErrors } from '#src/api/error-handler.ts';
import { addressGroup } from '#src/api/shares.ts';
import type { Config } from '#src/config.ts';
import { createListener } from '#src/listener/listener.ts';
import { LISTENER_LIMITS } from '#src/listener/listener-limits.ts';
import type { Metrics } from '#src/observe/metrics.ts';
import { observeRequests } from '#src/observe/observe-requests.ts';
import type { Tracing } from '#src/observe/tracing.ts';

/**
 * Headers of every response. Responses may contain personal data, so proxies must not store them, and browsers must not
 * guess their type.
 */
const RESPONSE_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

/** Creates the application without routes, but with the listener, request ids, request metrics and error responses. */
export function createApplication(
  config: Config,
  { log, metrics, tracing }: { readonly log: Logger; readonly metrics: Metrics; readonly tracing: Tracing },
  clientAddress: ClientAddress,
): FastifyInstance {
  const isTrusted = trusts(config.trustedProxies);
  const app = Fastify({
    ...createListener({
      ...(config.tls && { tls: config.tls }),
      limits: {
        drainTimeoutMs: config.drainTimeoutMs,
        maxConnectionsPerClient: Math.ceil(
          LISTENER_LIMITS.maxConnections * (config.addressSharePercent / 100),
        ),
      },
      clientAt: (peer) => (isTrusted(peer) ? undefined : addressGroup(peer)),
    }),
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    frameworkErrors: answerError,
    routerOptions: { ignoreTrailingSlash: true },
    requestIdHeader: false,
    // Node takes UUIDs from a pool of random bytes, which is much cheaper than generating bytes per request.
    genReqId: () => randomUUID().replaceAll('-', '').slice(-24),
    // Draining connections still accept requests: /readyz tells load balancers to stop, not a 503.
    return503OnClosing: false,
  });
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({ 'x-request-id': request.id, ...RESPONSE_HEADERS });
    done();
  });
  observeRequests(app, metrics, tracing, clientAddress, (request) => isTrusted(request.ip ?? ''));
  answerErrors(app);
  return app;
}

/** Listens on the configured address. @returns a URL that a client on this machine can use. */
export async function listen(app: FastifyInstance, { host, port, tls }: Config): Promise<string> {
  const address = await app.listen({ host, port });
  // A client cannot connect to a wildcard address.
  const url = address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
  // Fastify does not know that the listener uses TLS.
  return tls ? url.replace('http:', 'https:') : url;
}
