import http from 'node:http';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Health, HealthCheckResponse_ServingStatus as Status } from '#gen/grpc/health/v1/health_pb.js';
import { createHealth } from '#src/api/health.ts';
import { RPC_OPTIONS } from '#src/api/rpc.ts';
import { createListener } from '#src/listener/listener.ts';

let app: FastifyInstance;
let baseUrl: string;
let draining: AbortController;
let check: () => Promise<boolean>;
const callers: AbortController[] = [];

afterEach(async () => {
  for (const caller of callers.splice(0)) caller.abort();
  draining.abort();
  await app.close();
  vi.restoreAllMocks();
});

async function start(): Promise<void> {
  check = vi.fn(async () => true);
  draining = new AbortController();
  const health = createHealth({
    canWrite: () => check(),
    services: [Health],
    draining: draining.signal,
    timing: { checkTimeoutMs: 500, watchIntervalMs: 50 },
  });
  app = Fastify(
    createListener({ limits: { receiveTimeoutMs: 200, idleTimeoutMs: 200, drainTimeoutMs: 60_000 } }),
  );
  await app.register(health.httpRoutes);
  await app.register(fastifyConnectPlugin, { ...RPC_OPTIONS, routes: health.rpcRoutes });
  baseUrl = await app.listen({ port: 0, host: '127.0.0.1' });
}

