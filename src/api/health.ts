import { setTimeout as sleep } from 'node:timers/promises';
import type { DescService } from '@bufbuild/protobuf';
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from '@connectrpc/connect';
import type { FastifyInstance, FastifyReply } from 'fastify';
import {
  Health,
  type HealthCheckRequest,
  HealthCheckResponse_ServingStatus as Status,
} from '#gen/grpc/health/v1/health_pb.js';
import { createSlots } from '#src/slots.ts';
import { connectionOf } from './rpc.ts';

/** Dependencies of the health checks. */
export type HealthOptions = {
  /** Resolves to true if a payment could be stored now. A rejection counts as false. */
  readonly canWrite: () => Promise<boolean>;
  /** Lists the database nodes that do not work; their accounts' calls are refused. Default none. */
  readonly illNodes?: () => readonly string[];
  /** The services that gRPC clients can name in a health check. */
  readonly services: readonly DescService[];
  /** Aborted when the process begins to drain. From then on, nothing is ready, and every Watch ends. */
  readonly draining: AbortSignal;
  /** The time limit for a check, and the interval at which a Watch checks for a change. */
  readonly timing?: { readonly checkTimeoutMs: number; readonly watchIntervalMs: number };
};

/** Time for which the result of `canWrite` is reused, so that a flood of probes does not become a flood of queries. */
const FRESH_MS = 500;
/** A slower check counts as false: a payment would have to wait for the same database. */
const TIMING = { checkTimeoutMs: 2_000, watchIntervalMs: 1_000 };
/**
 * Limit on the number of watches on one connection. A client needs one for each service; more indicates a leak or an
 * attack.
 */
const MAX_WATCHES_PER_CONNECTION = 16;
/** Limit on the total number of watches. Each takes a timer and about 10 KB. */
const MAX_WATCHES = 1_024;
const CONNECTION_SHARE = MAX_WATCHES_PER_CONNECTION / MAX_WATCHES;

/**
 * Creates the health checks for load balancers and orchestrators: `httpRoutes` is a Fastify plugin, `rpcRoutes` is for
 * a ConnectRouter.
 */
export function createHealth(options: HealthOptions) {
  const { draining, timing = TIMING } = options;
  const isCheckedReady = remember(() => inTime(options.canWrite, timing.checkTimeoutMs));
  const isReady = async () => !draining.aborted && (await isCheckedReady()) && !draining.aborted;
  const servingStatus = async () => ((await isReady()) ? Status.SERVING : Status.NOT_SERVING);
  const names = new Set(['', ...options.services.map((service) => service.typeName)]);
  const watches = createSlots(MAX_WATCHES);

  /**
   * `GET /healthz`: 200 while the process runs. `GET /readyz`: 200 if a payment could be accepted, else 503. The body
   * is `{"status": "ok" | "ready" | "unavailable"}`; `ill_nodes` lists the database nodes that do not work, if any.
   */
  async function httpRoutes(app: FastifyInstance): Promise<void> {
    const respond = (reply: FastifyReply, code: number, status: string, ill: readonly string[] = []) =>
      reply
        .code(code)
        .header('cache-control', 'no-store')
        .send({ status, ...(ill.length > 0 && { ill_nodes: ill }) });
    app.get('/healthz', (_request, reply) => respond(reply, 200, 'ok'));
    app.get('/readyz', async (_request, reply) =>
      (await isReady())
        ? respond(reply, 200, 'ready', options.illNodes?.())
        : respond(reply, 503, 'unavailable', options.illNodes?.()),
    );
  }

  async function check({ service }: HealthCheckRequest) {
    if (!names.has(service)) throw new ConnectError('no such service', Code.NotFound);
    return { status: await servingStatus() };
  }

  async function* watch({ service }: HealthCheckRequest, context: HandlerContext) {
    const release = watches.take([{ group: connectionOf(context), fraction: CONNECTION_SHARE }]);
    if (!release) throw new ConnectError('too many watches', Code.ResourceExhausted);
    try {
      const gone = AbortSignal.any([context.signal, draining]);
      const current = names.has(service) ? servingStatus : async () => Status.SERVICE_UNKNOWN;
      let told: Status | undefined;
      while (!context.signal.aborted) {
        const status = await current();
        if (status !== told) yield { status };
        told = status;
        if (draining.aborted) return;
        await sleep(timing.watchIntervalMs, undefined, { signal: gone }).catch(() => {});
      }
    } finally {
      release();
    }
  }

  /** The gRPC health checking protocol, `grpc.health.v1.Health`. */
  function rpcRoutes(router: ConnectRouter): void {
    router.service(Health, { check, watch });
  }

  return { httpRoutes, rpcRoutes };
}

/** Shares one run among concurrent callers, and reuses its result for `FRESH_MS`. */
function remember(check: () => Promise<boolean>): () => Promise<boolean> {
  let answer: Promise<boolean> | undefined;
  let staleAtMs = 0;
  return () => {
    if (answer && performance.now() < staleAtMs) return answer;
    const asked = check();
    answer = asked;
    staleAtMs = Number.POSITIVE_INFINITY;
    void asked.then(() => {
      staleAtMs = performance.now() + FRESH_MS;
    });
    return asked;
  };
}

/** Returns the check's result, or false if it fails or takes too long. Never rejects. */
async function inTime(check: () => Promise<boolean>, timeoutMs: number): Promise<boolean> {
  const answered = new AbortController();
  const tooLate = sleep(timeoutMs, false, { signal: answered.signal, ref: false });
  // Aborting the sleep, below, rejects a promise that nothing awaits any longer.
  tooLate.catch(() => {});
  try {
    return await Promise.race([check(), tooLate]);
  } catch {
    return false;
  } finally {
    answered.abort();
  }
}
