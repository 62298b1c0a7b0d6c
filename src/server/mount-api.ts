import type { DescService } from '@bufbuild/protobuf';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Health } from '#gen/grpc/health/v1/health_pb.js';
import { ServerReflection } from '#gen/grpc/reflection/v1/reflection_pb.js';
import { ServerReflection as ServerReflectionV1Alpha } from '#gen/grpc/reflection/v1alpha/reflection_pb.js';
import { CheckoutService } from '#gen/payments/v1/checkout_service_pb.js';
import { ConfigurationService } from '#gen/payments/v1/configuration_service_pb.js';
import { CustomerService } from '#gen/payments/v1/customer_service_pb.js';
import { DisputeService } from '#gen/payments/v1/dispute_service_pb.js';
import { OperatorService } from '#gen/payments/v1/operator_service_pb.js';
import { PaymentMethodService } from '#gen/payments/v1/payment_method_service_pb.js';
import { PaymentService } from '#gen/payments/v1/payment_service_pb.js';
import { TokenService } from '#gen/payments/v1/token_service_pb.js';
import { WebhookService } from '#gen/payments/v1/webhook_service_pb.js';
import type { Admission, Ticket } from '#src/api/admission.ts';
import { admitCalls } from '#src/api/admit-calls.ts';
import { createAuthenticate, type ReadHeader } from '#src/api/authenticate.ts';
import { admitBrowsers, type RequireAllowedOrigin } from '#src/api/browser-calls.ts';
import { checkoutService } from '#src/api/checkout-service.ts';
import type { ClientAddress } from '#src/api/client-address.ts';
import { type ConfigurationDeps, configurationService } from '#src/api/configuration-service.ts';
import { customerService } from '#src/api/customer-service.ts';
import { disputeService } from '#src/api/dispute-service.ts';
import { mountExports } from '#src/api/export-routes.ts';
import { serveGrpc } from '#src/api/grpc.ts';
import { createHealth } from '#src/api/health.ts';
import { refuseNotOffered } from '#src/api/not-offered.ts';
import { createOperatorAuthenticate } from '#src/api/operator-key.ts';
import { type OperatorDeps, operatorService } from '#src/api/operator-service.ts';
import { type RefuseCall, refuseRest, refuseRpc } from '#src/api/overload-responses.ts';
import { paymentMethodService } from '#src/api/payment-method-service.ts';
import { paymentService } from '#src/api/payment-service.ts';
import { createRateLimit } from '#src/api/rate-limit.ts';
import { reflectionRoutes } from '#src/api/reflection.ts';
import { restRoutes, type ServiceHandlers } from '#src/api/rest.ts';
import { RPC_OPTIONS, rpcRoutes } from '#src/api/rpc.ts';
import { refuseWrongForms } from '#src/api/rpc-forms.ts';
import type { SendExport } from '#src/api/send-export.ts';
import { tokenService } from '#src/api/token-service.ts';
import { webhookService } from '#src/api/webhook-service.ts';
import { createCredentialsReader, NO_CREDENTIALS } from '#src/catalogue/credentials.ts';
import { createExplainVersion } from '#src/catalogue/explain-version.ts';
import type { Config } from '#src/config.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { newId } from '#src/new-id.ts';
import type { Metrics } from '#src/observe/metrics.ts';
import { observeAuthentication, observeRateLimit, showHealth } from '#src/observe/observe.ts';
import { showAlarms } from '#src/observe/observe-alarm.ts';
import { observeRefusals } from '#src/observe/observe-requests.ts';
import { showNodes } from '#src/observe/show-nodes.ts';
import type { Caller } from '#src/payments/caller.ts';
import { checkWritable } from '#src/store/engine/check-writable.ts';
import { findAccountKeys } from '#src/store/tables/accounts.ts';
import { listSecretEntries } from '#src/store/tables/connection-secrets.ts';
import type { ManageDeps } from '#src/webhooks/manage-webhooks.ts';
import type { Parent } from '#src/workers/worker.ts';
import type { CatalogueHolder } from './catalogue-holder.ts';
import type { InFlight } from './in-flight.ts';
import type { ApiDeps } from './payment-deps.ts';

