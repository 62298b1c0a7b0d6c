import { randomUUID } from 'node:crypto';
import net from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type ApiClients, apiClients, PROTOCOLS } from '../support/api-clients.ts';
import { sandboxCatalogue } from '../support/catalogues.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { ACCOUNT_ONE, cardPayment, headersOne, withField } from '../support/payment-requests.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { failWrites, openTables, type Tables } from '../support/tables.ts';

const WAIT_MS = 300;
/** Longer than the sandbox's delayed approval. */
const PROVIDER_TIMEOUT_MS = 4_000;

let database: TestDatabase;
let server: TestServer;
let clients: ApiClients;
let tables: Tables;
let line: Awaited<ReturnType<typeof cuttableLine>> | undefined;

/** A service that reaches its database at `databaseUrl`; the tests reach the database directly. */
async function start(databaseUrl = database.url): Promise<void> {
  server = await startTestServer({
    config: {
      inProgressWaitMs: WAIT_MS,
      checkSchedule: { leaseMarginMs: 1_000, firstCheckMs: 500, closingMarginMs: 0 },
    },
    catalogue: sandboxCatalogue(PROVIDER_TIMEOUT_MS),
    databaseUrl,
  });
  clients = apiClients(server.url);
  tables = await openTables(database.url);
}

afterEach(async () => {
  clients?.close();
  await tables?.close();
  await server?.close();
  await line?.close();
  line = undefined;
  await database?.drop();
});

