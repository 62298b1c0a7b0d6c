import { BlockList } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { apiClients } from '../support/api-clients.ts';
import { HELD, startHeldProvider } from '../support/held-provider.ts';
import { cardPayment, headersOne } from '../support/payment-requests.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { startTraceCollector, type TraceCollector } from '../support/trace-collector.ts';

/** A span in the JSON form of OTLP. */
type Span = {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  /** Digits, all of equal length. */
  readonly startTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: { readonly intValue?: number } }[];
};

const CALLER = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const TRACEPARENT = `00-${CALLER.traceId}-${CALLER.spanId}-01`;
const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8);
const STATUS = 'http.response.status_code';
const ERROR_AFTER_CHARGE = cardPayment('4000000000003006');

let collector: TraceCollector;
let server: TestServer | undefined;

beforeEach(async () => {
  collector = await startTraceCollector();
});

afterEach(async () => {
  await stop();
  collector.close();
});

it('a request through a trusted proxy is exported as a child span of its caller, with children for the provider and statements', async () => {
  await start(undefined, LOOPBACK);
  expect((await pay({ traceparent: TRACEPARENT })).status).toBe(201);
  await stop();
  const spans = spansReceived().filter(({ traceId }) => traceId === CALLER.traceId);
  const request = spans.find(({ name }) => name === 'POST /v1/payments');
  expect(request?.parentSpanId).toBe(CALLER.spanId);
  const children = spans.filter(({ parentSpanId }) => parentSpanId === request?.spanId);
  expect(children.map(({ name }) => name)).toEqual([
    'sql find_account_keys',
    'sql claim',
    'provider call',
    'sql write_outcome',
  ]);
  expect(spans).toHaveLength(1 + children.length);
});

it('a caller that is no trusted proxy is linked to the request’s span, and decides neither its trace nor its sampling', async () => {
  await start();
  for (const sampled of ['01', '00']) {
    await pay({ traceparent: `00-${CALLER.traceId}-${CALLER.spanId}-${sampled}` });
  }
  await stop();
  const requests = spansReceived().filter(({ name }) => name === 'POST /v1/payments');
  expect(requests.map(({ parentSpanId, links }) => [parentSpanId ?? '', links])).toEqual(
    Array(2).fill(['', [expect.objectContaining(CALLER)]]),
  );
  expect(requests.map(({ traceId }) => traceId)).not.toContain(CALLER.traceId);
});

it('requests over RPC protocols are exported like those over REST', async () => {
  await start(undefined, LOOPBACK);
  const clients = apiClients(server?.url ?? '');
  for (const protocol of ['grpc', 'connectJson'] as const) {
    await clients.create(protocol, cardPayment(), { ...headersOne(), traceparent: TRACEPARENT });
  }
  clients.close();
  await stop();
  const spans = spansReceived().filter(({ traceId }) => traceId === CALLER.traceId);
  const requests = spans.filter(({ name }) => name === 'POST /payments.v1.PaymentService/CreatePayment');
  expect(requests.map(({ parentSpanId }) => parentSpanId)).toEqual([CALLER.spanId, CALLER.spanId]);
  for (const { spanId } of requests) {
    const names = spans.filter(({ parentSpanId }) => parentSpanId === spanId).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['sql claim', 'provider call', 'sql write_outcome']));
  }
});

it('a span has the status of the response, or 499 if the caller disconnected before the response', async () => {
  const provider = await startHeldProvider();
  await start(provider.catalogue);
  provider.frontOf(`${server?.url}`);
  await pay({});
  const giveAnswers = provider.hold();
  const leaving = new AbortController();
  const left = pay({}, HELD, leaving.signal).catch(() => 'left');
  await vi.waitFor(async () => expect(await inFlight()).toBe('2'), 60_000);
  leaving.abort();
  expect(await left).toBe('left');
  await vi.waitFor(async () => expect(await inFlight()).toBe('1'), 60_000);
  giveAnswers();
  await stop();
  await provider.close();
  const requests = spansReceived().filter(({ name }) => name === 'POST /v1/payments');
  const statuses = requests.map(
    ({ attributes }) => attributes.find(({ key }) => key === STATUS)?.value.intValue,
  );
  expect(statuses).toEqual([201, 499]);
});

it('a new trace begins for a caller without a traceparent, or with a malformed one', async () => {
  await start();
  await pay({});
  await pay({ traceparent: '00-none-01' });
  await stop();
  const requests = spansReceived().filter(({ name }) => name === 'POST /v1/payments');
  expect(requests.map(({ parentSpanId }) => parentSpanId ?? '')).toEqual(['', '']);
  expect(new Set(requests.map(({ traceId }) => traceId)).size).toBe(2);
});

it('exported spans contain no request data', async () => {
  await start();
  await pay({});
  await pay({}, ERROR_AFTER_CHARGE);
  await fetch(`${server?.url}/v1/payments?card=4012888888881881`, {
    method: 'POST',
    body: '4012888888881881',
  });
  await stop();
  const everything = collector.received.map(({ path, body }) => `${path} ${body}`).join('\n');
  expect(everything).toContain('payments.connection');
  expect(everything).not.toMatch(
    /4012888888881881|4000000000003006|40128888|JORDAN|sk_sandbox|pk_sandbox|order-1/,
  );
});

it.each([
  ['refuses connections', () => collector.close()],
  ['returns an error', () => (collector.respond = (response) => response.writeHead(503).end())],
  ['never answers', () => (collector.respond = () => {})],
])('payments succeed, and the service stops, while the collector %s', async (_what, fail) => {
  await start();
  fail();
  for (let i = 0; i < 3; i++) expect((await pay({})).status).toBe(201);
  const startedMs = performance.now();
  await stop();
  expect(performance.now() - startedMs).toBeLessThan(8_000);
});

it('no spans are exported without an endpoint', async () => {
  server = await startTestServer();
  await pay({ traceparent: TRACEPARENT });
  await stop();
  expect(collector.received).toEqual([]);
});

async function start(catalogue?: string, trustedProxies = new BlockList()): Promise<void> {
  const config = { otlpEndpoint: collector.url, trustedProxies };
  server = await startTestServer({ config, ...(catalogue && { catalogue }) });
}

/** Stops the service, which exports its remaining spans. */
async function stop(): Promise<void> {
  const stopping = server;
  server = undefined;
  await stopping?.close();
}

/** Returns the number of requests in flight, including this one. */
async function inFlight(): Promise<string | undefined> {
  const metrics = await (await fetch(`${server?.url}/metrics`)).text();
  return /^requests_in_flight (\d+)$/m.exec(metrics)?.[1];
}

function pay(
  headers: Record<string, string>,
  payment = cardPayment(),
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${server?.url}/v1/payments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close', ...headersOne(), ...headers },
    body: JSON.stringify(payment),
    ...(signal && { signal }),
  });
}

/** Returns the spans in the order of their start. */
function spansReceived(): Span[] {
  const spans: Span[] = collector.received.flatMap(({ path, body }) => {
    expect(path).toBe('/v1/traces');
    const { resourceSpans } = JSON.parse(body);
    return resourceSpans.flatMap(({ scopeSpans }: { scopeSpans: { spans: Span[] }[] }) =>
      scopeSpans.flatMap((scope) => scope.spans),
    );
  });
  return spans.sort((a, b) => (a.startTimeUnixNano < b.startTimeUnixNano ? -1 : 1));
}
