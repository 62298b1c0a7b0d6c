import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import type { Logger } from 'pino';
import { type Admission, createAdmission } from '#src/api/admission.ts';
import { type ClientAddress, createClientAddress, trusts } from '#src/api/client-address.ts';
import { configurationService } from '#src/api/configuration-service.ts';
import { refuseOtherMethods, sendError, sendErrors } from '#src/api/error-handler.ts';
import type { AddressShare } from '#src/api/limit-at-once.ts';
import { explain, operatorService } from '#src/api/operator-service.ts';
import { createSendExport, type SendExport } from '#src/api/send-export.ts';
import { addressGroup } from '#src/api/shares.ts';
import { createExplainVersion } from '#src/catalogue/explain-version.ts';
import { findDoubts } from '#src/catalogue/find-doubts.ts';
import type { OpenedCatalogue, VersionedCatalogue } from '#src/catalogue/open-catalogue.ts';
import type { Config } from '#src/config.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { createExplainPayment } from '#src/dashboard/explain-payment.ts';
import { type DashboardDeps, mountDashboard } from '#src/dashboard/mount-dashboard.ts';
import { createListener } from '#src/listener/listener.ts';
import { LISTENER_LIMITS } from '#src/listener/listener-limits.ts';
import type { Metrics } from '#src/observe/metrics.ts';
import { observeRequests } from '#src/observe/observe-requests.ts';
import type { Tracing } from '#src/observe/tracing.ts';
import type { UnaskableOutcomes } from '#src/payments/check/open-outcomes.ts';
import { openStoredResponses } from '#src/payments/keys/stored-response.ts';
import { createApprovalRates } from '#src/routing/approval-rates.ts';
import type { Database } from '#src/store/engine/database.ts';
import { type CardVault, cardVault } from '#src/vault/card-vault.ts';
import { hashKeys, type InstallationKeys } from '#src/vault/key-file.ts';
import { DEFAULT_SETTINGS } from '#src/webhooks/start-webhooks.ts';
import type { Parent } from '#src/workers/worker.ts';
import { type Background, type BackgroundDeps, createBackground } from './background.ts';
import { type CatalogueHolder, createCatalogueHolder } from './catalogue-holder.ts';
import { guardNodes } from './guard-nodes.ts';
import { createInFlight, type InFlight } from './in-flight.ts';
import { configurationDeps, mountApi, operatorDeps } from './mount-api.ts';
import { mountCheckout } from './mount-checkout.ts';
import { mountPages } from './mount-pages.ts';
import { mountPayPage } from './mount-pay-page.ts';
import { mountProviders } from './mount-providers.ts';
import { mountSandbox } from './mount-sandbox.ts';
import { createObservers, type Observers } from './observers.ts';
import { type ApiDeps, paymentDeps } from './payment-deps.ts';
import { requireKnownHost } from './require-known-host.ts';

/** Options for a server. The process has opened and migrated the database. */
export type ServerOptions = {
  readonly config: Config;
  readonly catalogue: VersionedCatalogue;
  readonly keys: InstallationKeys;
  readonly database: Database;
  /** The database with the sandbox provider's ledger. */
  readonly databaseUrl: string;
  readonly log: Logger;
  /** Sums the metrics of several workers; set if this process is one of them. */
  readonly parent?: Pick<Parent, 'collectBy' | 'metrics'>;
  /** Monotonic clock of the circuit breakers; by default the process's own. */
  readonly nowMs?: (() => number) | undefined;
};

