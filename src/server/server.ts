import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import Fastify, { type FastifyBaseLogger, LogController } from 'fastify';
import type { Logger } from 'pino';
import type { Catalogue } from '#gen/payments/config/catalogue_pb.js';
import { PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { createAdmission } from '#src/api/admission.ts';
import { answerError, answerErrors } from '#src/api/error-handler.ts';
import { type OpenedCatalogue, openCatalogue } from '#src/catalogue/open-catalogue.ts';
import { systemClock } from '#src/clock.ts';
import type { Config } from '#src/config.ts';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { createListener } from '#src/listener/listener.ts';
import { startNotifications } from '#src/notifications/process-notifications.ts';
import { createMetrics } from '#src/observe/metrics.ts';
import {
  observeCatalogue,
  observeDatabase,
  observeDeliveries,
  observePayments,
  observeReloads,
  observeRequests,
  observeVault,
  showHealth,
} from '#src/observe/observe.ts';
import { observeNotifications, observeOpenOutcomes, observeRecovery } from '#src/observe/observe-recovery.ts';
import { createTracing, NO_TRACING } from '#src/observe/tracing.ts';
import { startBackfill } from '#src/payments/backfill-payments.ts';
import type { OperationDeps } from '#src/payments/claim-operation.ts';
import type { PaymentDeps } from '#src/payments/create-payment.ts';
import type { ListDeps } from '#src/payments/list-payments.ts';
import {
  type OpenOutcomesWatch,
  type UnaskableOutcomes,
  watchOpenOutcomes,
} from '#src/payments/open-outcomes.ts';
import { startRecovery } from '#src/payments/recover-payments.ts';
import { createApprovalRates } from '#src/routing/approval-rates.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/database.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { hashKeys, type InstallationKeys } from '#src/vault/key-file.ts';
import { DEFAULT_SETTINGS, startWebhooks, type Webhooks } from '#src/webhooks/start-webhooks.ts';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';
import { mountApi } from './mount-api.ts';
import { mountProviders } from './mount-providers.ts';
import { mountSandbox } from './mount-sandbox.ts';

/** What the process has made ready for the server. */
export type ServerOptions = {
  readonly config: Config;
  readonly catalogue: Catalogue;
  readonly keys: InstallationKeys;
  readonly database: Database;
  /** Where the sandbox provider keeps its ledger. */
  readonly databaseUrl: string;
  readonly log: Logger;
  /** The clock of the circuit breakers, which never goes back; by default that of the process. */
  readonly nowMs?: (() => number) | undefined;
};

/** A whole service, put together. */
export type Server = {
  /** Starts to listen and opens the catalogue's connections. @returns the address, such as http://127.0.0.1:8080. */
  listen(): Promise<string>;
  /**
   * Puts another catalogue in force. Payments in flight finish on the one that they began with; connections that are
   * defined as before stay open, with what is known of their health.
   *
   * @throws CatalogueError; then the one before stays in force.
   */
  replaceCatalogue(catalogue: Catalogue): void;
  /** Open outcomes that could not be looked up when it started to listen. */
  readonly unaskable: () => readonly UnaskableOutcomes[];
  /** Counts and logs how a reload went. */
  readonly reloaded: (failure: unknown) => void;
  /** Stops accepting, finishes what is in flight, then lets go of everything but the database. */
  close(): Promise<void>;
};

/** Wires the service together; the only place that does. Nothing listens yet. */
export async function createServer(options: ServerOptions): Promise<Server> {
  const { config, log } = options;
  const metrics = createMetrics();
  const tracing = config.otlpEndpoint ? createTracing(config.otlpEndpoint) : NO_TRACING;
  const database = observeDatabase(options.database, metrics, tracing);
  const draining = new AbortController();
  const inFlight = new Set<Promise<unknown>>();
  const rates = createApprovalRates();
  let open: OpenedCatalogue | undefined;
  let closing: Promise<unknown> = Promise.resolve();
  const opened = () => open ?? notOpen();

  const { identityKey, sandboxApiKey, ...keys } = hashKeys(options.keys.hashKey);
  let address = '';
  const admission = createAdmission(config, (limit) => metrics.refusals.inc({ limit }));
  const observer = observePayments(metrics, tracing, log);
  const deps: PaymentDeps & OperationDeps & ListDeps = {
    database,
    vault: observeVault(cardVault(options.keys.vaultKeys), log),
    ...keys,
    catalogue: opened,
    connections: () => opened().reachable,
    now: systemClock(),
    publicUrl: () => config.publicUrl ?? address,
    encodeAnswer: textEncoder(jsonEncoder(PaymentSchema)),
    patience: {
      waitMs: config.inProgressWaitMs,
      retryAfterS: 1,
      pause: (ms) => admission.pauseWork(() => sleep(ms)),
    },
    observer: {
      ...observer,
      providerCall: (connectionId, call) =>
        admission.pauseWork(() => observer.providerCall(connectionId, call)),
    },
    eventWritten: () => webhooks?.eventWritten(),
    schedule: config.lookUpSchedule,
  };
  // Its secrets are sealed by the vault too, but its log is of cards.
  const secretVault = cardVault(options.keys.vaultKeys);
  let webhooks: Webhooks | undefined;

  const app = Fastify({
    ...createListener({
      ...(config.tls && { tls: config.tls }),
      limits: { drainTimeoutMs: config.drainTimeoutMs },
    }),
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    frameworkErrors: answerError,
    routerOptions: { ignoreTrailingSlash: true },
    requestIdHeader: false,
    // Node draws UUIDs from a pool, which is much cheaper than random bytes one by one.
    genReqId: () => randomUUID().replaceAll('-', '').slice(-24),
    // Draining connections still carry requests: those are refused by readiness, not by a bare 503.
    return503OnClosing: false,
  });
  observeRequests(app, metrics, tracing);
  answerErrors(app);
  app.addHook('preClose', async () => draining.abort());
  mountApi(app, {
    config,
    admission,
    deps,
    webhooks: {
      database,
      vault: secretVault,
      allowPrivate: config.webhooksAllowPrivate,
      newId: randomUUID,
      wake: (webhook) => webhooks?.wake(webhook),
    },
    opened,
    metrics,
    draining: draining.signal,
    database,
    ready: () => open !== undefined,
    inFlight,
    collect: () => open && showHealth(metrics, open.health),
  });
  const connections = () => open?.reachable ?? new Map<string, ProviderConnection>();
  const followUps = { ...deps, recovery: observeRecovery(metrics, log), connections };
  const notifications = observeNotifications(metrics, log);
  let processing: ReturnType<typeof startNotifications> | undefined;
  mountProviders(app, {
    receive: { database, connections, nowMs: () => timestampMs(deps.now()), notifications },
    payer: followUps,
    wake: () => processing?.wake(),
  });
  const sandbox = config.sandbox
    ? await mountSandbox(app, { ...options, address: () => address, apiKey: sandboxApiKey })
    : undefined;
  let stopRecovery: (() => Promise<void>) | undefined;
  let stopBackfill: (() => Promise<void>) | undefined;
  let openOutcomes: OpenOutcomesWatch | undefined;
  let unaskable: readonly UnaskableOutcomes[] = [];

  let sandboxUrl: string | undefined;
  let probing: NodeJS.Timeout | undefined;

  const openNext = (catalogue: Catalogue) =>
    openCatalogue(
      catalogue,
      {
        connectors: CONNECTORS,
        environment: (name) => config.environment(name) ?? sandbox?.environment[name],
        variables: sandboxUrl === undefined ? {} : { SANDBOX_URL: sandboxUrl },
        identityKey,
        rates,
        observer: observeCatalogue(log),
        nowMs: options.nowMs,
      },
      open,
    );

  return {
    async listen() {
      address = reachable(
        await app.listen({ host: config.host, port: config.port }),
        config.tls !== undefined,
      );
      sandboxUrl = await sandbox?.listen();
      open = openNext(options.catalogue);
      probing = setInterval(() => {
        // So no payment has to be the one that finds out that a pause is over.
        for (const { probeIfDue } of open?.health.values() ?? []) probeIfDue();
      }, PROBE_EVERY_MS);
      stopRecovery = startRecovery(
        { ...followUps, isLeftAlone: (id) => open?.health.get(id)?.isLeftAlone() ?? false },
        { intervalMs: config.recoveryIntervalMs },
      );
      processing = startNotifications(
        { ...followUps, processed: notifications },
        { intervalMs: config.recoveryIntervalMs },
      );
      stopBackfill = startBackfill(database, {
        onError: (err) => log.warn({ err }, 'filling in what the release before did not write failed'),
      });
      openOutcomes = watchOpenOutcomes({
        ...deps,
        openOutcomes: observeOpenOutcomes(metrics, log),
        connections,
      });
      unaskable = await openOutcomes.look();
      webhooks = await startWebhooks({
        database,
        vault: secretVault,
        observer: observeDeliveries(metrics, log),
        settings: { ...DEFAULT_SETTINGS, allowPrivate: config.webhooksAllowPrivate },
      });
      return address;
    },
    replaceCatalogue(catalogue) {
      const before = open;
      if (!before) throw new Error('nothing is open yet');
      const after = openNext(catalogue);
      open = after;
      void openOutcomes?.look();
      const gone = Promise.allSettled([...inFlight]).then(() => before.close(after));
      closing = Promise.allSettled([closing, gone]);
    },
    unaskable: () => unaskable,
    reloaded: observeReloads(metrics, log),
    async close() {
      await app.close();
      clearInterval(probing);
      // Who left before the answer is not waited for by the listener, but what was begun for them is finished.
      await Promise.allSettled(inFlight);
      await Promise.all([stopRecovery?.(), stopBackfill?.()]);
      await Promise.all([processing?.stop(), openOutcomes?.stop(), webhooks?.stop()]);
      await closing;
      await open?.close();
      await sandbox?.close();
      await tracing.shutdown();
    },
  };
}

/** How often it is seen to that connections whose circuit is open are tried again. */
const PROBE_EVERY_MS = 500;

function notOpen(): never {
  throw new ServiceError('SERVICE_UNAVAILABLE', 'the service is starting', { retryAfterS: 1 });
}

function textEncoder<M>(encode: (message: M) => string): (message: M) => Uint8Array {
  return (message) => Buffer.from(encode(message));
}

/** An address that a client on this machine can use: a wildcard is none. */
function reachable(address: string, tls: boolean): string {
  const url = address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
  // Fastify does not know that the listener speaks TLS.
  return tls ? url.replace('http:', 'https:') : url;
}
