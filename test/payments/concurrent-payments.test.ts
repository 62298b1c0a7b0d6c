import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiClients, PROTOCOLS, type Protocol } from '../support/api-clients.ts';
import { HELD, onHeldProvider, provider } from '../support/held-provider.ts';
import { clients, server, tables } from '../support/on-service.ts';
import { cardPayment, headersOne, type RequestJson, withField } from '../support/payment-requests.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

/** A payment whose outcome stays unknown after the provider's response. */
const UNKNOWN = { ...HELD, description: 'sandbox:error_after,notify_never' };
const WAIT_MS = 300;

let patient: TestServer;

onHeldProvider({ config: { inProgressWaitMs: WAIT_MS } });
beforeAll(async () => {
  // A second replica on the same database with the same keys, which waits longer for the first
  // request.
  patient = await startTestServer({
    config: { inProgressWaitMs: 60_000 },
    catalogue: provider.catalogue,
    databaseUrl: server.databaseUrl,
    keys: server.keys,
  });
});
afterAll(() => patient?.close());

/** The payments with a key, and the provider's charges for them. */
async function made(idempotencyKey: string): Promise<{ payments: number; charges: number }> {
  const [row] = await tables.query(
    `SELECT count(DISTINCT p.id)::int AS payments, count(l.id)::int AS charges
     FROM payment p JOIN transaction t ON t.account_id = p.account_id AND t.payment_id = p.id
     LEFT JOIN sandbox.ledger l ON l.idempotency_key = t.id::text
     WHERE p.idempotency_key = $1`,
    [idempotencyKey],
  );
  return row as { payments: number; charges: number };
}

async function inFlight({ url }: TestServer): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/^calls_in_flight (\d+)$/m.exec(metrics)?.[1]);
}

const hundred = Array.from({ length: 100 }, (_, i) => i);
const protocolOf = (i: number): Protocol => PROTOCOLS[i % PROTOCOLS.length] as Protocol;
const distinct = (values: readonly unknown[]) => new Set(values).size;

describe('a hundred concurrent requests', () => {
  it('a hundred equal requests with one key, over all protocols and two replicas, make one charge', async () => {
    const key = randomUUID();
    const other = apiClients(patient.url);
    const replies = await Promise.all(
      hundred.map((i) => (i < 50 ? clients : other).create(protocolOf(i), cardPayment(), headersOne(key))),
    );
    other.close();
    expect(await made(key)).toEqual({ payments: 1, charges: 1 });
    const answered = replies.filter(({ record }) => record !== '');
    // A request whose wait for the first response ends gets this error; on a busy machine, so
    // does a request whose wait for the database ends.
    const refusals = replies.filter(({ record }) => record === '').map(({ reason }) => reason);
    expect(['REQUEST_IN_PROGRESS', 'SERVICE_UNAVAILABLE']).toEqual(expect.arrayContaining(refusals));
    expect(answered.length).toBeGreaterThanOrEqual(50);
    expect(distinct(answered.map(({ record }) => record))).toBe(1);
    expect(answered.filter(({ headers }) => headers.get('idempotent-replayed') === null)).toHaveLength(1);
  });

  it('a hundred different concurrent requests with one key make one charge, and the rest are refused', async () => {
    const key = randomUUID();
    const replies = await Promise.all(
      hundred.map((i) =>
        clients.create(protocolOf(i), withField(cardPayment(), 'amount.value', i + 1), headersOne(key)),
      ),
    );
    expect(await made(key)).toEqual({ payments: 1, charges: 1 });
    expect(replies.filter(({ record }) => record !== '')).toHaveLength(1);
    expect(replies.filter(({ reason }) => reason === 'IDEMPOTENCY_KEY_REUSED')).toHaveLength(99);
  });

  it('a hundred concurrent requests with a hundred keys make a hundred payments', async () => {
    const keys = hundred.map(() => randomUUID());
    const replies = await Promise.all(
      keys.map((key, i) => clients.create(protocolOf(i), cardPayment(), headersOne(key))),
    );
    expect(distinct(replies.map(({ record }) => JSON.parse(record).id))).toBe(100);
    for (const key of keys) expect(await made(key)).toEqual({ payments: 1, charges: 1 });
  });
});

