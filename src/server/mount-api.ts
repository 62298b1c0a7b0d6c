import type { DescService } from '@bufbuild/protobuf';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Health } from '#gen/grpc/health/v1/health_pb.js';
import { ServerReflection } from '#gen/grpc/reflection/v1/reflection_pb.js';
import { ServerReflection as ServerReflectionV1Alpha } from '#gen/grpc/reflection/v1alpha/reflection_pb.js';
import { CheckoutService } from '#gen/payments/v1/checkout_service_pb.js';
import { CustomerService } from '#gen/payments/v1/customer_service_pb.js';
import { OperatorService } from '#gen/payments/v1/operator_service_pb.js';
import { PaymentMethodService } from '#gen/payments/v1/payment_method_service_pb.js';
import { PaymentService } from '#gen/payments/v1/payment_service_pb.js';
import { TokenService } from '#gen/payments/v1/token_service_pb.js';
import { WebhookService } from '#gen/payments/v1/webhook_service_pb.js';
import type { Admission, Ticket } from '#src/api/admission.ts';
import { admitCalls, refuseRest, refuseRpc } from '#src/api/admit-calls.ts';
import { createAuthenticate } from '#src/api/authenticate.ts';
import { admitBrowsers, type RequireAllowedOrigin } from '#src/api/browser-calls.ts';
import { checkoutService } from '#src/api/checkout-service.ts';
import { customerService } from '#src/api/customer-service.ts';
import { createHealth } from '#src/api/health.ts';
import { createOperatorAuthenticate } from '#src/api/operator-key.ts';
import { type OperatorDeps, operatorService } from '#src/api/operator-service.ts';
import { paymentMethodService } from '#src/api/payment-method-service.ts';
import { paymentService } from '#src/api/payment-service.ts';
import { createRateLimit } from '#src/api/rate-limit.ts';
import { reflectionRoutes } from '#src/api/reflection.ts';
import { restRoutes, type ServiceHandlers } from '#src/api/rest.ts';
import { RPC_OPTIONS, rpcRoutes } from '#src/api/rpc.ts';
import { refuseWrongForms } from '#src/api/rpc-forms.ts';
import { tokenService } from '#src/api/token-service.ts';
import { webhookService } from '#src/api/webhook-service.ts';
import type { Config } from '#src/config.ts';
import type { CustomerDeps } from '#src/customers/customers.ts';
import type { Metrics } from '#src/observe/metrics.ts';
import { observeAuthentication } from '#src/observe/observe.ts';
import type { Caller } from '#src/payments/create-payment.ts';
import { findAccountKeys } from '#src/store/accounts.ts';
import type { Database } from '#src/store/database.ts';

import { checkWritable, orUnavailable } from '#src/store/unavailable.ts';
import type { ManageDeps } from '#src/webhooks/manage-webhooks.ts';
import type { ApiDeps } from './payment-deps.ts';

/** Dependencies of the API. */
export type Api = {
  readonly config: Config;
  readonly admission: Admission;
  readonly deps: ApiDeps;
  readonly webhooks: ManageDeps;
  readonly customers: CustomerDeps;
  readonly opened: OperatorDeps['opened'];
  readonly metrics: Metrics;
  readonly database: Database;
  /** The origin of the service's own pages. */
  readonly ownOrigin: () => string | undefined;
  readonly ready: () => boolean;
  /** Work under way, for a shutdown to wait for. */
  readonly inFlight: Set<Promise<unknown>>;
  /** Brings the metrics up to date that are read rather than counted. */
  readonly collect: () => void;
};

/** Mounts every route of the service on an application: REST, the rpc protocols, health, reflection and metrics. */
export function mountApi(app: FastifyInstance, api: Api): void {
  const services = mountedServices(api);
  const requireAllowedOrigin = admitBrowsers(
    app,
    services.map(({ service }) => service),
    (origin, request) => origin === api.ownOrigin() || URL.parse(origin)?.host === request.host,
  );
  const calls = { services, openers: createOpeners(api, requireAllowedOrigin) };
  mountRest(app, api.admission, calls);
  mountRpc(app, api.admission, calls);
  mountHealth(app, api, calls.services);
  mountMetrics(app, api);
}

/** A service with its handlers, and who may call it. */
type MountedService = {
  readonly service: DescService;
  readonly handlers: ServiceHandlers<DescService, Call>;
  readonly callers: 'accounts' | 'operators';
};

/** The services, with what opens a call to them. */
type Calls = {
  readonly services: readonly MountedService[];
  readonly openers: ReturnType<typeof createOpeners>;
};