const transports: [string, () => Transport][] = [
  ['gRPC', () => createGrpcTransport({ baseUrl })],
  ['gRPC-Web over HTTP/1.1', () => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' })],
  ['gRPC-Web over HTTP/2', () => createGrpcWebTransport({ baseUrl, httpVersion: '2' })],
  ['Connect over HTTP/1.1', () => createConnectTransport({ baseUrl, httpVersion: '1.1' })],
  ['Connect over HTTP/2', () => createConnectTransport({ baseUrl, httpVersion: '2' })],
];

const get = async (path: string) => {
  const answer = await fetch(baseUrl + path);
  return [answer.status, await answer.json()];
};

/** Collects the statuses that a Watch receives. */
function watch(transport: Transport, service = '') {
  const caller = new AbortController();
  callers.push(caller);
  const told: Status[] = [];
  const ended = (async () => {
    for await (const { status } of createClient(Health, transport).watch(
      { service },
      { signal: caller.signal },
    )) {
      told.push(status);
    }
    return 'ended';
  })().catch((error) => ConnectError.from(error).code);
  return { told, ended, leave: () => caller.abort() };
}

describe('health over HTTP', () => {
  it('the service is healthy while it runs, and ready while its check succeeds', async () => {
    await start();
    expect(await get('/healthz')).toEqual([200, { status: 'ok' }]);
    expect(await get('/readyz')).toEqual([200, { status: 'ready' }]);
    check = async () => false;
    await vi.waitFor(
      async () => expect(await get('/readyz')).toEqual([503, { status: 'unavailable' }]),
      60_000,
    );
    expect(await get('/healthz')).toEqual([200, { status: 'ok' }]);
    check = async () => true;
    await vi.waitFor(async () => expect(await get('/readyz')).toEqual([200, { status: 'ready' }]), 60_000);
  });

  it('the service is not ready when its check fails, hangs, or throws synchronously', async () => {
    for (const broken of [
      () => Promise.reject(new Error('no database')),
      () => new Promise<boolean>(() => {}),
      () => {
        throw new Error('no pool');
      },
    ]) {
      await start();
      check = broken;
      expect(await get('/readyz')).toEqual([503, { status: 'unavailable' }]);
      await app.close();
    }
  });

  it('the service is not ready, but still healthy, from the moment it starts to drain', async () => {
    await start();
    expect(await get('/readyz')).toEqual([200, { status: 'ready' }]);
    draining.abort();
    expect(await get('/readyz')).toEqual([503, { status: 'unavailable' }]);
    expect(await get('/healthz')).toEqual([200, { status: 'ok' }]);
  });

  it('a flood of readiness probes is answered with few database checks', async () => {
    await start();
    const agent = new http.Agent({ keepAlive: true, maxSockets: 10 });
    const probe = () =>
      new Promise<number | undefined>((resolve, reject) => {
        http
          .get(`${baseUrl}/readyz`, { agent }, (answer) => {
            answer.resume().on('end', () => resolve(answer.statusCode));
          })
          .on('error', reject);
      });
    const begun = performance.now();
    expect(new Set(await Promise.all(Array.from({ length: 100 }, probe)))).toEqual(new Set([200]));
    // A result is fresh for half a second, so the flood may cause one more check in each half second.
    const stale = Math.floor((performance.now() - begun) / 500);
    expect(vi.mocked(check).mock.calls.length).toBeLessThanOrEqual(2 + stale);
    agent.destroy();
  });
});

describe.each(transports)('health over %s', (_name, transport) => {
  it('Check returns the status of the server and its services, and NOT_FOUND for unknown services', async () => {
    await start();
    const client = createClient(Health, transport());
    expect(await client.check({})).toMatchObject({ status: Status.SERVING });
    expect(await client.check({ service: 'grpc.health.v1.Health' })).toMatchObject({
      status: Status.SERVING,
    });
    await expect(client.check({ service: 'no.such.Service' })).rejects.toMatchObject({ code: Code.NotFound });
    draining.abort();
    expect(await client.check({})).toMatchObject({ status: Status.NOT_SERVING });
  });

  it('Watch sends the current status and each change, beyond the limits on request time and idle time', async () => {
    await start();
    const { told } = watch(transport());
    await vi.waitFor(() => expect(told).toEqual([Status.SERVING]));
    // Longer than this test's limits on receiving a request and on an idle connection.
    await new Promise((resolve) => setTimeout(resolve, 600));
    check = async () => false;
    await vi.waitFor(() => expect(told).toEqual([Status.SERVING, Status.NOT_SERVING]), 60_000);
  });

  it('Watch ends with NOT_SERVING when the server drains, and closing the server does not wait for it', async () => {
    await start();
    const known = watch(transport(), 'grpc.health.v1.Health');
    const unknown = watch(transport(), 'no.such.Service');
    await vi.waitFor(() =>
      expect(known.told.concat(unknown.told)).toEqual([Status.SERVING, Status.SERVICE_UNKNOWN]),
    );
    draining.abort();
    const begun = performance.now();
    await app.close();
    expect(performance.now() - begun).toBeLessThan(30_000);
    expect([await known.ended, await unknown.ended]).toEqual(['ended', 'ended']);
    expect(known.told).toEqual([Status.SERVING, Status.NOT_SERVING]);
    expect(unknown.told).toEqual([Status.SERVICE_UNKNOWN]);
  });
});

it('one connection can open only a limited number of watches, and others still have room', async () => {
  await start();
  const transport = createGrpcTransport({ baseUrl });
  const all = Array.from({ length: 16 }, (_, i) => watch(transport, i % 2 ? '' : Health.typeName));
  await vi.waitFor(() => expect(all.every(({ told }) => told.length === 1)).toBe(true), 60_000);
  expect(await watch(transport).ended).toBe(Code.ResourceExhausted);
  const other = watch(createGrpcTransport({ baseUrl }));
  await vi.waitFor(() => expect(other.told).toEqual([Status.SERVING]), 60_000);
  all[0]?.leave();
  // The server needs a moment to notice that the watch has ended, and refuses others until then.
  await vi.waitFor(async () => {
    const again = watch(transport);
    let isOver = false;
    void again.ended.then(() => (isOver = true));
    await vi.waitFor(() => expect(isOver || again.told.length > 0).toBe(true));
    expect(again.told).toEqual([Status.SERVING]);
  }, 60_000);
});

it('all connections together can open only a limited number of watches', async () => {
  await start();
  const transports = Array.from({ length: 64 }, () => createGrpcTransport({ baseUrl }));
  const all = transports.flatMap((transport) => Array.from({ length: 16 }, () => watch(transport)));
  await vi.waitFor(() => expect(all.every(({ told }) => told.length === 1)).toBe(true), 60_000);
  expect(await watch(createGrpcTransport({ baseUrl })).ended).toBe(Code.ResourceExhausted);
});
