import { randomUUID } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { apiClients } from '../support/api-clients.ts';
import { HELD, onHeldProvider, provider } from '../support/held-provider.ts';
import { server } from '../support/on-service.ts';
import { cardPayment, headersOne, walletPayment } from '../support/payment-requests.ts';

// Open payments are never looked up here, since a look-up would finish them and would be counted.
const checkSchedule = { leaseMarginMs: 10_000, firstCheckMs: 3_600_000, closingMarginMs: 10_000 };
onHeldProvider({ config: { checkSchedule } });

it('provider calls are timed by connection and outcome', async () => {
  const before = await scrape();
  await pay();
  await pay(cardPayment('4000000000000002'));
  await pay(walletPayment());
  const after = await scrape();
  for (const outcome of ['approved', 'declined', 'awaits_payer']) {
    const labels = { connection: 'sandbox-one', outcome };
    const count = 'provider_call_seconds_count';
    expect(after(count, labels)).toBe(before(count, labels) + 1);
    expect(after('provider_call_seconds_sum', labels)).toBeGreaterThan(
      before('provider_call_seconds_sum', labels),
    );
  }
});

it('statements are timed by name: two for a payment, and one for keys that are not cached', async () => {
  const before = await scrape();
  await pay();
  const after = await scrape();
  for (const statement of ['claim', 'write_outcome']) {
    const labels = { statement, result: 'ok' };
    expect(after('database_query_seconds_count', labels)).toBe(
      before('database_query_seconds_count', labels) + 1,
    );
  }
  expect(after('database_query_seconds_count', { statement: 'find_by_key', result: 'ok' })).toBe(
    before('database_query_seconds_count', { statement: 'find_by_key', result: 'ok' }),
  );
});

it('requests are timed by route and status, with one route name for all unknown paths', async () => {
  const before = await scrape();
  await pay();
  await fetch(`${server.url}/v1/payments`, { method: 'POST', body: '{}' });
  await fetch(`${server.url}/no/${randomUUID()}`);
  await fetch(`${server.url}/no/${randomUUID()}`);
  const after = await settled();
  const more = (labels: Record<string, string>) =>
    after('request_seconds_count', labels) - before('request_seconds_count', labels);
  expect(more({ route: '/v1/payments', status: '201' })).toBe(1);
  expect(
    more({ route: '/v1/payments', status: '401' }) + more({ route: '/v1/payments', status: '415' }),
  ).toBe(1);
  expect(more({ route: 'unknown', status: '404' })).toBe(2);
});

it('slow calls count as in flight until they are answered or their client disconnects', async () => {
  const paid = ['payments_total', { category: 'CARD', status: 'SUCCEEDED' }] as const;
  const paidBefore = (await scrape())(...paid);
  const leaving = new AbortController();
  const giveAnswers = provider.hold();
  const slow = [pay(HELD), pay(HELD, leaving.signal).catch(() => {})];
  await vi.waitFor(async () => expect(await inFlight()).toBe(2), 60_000);
  leaving.abort();
  await vi.waitFor(async () => expect(await inFlight()).toBe(1), 60_000);
  giveAnswers();
  await Promise.all(slow);
  // The payment whose caller disconnected is still made, and counted in this test.
  await vi.waitFor(async () => expect((await scrape())(...paid)).toBe(paidBefore + 2), 60_000);
  await settled();
});

it('alarms and catalogue loads are counted from 0, so that Prometheus sees the first increase', async () => {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  expect(text).toContain('provider_alarms_total{connection="sandbox-two"} 0\n');
  expect(text).toContain('catalogue_loads_total{result="failed"} 0\n');
});

it('metrics contain no request data', async () => {
  await pay();
  const text = await (await fetch(`${server.url}/metrics`)).text();
  expect(text).not.toMatch(/4012888888881881|11111111-1111|pk_sandbox|order-1|"737"/);
  expect(text).toContain('process_cpu_seconds_total');
});

// Its notification does not prompt a look-up either.
const UNKNOWN = { ...cardPayment(), description: 'sandbox:error_after,notify_never' };

it('payments are counted once by category and status, and replays are counted separately', async () => {
  const before = await scrape();
  const clients = apiClients(server.url);
  const key = randomUUID();
  await clients.create('rest', cardPayment(), headersOne(key));
  await clients.create('rest', cardPayment(), headersOne(key));
  await clients.create('grpc', cardPayment(), headersOne(key));
  await clients.create('grpc', cardPayment(), headersOne());
  await clients.create('rest', cardPayment('4000000000000002'), headersOne());
  await clients.create('rest', UNKNOWN, headersOne());
  await clients.create('connectJson', walletPayment(), headersOne());
  clients.close();
  const after = await scrape();
  const more: Metrics = (name, labels) => after(name, labels) - before(name, labels);
  expect(more('payments_total', { category: 'CARD', status: 'SUCCEEDED' })).toBe(2);
  expect(more('payments_total', { category: 'CARD', status: 'DECLINED' })).toBe(1);
  expect(more('payments_total', { category: 'CARD', status: 'PENDING' })).toBe(1);
  expect(more('payments_total', { category: 'WALLET', status: 'READY_TO_PAY' })).toBe(1);
  expect(more('payment_replays_total', {})).toBe(2);
});

async function pay(payment: object = cardPayment(), signal?: AbortSignal): Promise<void> {
  const response = await fetch(`${server.url}/v1/payments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headersOne() },
    body: JSON.stringify(payment),
    signal: signal ?? null,
  });
  expect(response.status).toBe(201);
}

/** Returns the value of a sample, or 0 if there is none. Labels are in the metric's order. */
type Metrics = (name: string, labels: Readonly<Record<string, string>>) => number;

async function scrape(): Promise<Metrics> {
  const response = await fetch(`${server.url}/metrics`);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  const samples = new Map<string, number>();
  for (const line of (await response.text()).split('\n')) {
    const [, sample, value] = /^([^#\s]+) (\S+)$/.exec(line) ?? [];
    if (sample) samples.set(sample, Number(value));
  }
  return (name, labels) => {
    const list = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
    return samples.get(list.length > 0 ? `${name}{${list.join(',')}}` : name) ?? 0;
  };
}

/** Returns the number of requests in flight apart from this one. */
async function inFlight(): Promise<number> {
  return (await scrape())('requests_in_flight', {}) - 1;
}

/** Returns the metrics once nothing is in flight: a request counts until its response is flushed. */
async function settled(): Promise<Metrics> {
  return vi.waitFor(async () => {
    const metrics = await scrape();
    expect(metrics('requests_in_flight', {})).toBe(1);
    return metrics;
  }, 60_000);
}
