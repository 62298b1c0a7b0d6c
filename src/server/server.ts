import { randomUUIDv7 } from 'node:crypto';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { Logger } from 'pino';
import type { Catalogue } from '#gen/payments/config/catalogue_pb.js';
import { createAdmission } from '#src/api/admission.ts';
import type { Config } from '#src/config.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { createFigures, type Figures } from '#src/dashboard/figures.ts';
import { mountDashboard } from '#src/dashboard/mount-dashboard.ts';
import { createMetrics, type Metrics } from '#src/observe/metrics.ts';
import {
  observeCatalogue,
  observeDatabase,
  observeDeliveries,
  observePayments,
  observeReloads,
  observeVault,
  showHealth,
} from '#src/observe/observe.ts';
import { observeNotifications, observeOpenOutcomes, observeRecovery } from '#src/observe/observe-recovery.ts';
import { createTracing, NO_TRACING } from '#src/observe/tracing.ts';
import type { UnaskableOutcomes } from '#src/payments/open-outcomes.ts';
import { createApprovalRates } from '#src/routing/approval-rates.ts';
import type { Database } from '#src/store/database.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { hashKeys, type InstallationKeys } from '#src/vault/key-file.ts';
import { DEFAULT_SETTINGS } from '#src/webhooks/start-webhooks.ts';
import { createApplication, listen } from './application.ts';
import { createBackground } from './background.ts';
import { dashboardDeps, withCounted, withDelivered, withPaid } from './dashboard-deps.ts';
import { createLiveCatalogue } from './live-catalogue.ts';
import { mountApi } from './mount-api.ts';
import { mountCheckout } from './mount-checkout.ts';
import { mountPages } from './mount-pages.ts';
import { mountProviders } from './mount-providers.ts';
import { mountSandbox } from './mount-sandbox.ts';
import { paymentDeps } from './payment-deps.ts';

/** Options of a server. The process has the database open and migrated. */
export type ServerOptions = {
  readonly config: Config;
  readonly catalogue: Catalogue;
  readonly keys: InstallationKeys;
  readonly database: Database;
  /** Database in which the sandbox provider keeps its ledger. */
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
  const { identityKey, sandboxApiKey, ...hashed } = hashKeys(options.keys.hashKey);
  let address = '';

  const live = createLiveCatalogue({
    connectors: CONNECTORS,
    environment: (name) => config.environment(name) ?? sandbox?.environment[name],
    identityKey,
    rates: createApprovalRates(),
    observer: observeCatalogue(log),
    nowMs: options.nowMs,
  });
  const { opened, connections } = live;
  const figures = createFigures();
  const admission = createAdmission(config, (limit) => metrics.refusals.inc({ limit }));
  const deps = paymentDeps(config, admission, {
    database,
    ...hashed,
    vault: observeVault(cardVault(options.keys.vaultKeys), log),
    catalogue: opened,
    connections: () => opened().reachable,
    publicUrl: () => config.publicUrl ?? address,
    observer: withPaid(figures, observePayments(metrics, tracing, log)),
    eventWritten: () => background.eventWritten(),
  });
  // Webhook secrets are sealed by the vault too, but its log is of cards.
  const webhooks = { database, vault: cardVault(options.keys.vaultKeys) };
  const allowPrivate = config.webhooksAllowPrivate;
  const followUps = { ...deps, ...observeBackground(metrics, figures, log), connections };
  const background = createBackground({
    ...followUps,
    isLeftAlone: (id) => live.health().get(id)?.isLeftAlone() ?? false,
    webhooks: {
      ...webhooks,
      observer: withDelivered(figures, observeDeliveries(metrics, log)),
      settings: { ...DEFAULT_SETTINGS, allowPrivate },
    },
    intervalMs: config.recoveryIntervalMs,
  });

  const app = createApplication(config, { log, metrics, tracing });
  const inFlight = new Set<Promise<unknown>>();
  const manageWebhooks = { ...webhooks, allowPrivate, newId: randomUUIDv7, wake: background.wakeWebhook };
  mountApi(app, {
    config,
    admission,
    deps,
    webhooks: manageWebhooks,
    customers: { database, requestHashKey: deps.requestHashKey, newId: randomUUIDv7 },
    opened,
    metrics,
    database,
    ownOrigin: () => URL.parse(deps.publicUrl())?.origin,
    ready: live.isOpen,
    inFlight,
    collect: () => live.isOpen() && showHealth(metrics, live.health()),
  });
  mountProviders(app, {
    receive: { ...followUps, nowMs: () => timestampMs(deps.now()), notifications: followUps.processed },
    payer: followUps,
    checkoutPage: config.checkoutPage,
    wake: background.wakeNotifications,
  });
  if (config.checkoutPage) mountCheckout(app, deps);
  mountPages(app, config);
  if (config.dashboard) {
    const shown = { operations: deps, webhooks: manageWebhooks, figures, opened, inFlight };
    mountDashboard(app, dashboardDeps(config, shown));
  }
  const sandbox = config.sandbox
    ? await mountSandbox(app, { ...options, address: () => address, apiKey: sandboxApiKey })
    : undefined;
  let unaskable: readonly UnaskableOutcomes[] = [];

  return {
    async listen() {
      address = await listen(app, config);
      live.open(options.catalogue, sandbox ? { SANDBOX_URL: await sandbox.listen() } : {});
      unaskable = await background.start();
      return address;
    },
    replaceCatalogue(catalogue) {
      live.replace(catalogue, inFlight);
      background.lookAtOpenOutcomes();
    },
    unaskable: () => unaskable,
    reloaded: observeReloads(metrics, log),
    async close() {
      await app.close();
      // The listener does not wait for clients that left before their response, but their work is finished.
      await Promise.allSettled(inFlight);
      await background.stop();
      await live.close();
      await sandbox?.close();
      await tracing.shutdown();
    },
  };
}

function observeBackground(metrics: Metrics, figures: Figures, log: Logger) {
  return {
    recovery: observeRecovery(metrics, log),
    processed: observeNotifications(metrics, log),
    openOutcomes: withCounted(figures, observeOpenOutcomes(metrics, log)),
    onSweepError: (err: unknown) =>
      log.warn({ err }, 'deleting expired one-time tokens failed; it is tried again'),
    onBackfillError: (err: unknown) =>
      log.warn({ err }, 'filling in what the release before did not write failed'),
  };
}