/** Dependencies of the API. */
export type Api = {
  readonly config: Config;
  readonly admission: Admission;
  readonly deps: ApiDeps;
  readonly webhooks: ManageDeps;
  readonly live: Pick<
    CatalogueHolder,
    'isOpen' | 'opened' | 'health' | 'connections' | 'tryOpen' | 'openOne' | 'isInEnvironment'
  >;
  readonly metrics: Metrics;
  /** Sums the metrics of several workers; undefined if this is the only process. */
  readonly parent: Pick<Parent, 'collectBy' | 'metrics'> | undefined;
  readonly inFlight: InFlight;
  readonly clientAddress: ClientAddress;
  readonly sendExport: SendExport;
};

/** Mounts every route of the service on an application: REST, the rpc protocols, health, reflection and metrics. */
export function mountApi(app: FastifyInstance, api: Api): void {
  const services = mountedServices(api);
  const described = services.map(({ service }) => service);
  const ownOrigin = () => URL.parse(api.deps.publicUrl())?.origin;
  const isOwnOrigin = (origin: string, request: FastifyRequest) =>
    origin === ownOrigin() || URL.parse(origin)?.host === request.host;
  const requireAllowedOrigin = admitBrowsers(app, described, isOwnOrigin);
  const admit = (calls: FastifyInstance, refuse: RefuseCall) =>
    admitCalls(calls, api.admission, {
      ...{ refuse, clientAddress: api.clientAddress, refused: observeRefusals(api.metrics) },
    });
  const calls = { services, described, openers: createOpeners(api, requireAllowedOrigin), admit };
  mountRest(app, calls, api.sendExport);
  mountRpc(app, calls);
  mountHealth(app, api, described);
  mountMetrics(app, api);
}

/** A service with its handlers and its kind of callers. */
type MountedService = {
  readonly service: DescService;
  readonly handlers: ServiceHandlers<DescService, Call>;
  readonly callers: 'accounts' | 'operators';
};

/** The services, and the functions that open calls (authenticate and limit them) and admit them. */
type Calls = {
  readonly services: readonly MountedService[];
  readonly described: readonly DescService[];
  readonly openers: ReturnType<typeof createOpeners>;
  readonly admit: (app: FastifyInstance, refuse: RefuseCall) => (request: FastifyRequest) => Ticket;
};

function mountedServices(api: Api): readonly MountedService[] {
  const { deps, inFlight } = api;
  const customers = { ...deps, newId };
  const mounted = <Service extends DescService>(
    service: Service,
    handlers: ServiceHandlers<Service, Caller>,
    callers: MountedService['callers'] = 'accounts',
  ): MountedService => ({ service, handlers: ticketed(handlers, inFlight), callers });
  return [
    mounted(PaymentService, paymentService(deps)),
    mounted(DisputeService, disputeService(deps)),
    mounted(CustomerService, customerService(customers)),
    mounted(PaymentMethodService, paymentMethodService(customers)),
    mounted(CheckoutService, checkoutService(customers)),
    mounted(TokenService, tokenService(customers)),
    mounted(WebhookService, webhookService({ ...api.webhooks, requestHashKey: deps.requestHashKey })),
    mounted(OperatorService, operatorService(operatorDeps(api)), 'operators'),
    mounted(ConfigurationService, configurationService(configurationDeps(api)), 'operators'),
  ];
}

/** Dependencies of the operators' calls. */
export function operatorDeps({ config, deps, live }: Pick<Api, 'config' | 'deps' | 'live'>): OperatorDeps {
  const { database, now } = deps;
  const { opened, isInEnvironment } = live;
  const isInDatabase = config.catalogueFile === undefined;
  const readSecretEntries = async () => (isInDatabase ? listSecretEntries(database) : []);
  const explainVersion = createExplainVersion(database, opened);
  return {
    database,
    now,
    opened,
    explainVersion,
    isInEnvironment,
    readSecretEntries,
    connectors: CONNECTORS,
  };
}