/** A connection to the database that can be cut: `cut` has the effect of stopping the database. */
async function cuttableLine(databaseUrl: string) {
  const target = new URL(databaseUrl);
  const sockets = new Set<net.Socket>();
  let isCut = false;
  const proxy = net.createServer((near) => {
    if (isCut) {
      near.resetAndDestroy();
      return;
    }
    const far = net.connect(Number(target.port), target.hostname);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.pipe(other);
      socket.on('error', () => {});
      socket.once('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String((proxy.address() as net.AddressInfo).port);
  return {
    url: url.href,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    mend() {
      isCut = false;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}

const SERVICE_UNAVAILABLE = { reason: 'SERVICE_UNAVAILABLE', retryAfterS: 1, record: '' };

describe('a database that is unavailable before the claim', () => {
  it('without a database, every protocol refuses payments with 503 and Retry-After, and sends nothing', async () => {
    database = await createTestDatabase();
    line = await cuttableLine(database.url);
    await start(line.url);
    // Known keys are cached for a while, so the second refusal comes from the claim itself.
    expect((await clients.create('rest', cardPayment(), headersOne())).status).toBe(201);
    const before = await tables.counts();
    const key = randomUUID();

    line.cut();
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    await expect.poll(async () => (await fetch(`${server.url}/readyz`)).status).toBe(503);
    for (const request of [cardPayment(), withField(cardPayment(), 'customer_payer.id', randomUUID())]) {
      for (const protocol of PROTOCOLS) {
        const reply = await clients.create(protocol, request, headersOne(key));
        expect(reply).toMatchObject(SERVICE_UNAVAILABLE);
        expect(reply.headers.get('retry-after')).toBe('1');
        expect(protocol === 'rest' ? reply.status : reply.code).toBe(
          protocol === 'rest' ? 503 : 'Unavailable',
        );
        expect(reply.raw).not.toMatch(/ECONN|terminated|postgres|127\.0\.0\.1/i);
      }
    }
    const unknownKeys = { ...headersOne(key), 'public-api-key': 'pk_never_seen' };
    expect(await clients.create('rest', cardPayment(), unknownKeys)).toMatchObject(SERVICE_UNAVAILABLE);

    line.mend();
    await expect.poll(async () => (await fetch(`${server.url}/readyz`)).status).toBe(200);
    expect(await tables.counts()).toEqual(before);
    const accepted = await clients.create('grpc', cardPayment(), headersOne(key));
    expect(JSON.parse(accepted.record).status).toBe('SUCCEEDED');
    expect(accepted.headers.get('idempotent-replayed')).toBeNull();
  });
});

/** Fails every UPDATE of payments with an SQLSTATE: each raises the version. */
const failUpdates = (sqlState: string) => failWrites(tables, 'payment', sqlState, 'version = 0');

describe('an outcome that cannot be written', () => {
  it.each([
    ['approved', '4012888888881881', 'SUCCEEDED', '57P03'],
    ['declined', '4000000000000002', 'DECLINED', '53100'],
  ])(
    'a call whose outcome cannot be written gets 409 while %s, and the outcome once it can be written',
    async (_name, number, status, sqlState) => {
      database = await createTestDatabase();
      await start();
      const mend = await failUpdates(sqlState);
      const headers = headersOne();
      const request = withField(cardPayment(number), 'payment_method.vault_on_success', true);
      for (const protocol of PROTOCOLS) {
        const reply = await clients.create(protocol, request, headers);
        expect(reply).toMatchObject({ reason: 'REQUEST_IN_PROGRESS', retryAfterS: 1, record: '' });
        expect(protocol === 'rest' ? reply.status : reply.code).toBe(protocol === 'rest' ? 409 : 'Aborted');
      }
      expect(await tables.counts()).toMatchObject({ payments: 1, charges: 1 });
      expect(server.logLines.join('')).toContain('could not be written yet');

      await mend();
      await expect
        .poll(async () => (await clients.create('rest', request, headers)).status, { interval: 100 })
        .toBe(201);
      const replies = await Promise.all(
        PROTOCOLS.map((protocol) => clients.create(protocol, request, headers)),
      );
      for (const reply of replies) {
        const record = JSON.parse(reply.record);
        expect(record.status).toBe(status);
        expect(record.payment_method.vaulted_token !== '').toBe(status === 'SUCCEEDED');
      }
      const made = server.logLines
        .map((line) => JSON.parse(line))
        .filter(({ msg }) => msg === 'payment made');
      expect(made).toMatchObject([{ payment_status: status, account_id: request.account_id }]);
      expect(await tables.counts()).toMatchObject({ payments: 1, charges: 1 });
    },
  );

  it('an outcome is written once another session releases the row', async () => {
    database = await createTestDatabase();
    await start();
    const headers = headersOne();
    const APPROVED_AFTER_DELAY = '4000000000007007';
    const first = clients.create('rest', cardPayment(APPROVED_AFTER_DELAY), headers);
    await expect.poll(async () => (await tables.counts()).payments).toBe(1);
    await tables.query('BEGIN');
    await tables.query('SELECT 1 FROM payment WHERE account_id = $1 FOR UPDATE', [ACCOUNT_ONE]);
    expect(await first).toMatchObject({ status: 409, reason: 'REQUEST_IN_PROGRESS' });
    await tables.query('COMMIT');
    await expect
      .poll(async () => (await clients.create('rest', cardPayment(APPROVED_AFTER_DELAY), headers)).record)
      .toContain('"status":"SUCCEEDED"');
    expect(await tables.counts()).toMatchObject({ payments: 1, charges: 1 });
  });

  it('an outcome that an internal fault keeps from being written is an internal error', async () => {
    database = await createTestDatabase();
    await start();
    await failUpdates('22023');
    const headers = headersOne();
    const reply = await clients.create('rest', cardPayment(), headers);
    expect([reply.status, reply.reason]).toEqual([500, 'INTERNAL_ERROR']);
    const [stored] = await tables.query('SELECT status, response FROM payment');
    expect(stored).toEqual({ status: 'PENDING', response: null });
    expect((await clients.create('rest', cardPayment(), headers)).reason).toBe('REQUEST_IN_PROGRESS');
    expect(await tables.counts()).toMatchObject({ payments: 1, charges: 1 });
  });
});

const BREAK_CONNECTIONS = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'payments-service' AND datname = current_database()`;

it('every payment that succeeds has one charge, even if the database keeps breaking connections', async () => {
  database = await createTestDatabase();
  await start();
  const keys = Array.from({ length: 40 }, () => randomUUID());
  const pay = (key: string) => clients.create('rest', cardPayment(), headersOne(key));
  for (let i = 0; i < keys.length; i += 8) {
    const calls = Promise.all(keys.slice(i, i + 8).map(pay));
    let answered = false;
    calls.finally(() => {
      answered = true;
    });
    while (!answered) await tables.query(BREAK_CONNECTIONS);
    // Accepted; or known not to have been accepted, so that it may be sent again; or still unknown.
    for (const reply of await calls) expect([201, 503, 409]).toContain(reply.status);
  }
  for (const key of keys) {
    await expect.poll(async () => (await pay(key)).status, { interval: 200 }).toBe(201);
  }
  const open = "SELECT 1 FROM payment WHERE status = 'PENDING'";
  await expect.poll(() => tables.query(open), { interval: 200 }).toEqual([]);
  const [sum] = await tables.query(`
    SELECT count(*)::int AS payments, count(*) FILTER (WHERE p.status = 'SUCCEEDED')::int AS succeeded,
      count(l.id)::int AS charged, count(*) FILTER (WHERE p.status = 'SUCCEEDED' AND l.id IS NOT NULL)::int AS both
    FROM payment p JOIN transaction t ON t.account_id = p.account_id AND t.payment_id = p.id
    LEFT JOIN sandbox.ledger l ON l.idempotency_key = t.id::text AND l.status = 'approved'`);
  expect(sum?.payments).toBe(keys.length);
  expect([sum?.charged, sum?.both]).toEqual([sum?.succeeded, sum?.succeeded]);
});