function mountedServices(api: Api): readonly MountedService[] {
  const { deps, inFlight } = api;
  const mounted = <Service extends DescService>(
    service: Service,
    handlers: ServiceHandlers<Service, Caller>,
    callers: MountedService['callers'] = 'accounts',
  ): MountedService => ({ service, handlers: ticketed(handlers, inFlight), callers });
  return [
    mounted(PaymentService, paymentService(deps)),
    mounted(CustomerService, customerService({ ...deps, ...api.customers })),
    mounted(PaymentMethodService, paymentMethodService({ ...deps, ...api.customers })),
    mounted(CheckoutService, checkoutService({ ...deps, ...api.customers })),
    mounted(TokenService, tokenService({ ...deps, ...api.customers })),
    mounted(WebhookService, webhookService({ ...api.webhooks, requestHashKey: deps.requestHashKey })),
    mounted(OperatorService, operatorService({ opened: api.opened, now: deps.now }), 'operators'),
  ];
}

/** Creates what opens a call: it authenticates the caller and holds it to its rate and to the service's limits. */
function createOpeners({ config, database }: Api, requireAllowedOrigin: RequireAllowedOrigin) {
  const find = (publicKey: string) => orUnavailable(findAccountKeys(database, publicKey));
  const authenticateAccount = observeAuthentication(createAuthenticate(find));
  const authenticateOperator = observeAuthentication(createOperatorAuthenticate(config.operatorKeys));
  const limitRate = createRateLimit({ perSecond: config.rateLimitPerS, burst: config.rateLimitBurst });
  return (ticketOf: (request: FastifyRequest) => Ticket) => {
    const openerFor = (authenticate: typeof authenticateAccount) => async (request: FastifyRequest) => {
      const ticket = ticketOf(request);
      const header = headerOf(request);
      const credentials = await authenticate(request, header, ticket.lookUp);
      requireAllowedOrigin(request, credentials);
      limitRate(credentials);
      ticket.receive(credentials);
      return { ...credentials, idempotencyKey: header('x-idempotency-key'), ticket };
    };
    return { accounts: openerFor(authenticateAccount), operators: openerFor(authenticateOperator) };
  };
}

function mountRest(app: FastifyInstance, admission: Admission, { services, openers }: Calls): void {
  app.register(async (rest) => {
    const open = openers(admitCalls(rest, admission, refuseRest));
    for (const { service, handlers, callers } of services) {
      rest.register(restRoutes({ service, handlers, openCall: open[callers] }));
    }
  });
}

function mountRpc(app: FastifyInstance, admission: Admission, { services, openers }: Calls): void {
  const onError = (err: unknown) => app.log.error({ err }, 'an rpc failed');
  app.register(async (rpc) => {
    const open = openers(admitCalls(rpc, admission, refuseRpc));
    refuseWrongForms(
      rpc,
      services.map(({ service }) => service),
    );
    rpc.register(fastifyConnectPlugin, {
      ...RPC_OPTIONS,
      routes(router) {
        for (const { service, handlers, callers } of services) {
          rpcRoutes({ service, handlers, openCall: open[callers], onError })(router);
        }
      },
    });
  });
}

/** Mounts health and reflection. They pass no admission, so that an overloaded service can still be watched. */
function mountHealth(
  app: FastifyInstance,
  { config, database, ready }: Api,
  mounted: readonly MountedService[],
): void {
  const draining = new AbortController();
  app.addHook('preClose', async () => draining.abort());
  const services = [...mounted.map(({ service }) => service), Health];
  const health = createHealth({
    services,
    draining: draining.signal,
    readiness: { check: async () => ready() && (await checkWritable(database).then(() => true)) },
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

function mountMetrics(app: FastifyInstance, { admission, metrics, collect }: Api): void {
  app.get('/metrics', async (_request, reply) => {
    collect();
    const { receiving, inFlight, atWork } = admission.counts();
    metrics.callsReceiving.set(receiving);
    metrics.callsInFlight.set(inFlight);
    metrics.callsAtWork.set(atWork);
    return reply.type(metrics.registry.contentType).send(await metrics.registry.metrics());
  });
}

function headerOf(request: FastifyRequest): (name: string) => string | undefined {
  return (name) => {
    const value = request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  };
}

/** A call as a handler sees it: the caller, and the ticket by which the work is counted. */
type Call = Caller & { readonly ticket: Ticket };

/** Handlers whose work is counted, and remembered until it ends, so that a shutdown waits for it. */
function ticketed<Service extends DescService>(
  handlers: ServiceHandlers<Service, Caller>,
  inFlight: Set<Promise<unknown>>,
): ServiceHandlers<DescService, Call> {
  type Handle = (message: unknown, caller: Caller) => Promise<unknown>;
  const ticketedOne = (handle: Handle) => {
    return (message: unknown, call: Call) => {
      const work = call.ticket.work(() => handle(message, call));
      inFlight.add(work);
      const forget = () => inFlight.delete(work);
      work.then(forget, forget);
      return work;
    };
  };
  const entries = Object.entries<Handle>(handlers as unknown as Record<string, Handle>);
  return Object.fromEntries(
    entries.map(([rpc, handle]) => [rpc, ticketedOne(handle)]),
  ) as unknown as ServiceHandlers<DescService, Call>;
}