/** A whole service, wired together. */
export type Server = {
  /** Starts to listen and opens the catalogue's connections. @returns the URL, such as http://127.0.0.1:8080. */
  listen(): Promise<string>;
  /**
   * Puts another catalogue in force. Payments in flight finish on the catalogue that they started with; connections
   * with an unchanged definition stay open and keep their known health.
   *
   * @throws CatalogueError, in which case the previous catalogue stays in force.
   */
  replaceCatalogue(catalogue: VersionedCatalogue): void;
  /** Describes what is doubtful in the catalogue in force: one text a doubt, with its path. */
  readonly doubts: () => string[];
  /** Open outcomes that could not be looked up when the server started to listen. */
  readonly unaskable: () => readonly UnaskableOutcomes[];
  /** Counts and logs the result of a reload. */
  readonly reloaded: (failure: unknown) => void;
  /** Stops accepting calls, finishes the work in flight, then releases everything but the database. */
  close(): Promise<void>;
};

/** Wires the service together; nothing else does. Nothing listens yet. */
export async function createServer(options: ServerOptions): Promise<Server> {
  const { config } = options;
  const observers = await createObservers(config, options.log);
  const { identityKey, sandboxApiKey, ...hashed } = hashKeys(options.keys.hashKey);
  const vault = cardVault(options.keys.vaultKeys);
  let address = '';

  const live = createCatalogueHolder({
    connectors: CONNECTORS,
    environment: (name) => config.environment(name) ?? sandbox?.environment[name],
    identityKey,
    maxInFlight: config.maxInFlight,
    proxyUrl: config.providerProxyUrl,
    rates: createApprovalRates(),
    observer: observers.catalogue,
    nowMs: options.nowMs,
  });
  const admission = createAdmission(config);
  const guarded = await guardNodes(options.database, options.databaseUrl, config, options.log);
  const database = observers.database(guarded.database);
  const deps = paymentDeps(config, admission, {
    database,
    responses: await openStoredResponses(database),
    ...hashed,
    vault: observers.vault(vault),
    catalogue: live.opened,
    connections: () => live.opened().reachable,
    publicUrl: () => config.publicUrl ?? address,
    observer: observers.payments,
    checked: observers.checked,
    settled: observers.notifications.settled,
    wake: (prompted) => background.wakeChecker(prompted),
    eventWritten: () => background.eventWritten(),
  });
  const background = createBackground(backgroundDeps(config, { deps, live, observers, vault }));
  const clientAddress = createClientAddress(config.trustedProxies);
  const app = createApplication(config, observers, clientAddress);
  if (config.sandbox) requireKnownHost(app, config);
  const inFlight = createInFlight();
  const { parent } = options;
  const routed = {
    config,
    admission,
    deps,
    live,
    background,
    observers,
    vault,
    inFlight,
    parent,
    clientAddress,
    sendExport: createSendExport(database, inFlight.track),
  };
  refuseOtherMethods(app, () => mountRoutes(app, routed));
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
    doubts() {
      const { catalogue, connections } = live.opened();
      const doubts = findDoubts(catalogue, { connections, sandbox: config.sandbox, hasAllSecrets: true });
      return doubts.map(({ field, message }) => `${field}: ${message}`);
    },
    unaskable: () => unaskable,
    reloaded: observers.reloaded,
    async close() {
      await app.close();
      // The listener does not wait for clients that disconnected early; their work is finished all the same.
      await inFlight.settled();
      await background.stop();
      await live.close();
      await sandbox?.close();
      await guarded.close();
      await observers.tracing.shutdown();
    },
  };
}

/** Parts of the service that its routes use. */
type Routed = {
  readonly config: Config;
  readonly admission: Admission;
  readonly deps: ApiDeps;
  readonly live: CatalogueHolder;
  readonly background: Background;
  readonly observers: Observers;
  readonly parent: ServerOptions['parent'];
  /** The vault without logging, which seals webhooks' secrets: the log of the vault's use is only about cards. */
  readonly vault: CardVault;
  readonly inFlight: InFlight;
  readonly clientAddress: ClientAddress;
  readonly sendExport: SendExport;
};