/** Dependencies of the configuration's calls. With a file, its catalogue in force is the one that a change is made to. */
export function configurationDeps({
  config,
  deps,
  live,
  webhooks,
}: Pick<Api, 'config' | 'deps' | 'live' | 'webhooks'>): ConfigurationDeps {
  const { opened, tryOpen, openOne } = live;
  const { database } = deps;
  const { vault } = webhooks;
  const isInDatabase = config.catalogueFile === undefined;
  const readCredentials = isInDatabase
    ? createCredentialsReader(database, vault)
    : async () => NO_CREDENTIALS;
  return {
    connectors: CONNECTORS,
    ...{ database, opened, openOne, vault, readCredentials, connectionHosts: config.connectionHosts },
    sandbox: config.sandbox,
    tryOpen: async (catalogue) => tryOpen(catalogue, await readCredentials()),
    fromFile: isInDatabase ? undefined : () => opened().catalogue,
  };
}

/**
 * Creates the functions that open a call: they authenticate the caller, then apply the caller's rate limit and the
 * service's own limits.
 */
function createOpeners(
  { config, deps, metrics, clientAddress }: Api,
  requireAllowedOrigin: RequireAllowedOrigin,
) {
  const find = (publicKey: string) => findAccountKeys(deps.database, publicKey, config.sandbox);
  const authenticateAccount = observeAuthentication(createAuthenticate(find), clientAddress);
  const { operatorKeys, operatorReadKeys } = config;
  const operators = createOperatorAuthenticate(operatorKeys, operatorReadKeys);
  const authenticateOperator = observeAuthentication(operators, clientAddress);
  const { rateLimitPerS: perSecond, rateLimitBurst: burst, addressSharePercent } = config;
  const rateLimit = createRateLimit({ perSecond, burst, addressSharePercent });
  const limitRate = observeRateLimit(metrics, rateLimit, clientAddress);
  return (ticketOf: (request: FastifyRequest) => Ticket) => {
    const openerFor = (authenticate: typeof authenticateAccount) => async (request: FastifyRequest) => {
      const ticket = ticketOf(request);
      const header = headerOf(request);
      const credentials = await authenticate(request, header, ticket.lookUp);
      requireAllowedOrigin(request, credentials);
      limitRate(request, credentials);
      ticket.receive(credentials);
      const address = clientAddress(request);
      const operator = credentials.operator && {
        ...credentials.operator,
        actor: `${credentials.operator.actor} from ${address}`,
      };
      const idempotencyKey = idempotencyKeyOf(request);
      return { ...credentials, ...(operator && { operator }), idempotencyKey, address, ticket };
    };
    return {
      accounts: openerFor(authenticateAccount),
      operators: openerFor(authenticateOperator),
    };
  };
}

function mountRest(app: FastifyInstance, { services, openers, admit }: Calls, sendExport: SendExport): void {
  app.register(async (rest) => {
    const open = openers(admit(rest, refuseRest));
    refuseNotOffered(rest);
    mountExports(rest, open, sendExport);
    for (const { service, handlers, callers } of services) {
      rest.register(restRoutes({ service, handlers, openCall: open[callers], ...largeBodies(callers) }));
    }
  });
}

/** An operator may send a whole catalogue, one at a time. */
function largeBodies(callers: MountedService['callers']) {
  return callers !== 'accounts' && { admitLarge: ({ ticket }: Call) => ticket.receiveLarge() };
}

