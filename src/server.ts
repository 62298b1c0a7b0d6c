import { hkdfSync, randomBytes } from 'node:crypto';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { Logger } from 'pino';
import { Health } from '../gen/grpc/health/v1/health_pb.js';
import type { Catalogue } from '../gen/payments/config/catalogue_pb.js';
import { PaymentSchema } from '../gen/payments/v1/payment_pb.js';
import { PaymentService } from '../gen/payments/v1/payment_service_pb.js';
import { createAuthenticate } from './api/authenticate.ts';
import { answerErrors } from './api/error-handler.ts';
import { createHealth } from './api/health.ts';
import { createListener } from './api/listener.ts';
import { type PaymentHandlers, paymentService } from './api/payment-service.ts';
import { reflectionRoutes } from './api/reflection.ts';
import { restRoutes } from './api/rest.ts';
import { RPC_OPTIONS, rpcRoutes } from './api/rpc.ts';
import { jsonEncoder } from './api/wire-json-encode.ts';
import { openCatalogue } from './catalogue.ts';
import type { Config } from './config.ts';
import { CONNECTORS } from './connectors/registry.ts';
import { createMetrics } from './metrics.ts';
import { observeDatabase, observePayments, observeRecovery, observeRequests } from './observe.ts';
import { systemClock } from './payments/clock.ts';
import type { Caller, PaymentParts } from './payments/create-payment.ts';
import { PaymentError } from './payments/payment-error.ts';
import type { OpenCatalogue } from './payments/prepare-payment.ts';
import { startRecovery } from './payments/recover-payments.ts';
import { sandboxProvider } from './sandbox/sandbox-provider.ts';
import { findAccountKeys } from './store/accounts.ts';
import { type Database, isUnavailable } from './store/database.ts';
import { createTracing, NO_TRACING } from './tracing.ts';
import { cardVault } from './vault/card-vault.ts';
import type { InstallationKeys } from './vault/key-file.ts';

/** The parts that the process has made ready. */
export type ServerOptions = {
  readonly config: Config;
  readonly catalogue: Catalogue;
  readonly keys: InstallationKeys;
  readonly database: Database;
  /** Where the sandbox provider keeps its ledger. */
  readonly databaseUrl: string;
  readonly log: Logger;
};

/** A whole service, put together. */
export type Server = {
  /** Starts to listen and opens the catalogue's connections. @returns the address, such as http://127.0.0.1:8080. */
  listen(): Promise<string>;
  /** Stops accepting, finishes what is in flight, then lets go of everything but the database. */
  close(): Promise<void>;
};

/** Puts the parts together: the only wiring. Nothing listens yet. */
export async function createServer(options: ServerOptions): Promise<Server> {
  const { config, log } = options;
  const metrics = createMetrics();
  const tracing = config.otlpEndpoint ? createTracing(config.otlpEndpoint) : NO_TRACING;
  const database = observeDatabase(options.database, metrics, tracing);
  const draining = new AbortController();
  const inFlight = new Set<Promise<unknown>>();
  let open: (OpenCatalogue & { close(): Promise<void> }) | undefined;

  const parts: PaymentParts = {
    database,
    vault: cardVault(options.keys.vaultKeys),
    ...hashKeys(options.keys.hashKey),
    catalogue: () => open ?? notOpen(),
    now: systemClock(),
    encodeAnswer: textEncoder(jsonEncoder(PaymentSchema)),
    patience: { waitMs: config.inProgressWaitMs, retryAfterS: 1 },
    observer: observePayments(metrics, tracing, log),
  };

  let address = '';
  const app = Fastify({
    ...createListener({
      ...(config.tls && { tls: config.tls }),
      limits: { drainTimeoutMs: config.drainTimeoutMs },
    }),
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    requestIdHeader: false,
    genReqId: () => randomBytes(12).toString('hex'),
    // Draining connections still carry requests: those are refused by readiness, not by a bare 503.
    return503OnClosing: false,
  });
  observeRequests(app, metrics, tracing);
  answerErrors(app);
  app.addHook('preClose', async () => draining.abort());
  mountApi(app, {
    parts,
    metrics,
    draining: draining.signal,
    database,
    ready: () => open !== undefined,
    inFlight,
  });
  const sandbox = config.sandbox ? await mountSandbox(app, options, () => address) : undefined;
  let stopRecovery: (() => Promise<void>) | undefined;

  return {
    async listen() {
      address = reachable(await app.listen({ host: config.host, port: config.port }));
      const sandboxUrl = await sandbox?.listen();
      open = openCatalogue(options.catalogue, {
        connectors: CONNECTORS,
        environment: (name) => config.environment(name) ?? sandbox?.environment[name],
        variables: sandboxUrl === undefined ? {} : { SANDBOX_URL: sandboxUrl },
      });
      const { connections } = open;
      const recovery = observeRecovery(metrics, log);
      stopRecovery = startRecovery(
        { ...parts, recovery, connections: () => connections },
        { intervalMs: config.recoveryIntervalMs },
      );
      return address;
    },
    async close() {
      await app.close();
      // Who left before the answer is not waited for by the listener, but what was begun for them is finished.
      await Promise.allSettled(inFlight);
      await stopRecovery?.();
      await open?.close();
      await sandbox?.close();
      await tracing.shutdown();
    },
  };
}