/** Mounts every route except the sandbox's. */
function mountRoutes(app: FastifyInstance, routed: Routed): void {
  const { config, deps, live, background, observers, inFlight, clientAddress, sendExport } = routed;
  const share = { clientAddress, addressSharePercent: config.addressSharePercent };
  const webhooks = {
    database: deps.database,
    vault: routed.vault,
    allowPrivate: config.webhooksAllowPrivate,
    newId: randomUUIDv7,
    wake: background.wakeWebhook,
  };
  mountApi(app, { ...routed, webhooks, metrics: observers.metrics });
  mountProviders(app, {
    receive: {
      database: deps.database,
      connections: live.connections,
      nowMs: () => timestampMs(deps.now()),
      notifications: observers.notifications,
      settled: observers.notifications.settled,
      wake: background.wakeChecker,
    },
    payer: {
      ...deps,
      connections: live.connections,
      wakeEnrollments: background.wakeEnrollments,
    },
    track: inFlight.track,
    checkoutPage: config.checkoutPage,
    share,
  });
  mountPayPage(app, deps, share);
  if (config.checkoutPage) mountCheckout(app, deps, { ofSandbox: config.sandbox, share });
  mountPages(app, config);
  if (config.dashboard) {
    const { opened } = live;
    const configuration = configurationService(configurationDeps({ ...routed, webhooks }), 'dashboard');
    const operators = operatorService(operatorDeps(routed));
    const given = {
      operations: deps,
      webhooks,
      opened,
      configuration,
      operators,
      inFlight,
      sendExport,
      takeLarge: routed.admission.takeLarge,
      wakeSettlement: background.wakeSettlement,
      ...share,
    };
    mountDashboard(app, dashboardDeps(config, given));
  }
}

function backgroundDeps(
  config: Config,
  { deps, live, observers, vault }: Pick<Routed, 'deps' | 'live' | 'observers' | 'vault'>,
): BackgroundDeps {
  const { openOutcomes, clock, onSweepError, onFollowError, onSettlementAlarm, settlementFetches } =
    observers;
  return {
    ...deps,
    ...{ openOutcomes, clock, onSweepError, onFollowError, onSettlementAlarm, settlementFetches },
    connections: live.connections,
    openedCatalogue: live.opened,
    isLeftAlone: (id) => live.health().get(id)?.isLeftAlone() ?? false,
    webhooks: {
      database: deps.database,
      vault,
      observer: observers.deliveries,
      settings: { ...DEFAULT_SETTINGS, allowPrivate: config.webhooksAllowPrivate },
    },
    intervalMs: config.recoveryIntervalMs,
  };
}

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
    frameworkErrors: sendError,
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
  observeRequests(app, metrics, tracing, { clientAddress, isTrustedPeer: ({ ip }) => isTrusted(ip ?? '') });
  sendErrors(app);
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

/** Dependencies that the caller provides; the others follow from them. */
type Given = Pick<
  DashboardDeps,
  | 'webhooks'
  | 'configuration'
  | 'operators'
  | 'sendExport'
  | 'takeLarge'
  | 'wakeSettlement'
  | keyof AddressShare
> & {
  readonly operations: ApiDeps;
  readonly opened: () => OpenedCatalogue;
  readonly inFlight: InFlight;
};

/** Completes the dependencies of the dashboard, which shares the API's functions. */
export function dashboardDeps(config: Config, { inFlight, ...given }: Given): DashboardDeps {
  const { operations, opened } = given;
  const { database, now } = operations;
  const explainVersion = createExplainVersion(database, opened);
  return {
    ...given,
    database,
    pageTokenKey: operations.pageTokenKey,
    payerEmailKey: operations.payerEmailKey,
    payerDocumentKey: operations.payerDocumentKey,
    connections: () => opened().reachable,
    connectionIds: () => [...opened().reachable.keys()],
    methodTypes: () => [...opened().types.keys()],
    explain: (request) => explain({ database, opened, explainVersion, now }, request),
    explainPayment: createExplainPayment(explainVersion, opened),
    track: inFlight.track,
    keys: { operate: config.operatorKeys, read: config.operatorReadKeys },
    isSecure: config.tls !== undefined || config.publicUrl?.startsWith('https:') === true,
  };
}