function mountRpc(app: FastifyInstance, { services, described, openers, admit }: Calls): void {
  const onError = (err: unknown) => app.log.error({ err }, 'an rpc failed');
  app.register(async (rpc) => {
    const open = openers(admit(rpc, refuseRpc));
    refuseWrongForms(rpc, described);
    const rpcs = services.map(({ service, handlers, callers }) => {
      return { service, handlers, openCall: open[callers], ...largeBodies(callers), onError };
    });
    serveGrpc(rpc, rpcs);
    rpc.register(fastifyConnectPlugin, {
      ...RPC_OPTIONS,
      routes(router) {
        for (const options of rpcs) rpcRoutes(options)(router);
      },
    });
  });
}

/** Mounts health and reflection. They bypass admission, so that an overloaded service can still be monitored. */
function mountHealth(
  app: FastifyInstance,
  { config, deps, live }: Api,
  described: readonly DescService[],
): void {
  const draining = new AbortController();
  app.addHook('preClose', async () => draining.abort());
  const services = [...described, Health];
  const health = createHealth({
    services,
    draining: draining.signal,
    canWrite: async () => live.isOpen() && (await checkWritable(deps.database).then(() => true)),
    illNodes: () =>
      (deps.database.nodes?.() ?? []).flatMap(({ node, ill }) => (ill ? [`${node} ${ill}`] : [])),
  });
  app.register(async (rpc) => {
    const reflection = config.reflection ? [ServerReflection, ServerReflectionV1Alpha] : [];
    refuseWrongForms(rpc, [Health, ...reflection]);
    rpc.register(fastifyConnectPlugin, {
      ...RPC_OPTIONS,
      routes(router) {
        health.rpcRoutes(router);
        if (config.reflection) reflectionRoutes(services)(router);
      },
    });
  });
  app.register(health.httpRoutes);
}

function mountMetrics(app: FastifyInstance, { admission, deps, metrics, parent, live }: Api): void {
  const { registry } = metrics;
  const update = () => {
    if (live.isOpen()) showHealth(metrics, live.health());
    showNodes(metrics, deps.database.nodes?.() ?? []);
    showAlarms(metrics, live.connections().keys());
    const { receiving, inFlight, atWork } = admission.counts();
    metrics.callsReceiving.set(receiving);
    metrics.callsInFlight.set(inFlight);
    metrics.callsAtWork.set(atWork);
  };
  parent?.collectBy(async () => {
    update();
    return registry.getMetricsAsJSON();
  });
  app.get('/metrics', async (_request, reply) => {
    if (!parent) update();
    return reply.type(registry.contentType).send(await (parent ?? registry).metrics());
  });
}

/** Returns a function that reads a request's headers, and joins repeated headers with commas. */
export function headerOf(request: FastifyRequest): ReadHeader {
  return (name) => {
    const value = request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  };
}

/**
 * Returns the call's idempotency key. If it was sent twice (Node joins the two with a comma), returns "", which is
 * invalid.
 */
function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const key = headerOf(request)('x-idempotency-key');
  if (!key?.includes(',')) return key;
  // Alternating names and values.
  const names = request.raw.rawHeaders.filter((_text, i) => i % 2 === 0);
  return names.filter((name) => name.toLowerCase() === 'x-idempotency-key').length > 1 ? '' : key;
}

/** A handler's call: the caller, and the ticket that counts the work. */
type Call = Caller & { readonly ticket: Ticket };

/** Returns handlers whose work is counted, and tracked so that a shutdown waits for it. */
function ticketed<Service extends DescService>(
  handlers: ServiceHandlers<Service, Caller>,
  inFlight: InFlight,
): ServiceHandlers<DescService, Call> {
  type Handle = (message: unknown, caller: Caller) => Promise<unknown>;
  const ticketedOne = (handle: Handle) => {
    return (message: unknown, call: Call) => inFlight.track(call.ticket.work(() => handle(message, call)));
  };
  const entries = Object.entries<Handle>(handlers as unknown as Record<string, Handle>);
  return Object.fromEntries(
    entries.map(([rpc, handle]) => [rpc, ticketedOne(handle)]),
  ) as unknown as ServiceHandlers<DescService, Call>;
}