type Sandbox = {
  /** @returns the provider's address for connectors. */
  listen(): Promise<string>;
  /** What its connections find in the environment when nobody set it. */
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
};

/**
 * Mounts the sandbox provider: its pages at our own address, for payers, and all of it at a door on loopback, for
 * connectors. That door needs no certificate, and is still open for payments in flight while ours drains.
 */
async function mountSandbox(
  app: FastifyInstance,
  options: ServerOptions,
  address: () => string,
): Promise<Sandbox> {
  const { config, databaseUrl } = options;
  const apiKey = config.environment('SANDBOX_API_KEY') ?? randomBytes(16).toString('hex');
  const provider = {
    prefix: SANDBOX_PREFIX,
    databaseUrl,
    publicUrl: () => config.sandboxPublicUrl ?? `${address()}${SANDBOX_PREFIX}`,
    apiKeys: [apiKey],
  };
  const door = Fastify({ logger: false });
  await app.register(sandboxProvider, provider);
  await door.register(sandboxProvider, provider);
  return {
    listen: async () => `${await door.listen({ host: '127.0.0.1', port: 0 })}${SANDBOX_PREFIX}`,
    environment: { SANDBOX_API_KEY: apiKey },
    close: () => door.close(),
  };
}

const SANDBOX_PREFIX = '/sandbox';

type Api = {
  readonly parts: PaymentParts;
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly database: Database;
  readonly draining: AbortSignal;
  readonly ready: () => boolean;
  readonly inFlight: Set<Promise<unknown>>;
};

function mountApi(app: FastifyInstance, api: Api): void {
  const { parts, metrics, database } = api;
  const authenticate = createAuthenticate((publicKey) =>
    unavailableAsSuch(findAccountKeys(database, publicKey)),
  );
  const openCall = async (header: (name: string) => string | undefined): Promise<Caller> => ({
    ...(await authenticate(header)),
    idempotencyKey: header('x-idempotency-key'),
  });
  const service = paymentService(parts);
  const handlers: PaymentHandlers = {
    ...service,
    createPayment: (request, caller) => tracked(api.inFlight, service.createPayment(request, caller)),
  };
  const services = [PaymentService, Health];
  const health = createHealth({
    services,
    draining: api.draining,
    readiness: { check: async () => api.ready() && (await database.check().then(() => true)) },
  });
  const onError = (err: unknown) => app.log.error({ err }, 'an rpc failed');

  app.register(
    restRoutes<typeof PaymentService, Caller>({
      service: PaymentService,
      handlers,
      openCall: (request) => openCall(headerOf(request)),
    }),
  );
  app.register(fastifyConnectPlugin, {
    ...RPC_OPTIONS,
    routes(router) {
      rpcRoutes({ service: PaymentService, handlers, openCall, onError })(router);
      health.rpcRoutes(router);
      reflectionRoutes(services)(router);
    },
  });
  app.register(health.httpRoutes);
  app.get('/metrics', async (_request, reply) => {
    return reply.type(metrics.registry.contentType).send(await metrics.registry.metrics());
  });
}

function headerOf(request: FastifyRequest): (name: string) => string | undefined {
  return (name) => {
    const value = request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  };
}

/** Remembers work until it ends, so that a shutdown waits for it. */
function tracked<T>(inFlight: Set<Promise<unknown>>, work: Promise<T>): Promise<T> {
  inFlight.add(work);
  const forget = () => inFlight.delete(work);
  work.then(forget, forget);
  return work;
}

async function unavailableAsSuch<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    throw new PaymentError('SERVICE_UNAVAILABLE', 'nothing was sent; try again', {
      retryAfterS: 1,
      cause: error,
    });
  }
}

function notOpen(): never {
  throw new PaymentError('SERVICE_UNAVAILABLE', 'the service is starting', { retryAfterS: 1 });
}

/** One key makes two, so that what one hash tells helps nobody with the other (HKDF, RFC 5869). */
export function hashKeys(key: Uint8Array): { requestHashKey: Uint8Array; fingerprintKey: Uint8Array } {
  const derive = (purpose: string) => new Uint8Array(hkdfSync('sha256', key, '', purpose, 32));
  return { requestHashKey: derive('request hash'), fingerprintKey: derive('card fingerprint') };
}

function textEncoder<M>(encode: (message: M) => string): (message: M) => Uint8Array {
  return (message) => Buffer.from(encode(message));
}

/** An address that a client on this machine can use: a wildcard is none. */
function reachable(address: string): string {
  return address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