describe('while the first request is in progress', () => {
  const inProgress = (protocol: Protocol) => ({
    reason: 'REQUEST_IN_PROGRESS',
    retryAfterS: 1,
    ...(protocol === 'rest' ? { status: 409 } : { code: 'Aborted' }),
  });

  it('repeats of a request in progress wait, then are told to retry; a different request is refused', async () => {
    const headers = headersOne();
    const giveAnswers = provider.hold();
    const request = UNKNOWN;
    const first = clients.create('rest', request, headers);
    await expect.poll(() => made(headers['x-idempotency-key'] ?? '')).toEqual({ payments: 1, charges: 1 });

    const other = await clients.create('grpc', withField(request, 'description', 'x'), headers);
    expect(other.reason).toBe('IDEMPOTENCY_KEY_REUSED');
    const startedMs = performance.now();
    const repeats = await Promise.all(
      PROTOCOLS.map((protocol) => clients.create(protocol, request, headers)),
    );
    expect(performance.now() - startedMs).toBeGreaterThan(WAIT_MS * 0.5);
    for (const [i, repeat] of repeats.entries()) expect(repeat).toMatchObject(inProgress(protocolOf(i)));

    giveAnswers();
    const { record } = await first;
    expect(JSON.parse(record).status).toBe('PENDING');
    for (const protocol of PROTOCOLS) {
      expect((await clients.create(protocol, request, headers)).record).toBe(record);
    }
    expect(await made(headers['x-idempotency-key'] ?? '')).toEqual({ payments: 1, charges: 1 });
  });

  it('a repeat that waits long enough gets the first response', async () => {
    const headers = headersOne();
    const giveAnswers = provider.hold();
    const first = clients.create('rest', UNKNOWN, headers);
    await expect.poll(() => made(headers['x-idempotency-key'] ?? '')).toEqual({ payments: 1, charges: 1 });
    const other = apiClients(patient.url);
    const repeat = other.create('grpc', UNKNOWN, headers);
    await expect.poll(() => inFlight(patient)).toBe(1);
    giveAnswers();
    expect((await repeat).record).toBe((await first).record);
    other.close();
  });
});

describe('when the client disconnects', { concurrent: true }, () => {
  /** Disconnects as soon as the provider was called. */
  const LEAVE: Record<
    string,
    (url: string, request: RequestJson, headers: Record<string, string>) => Promise<void>
  > = {
    async 'closing its connection (REST)'(url, request, headers) {
      const controller = new AbortController();
      const call = fetch(`${url}/v1/payments`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(request),
        signal: controller.signal,
      }).catch(() => {});
      await expect.poll(() => made(headers['x-idempotency-key'] ?? '')).toMatchObject({ payments: 1 });
      controller.abort();
      await call;
    },
    async 'resetting its stream (gRPC)'(url, request, headers) {
      const leaving = apiClients(url);
      const call = leaving.create('grpc', request, headers).catch(() => {});
      await expect.poll(() => made(headers['x-idempotency-key'] ?? '')).toMatchObject({ payments: 1 });
      leaving.close();
      await call;
    },
    async 'by its own deadline (gRPC)'(url, request, headers) {
      const leaving = apiClients(url);
      const late = await leaving.create('grpc', request, { ...headers, 'grpc-timeout': '3S' });
      expect(late.record).toBe('');
      expect(['DeadlineExceeded', 'Unavailable']).toContain(late.code);
      leaving.close();
    },
  };

  it.each(Object.entries(LEAVE))(
    'a payment whose client disconnects %s is made, and the repeat gets the response',
    async (_name, leave) => {
      const headers = headersOne();
      const giveAnswers = provider.hold();
      await leave(patient.url, HELD, headers);
      const other = apiClients(patient.url);
      const answer = other.create('rest', HELD, headers);
      giveAnswers();
      const repeat = await answer;
      other.close();
      expect(JSON.parse(repeat.record).status).toBe('SUCCEEDED');
      expect(repeat.headers.get('idempotent-replayed')).toBe('true');
      expect(await made(headers['x-idempotency-key'] ?? '')).toEqual({ payments: 1, charges: 1 });
    },
  );
});
