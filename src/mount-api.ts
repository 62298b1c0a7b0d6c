import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Health } from '../gen/grpc/health/v1/health_pb.js';
import { PaymentService } from '../gen/payments/v1/payment_service_pb.js';
import type { Admission, Ticket } from './api/admission.ts';
import { admitCalls, refuseRest, refuseRpc } from './api/admit-calls.ts';
import { createAuthenticate } from './api/authenticate.ts';
import { createHealth } from './api/health.ts';
import { paymentService } from './api/payment-service.ts';
import { createRateLimit } from './api/rate-limit.ts';
import { reflectionRoutes } from './api/reflection.ts';
import { restRoutes, type ServiceHandlers } from './api/rest.ts';
import { RPC_OPTIONS, rpcRoutes } from './api/rpc.ts';
import type { Config } from './config.ts';
import type { createMetrics } from './metrics.ts';
import { observeAuthentication } from './observe.ts';
import type { Caller, PaymentParts } from './payments/create-payment.ts';
import { orUnavailable } from './payments/unavailable.ts';
import { findAccountKeys } from './store/accounts.ts';
import type { Database } from './store/database.ts';

/** What the API is mounted with. */
export type Api = {
  readonly config: Config;
  readonly admission: Admission;
  readonly parts: PaymentParts;
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly database: Database;
  readonly draining: AbortSignal;
  readonly ready: () => boolean;
  readonly inFlight: Set<Promise<unknown>>;
};

/** Mounts every route of the service on an application: REST, the rpc protocols, health, reflection and metrics. */
export function mountApi(app: FastifyInstance, api: Api): void {
  const { config, parts, metrics, admission, database } = api;
  const find = (publicKey: string) => orUnavailable(findAccountKeys(database, publicKey));
  const authenticate = observeAuthentication(createAuthenticate(find));
  const limitRate = createRateLimit({ perSecond: config.rateLimitPerS, burst: config.rateLimitBurst });
  const callOpener = (ticketOf: (request: FastifyRequest) => Ticket) => async (request: FastifyRequest) => {
    const ticket = ticketOf(request);
    const header = headerOf(request);
    const credentials = await authenticate(request, header);
    limitRate(credentials.accountId);
    ticket.receive();
    return { ...credentials, idempotencyKey: header('x-idempotency-key'), ticket };
  };
  const handlers = ticketed(paymentService(parts), api.inFlight);
  const services = [PaymentService, Health];
  const health = createHealth({
    services,
    draining: api.draining,
    readiness: { check: async () => api.ready() && (await database.check().then(() => true)) },
  });
  const onError = (err: unknown) => app.log.error({ err }, 'an rpc failed');

  app.register(async (rest) => {
    const openCall = callOpener(admitCalls(rest, admission, refuseRest));
    rest.register(restRoutes<typeof PaymentService, Call>({ service: PaymentService, handlers, openCall }));
  });
  app.register(async (rpc) => {
    const openCall = callOpener(admitCalls(rpc, admission, refuseRpc));
    const routes = rpcRoutes({ service: PaymentService, handlers, openCall, onError });
    rpc.register(fastifyConnectPlugin, { ...RPC_OPTIONS, routes });
  });
  // What watches the service is let in always.
  app.register(fastifyConnectPlugin, {
    ...RPC_OPTIONS,
    routes(router) {
      health.rpcRoutes(router);
      reflectionRoutes(services)(router);
    },
  });
  app.register(health.httpRoutes);
  app.get('/metrics', async (_request, reply) => {
    const { inFlight, atWork } = admission.counts();
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

/** What a handler is told of a call: who calls, and the ticket by which its work is counted. */
type Call = Caller & { readonly ticket: Ticket };

/** Handlers whose work is counted, and remembered until it ends, so that a shutdown waits for it. */
function ticketed(
  handlers: ServiceHandlers<typeof PaymentService, Caller>,
  inFlight: Set<Promise<unknown>>,
): ServiceHandlers<typeof PaymentService, Call> {
  const ticketedOne = <Message, Answer>(handle: (message: Message, caller: Caller) => Promise<Answer>) => {
    return (message: Message, call: Call): Promise<Answer> => {
      const work = call.ticket.work(() => handle(message, call));
      inFlight.add(work);
      const forget = () => inFlight.delete(work);
      work.then(forget, forget);
      return work;
    };
  };
  return { createPayment: ticketedOne(handlers.createPayment), getPayment: ticketedOne(handlers.getPayment) };
}
