import { once } from 'node:events';
import { connect as connectTcp, createServer, type Server, type Socket } from 'node:net';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Database, type DatabaseOptions, openDatabase } from '#src/store/engine/database.ts';
import { isUnavailable } from '#src/store/engine/database-error.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const log = pino({ level: 'silent' });
const INSERT = { name: 'insert', text: 'INSERT INTO item (id) VALUES ($1)' };
const COUNT = { name: 'count', text: 'SELECT count(*) AS items FROM item' };
const SLEEP = { name: 'sleep', text: 'SELECT pg_sleep($1)' };
const CHECK = { name: 'check', text: 'SELECT 1' };
const PID = { name: 'pid', text: 'SELECT pg_backend_pid() AS pid' };

let test: TestDatabase;
let database: Database;
const opened: Database[] = [];

beforeAll(async () => {
  test = await createTestDatabase({ empty: true });
  const setup = open();
  await setup.transaction((run) => run('CREATE TABLE item (id bigint PRIMARY KEY)'));
});

beforeEach(async () => {
  database = open();
  await database.query({ name: 'clear', text: 'DELETE FROM item' });
});

afterEach(() => Promise.all(opened.splice(0).map((each) => each.close())));

afterAll(() => test.drop());

function open(options: Partial<DatabaseOptions> = {}): Database {
  const each = openDatabase({ url: test.url, maxConnections: 2, log, ...options });
  opened.push(each);
  return each;
}

describe('queries', () => {
  it('a query returns bigint values as bigint, and other pools still return strings', async () => {
    await database.query(INSERT, [9223372036854775807n]);
    const { rows } = await database.query({ name: 'ids', text: 'SELECT id, NULL::bigint AS none FROM item' });
    expect(rows).toEqual([{ id: 9223372036854775807n, none: null }]);
    const other = new pg.Client(test.url);
    await other.connect();
    expect((await other.query('SELECT id FROM item')).rows).toEqual([{ id: '9223372036854775807' }]);
    await other.end();
  });

  it('the round trip is the time of the shortest recent query, without the wait for a connection', async () => {
    const single = open({ maxConnections: 1 });
    expect(single.roundTripMs()).toBe(0);
    await Promise.all([single.query(SLEEP, [0.2]), single.query(CHECK)]);
    expect(single.roundTripMs()).toSatisfy((ms) => ms > 0 && ms < 150);
  });

  it('a query returns bytes unchanged, from a Buffer or any Uint8Array', async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
    const echo = { name: 'echo', text: 'SELECT $1::bytea AS whole, $2::bytea AS part' };
    const { rows } = await database.query(echo, [Buffer.from(bytes), bytes.subarray(250)]);
    expect(rows).toEqual([{ whole: Buffer.from(bytes), part: Buffer.from(bytes.subarray(250)) }]);
  });

  it('a query returns timestamptz values as Date', async () => {
    const { rows } = await database.query({
      name: 'at',
      text: "SELECT '2026-01-31T09:08:07Z'::timestamptz AS at",
    });
    expect(rows).toEqual([{ at: new Date('2026-01-31T09:08:07Z') }]);
  });

  it('a statement is prepared once per connection', async () => {
    const single = open({ maxConnections: 1 });
    for (let id = 1; id <= 3; id++) await single.query(INSERT, [id]);
    const plans = {
      name: 'plans',
      text: 'SELECT name, generic_plans + custom_plans AS runs FROM pg_prepared_statements',
    };
    const { rows } = await single.query<{ name: string; runs: bigint }>(plans);
    expect(rows.find((row) => row.name === 'insert')).toEqual({ name: 'insert', runs: 3n });
  });

  it('an SQL error leaves the connection open and does not count as unavailability', async () => {
    const single = open({ maxConnections: 1 });
    const { rows: before } = await single.query(PID);
    await single.query(INSERT, [1]);
    const error = await single.query(INSERT, [1]).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: '23505' });
    expect(isUnavailable(error)).toBe(false);
    expect((await single.query(PID)).rows).toEqual(before);
  });
});

describe('transactions', () => {
  it('a transaction commits its statements', async () => {
    await database.transaction(async (run) => {
      await run('INSERT INTO item VALUES ($1)', [1]);
      await run('INSERT INTO item VALUES ($1)', [2]);
    });
    expect((await database.query(COUNT)).rows).toEqual([{ items: 2n }]);
  });

  it('a transaction rolls back when its work rejects', async () => {
    const failed = database.transaction(async (run) => {
      await run('INSERT INTO item VALUES (1)');
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect((await database.query(COUNT)).rows).toEqual([{ items: 0n }]);
  });

  it('a transaction rejects when a statement failed, even if its work ignored the failure', async () => {
    const failed = database.transaction(async (run) => {
      await run('INSERT INTO item VALUES (1)');
      await run('INSERT INTO item VALUES (1)').catch(() => {});
    });
    await expect(failed).rejects.toThrow('rolled back');
    expect((await database.query(COUNT)).rows).toEqual([{ items: 0n }]);
  });
});

describe('unavailability', () => {
  it('a refused connection counts as unavailable', async () => {
    const closed = await listen(() => {});
    const port = portOf(closed);
    closed.close();
    await expectUnavailable(open({ url: at(port) }).query(CHECK));
  });

  it('an unknown host, a wrong password and a missing database count as unavailable', async () => {
    await expectUnavailable(open({ url: test.url.replace('127.0.0.1', 'nowhere.invalid') }).query(CHECK));
    await expectUnavailable(open({ url: test.url.replace(/:[0-9a-f]{64}@/, ':guess@') }).query(CHECK));
    await expectUnavailable(open({ url: `${test.url}_not` }).query(CHECK));
  });

  it('an exhausted pool counts as unavailable before a connection becomes free', async () => {
    const single = open({ maxConnections: 1, connectTimeoutMs: 200 });
    await untilConnected(single);
    let isBusy = true;
    const busy = single.query(SLEEP, [1]).finally(() => {
      isBusy = false;
    });
    await expectUnavailable(single.query(COUNT));
    expect(isBusy).toBe(true);
    await busy;
    await single.query(COUNT);
  });

  it('a server that accepts the connection but stays silent counts as unavailable', async () => {
    const sockets: Socket[] = [];
    const silent = await listen((socket) => sockets.push(socket));
    const started = performance.now();
    await expectUnavailable(open({ url: at(portOf(silent)), connectTimeoutMs: 200 }).query(CHECK));
    expect(performance.now() - started).toBeLessThan(5_000);
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  it('a statement that exceeds its timeout counts as unavailable, and the connection is free again', async () => {
    const hurried = open({ maxConnections: 1, statementTimeoutMs: 500 });
    await expectUnavailable(hurried.query(SLEEP, [5]));
    await hurried.query(COUNT);
  });

  it('a database that stops responding during a statement counts as unavailable', async () => {
    const relay = await openRelay();
    const hurried = open({ url: at(relay.port), statementTimeoutMs: 500 });
    await hurried.query(CHECK);
    relay.mute();
    await expectUnavailable(hurried.query(CHECK));
    // The silent connection is not reused; the relay mutes no new ones.
    await hurried.query(CHECK);
    relay.close();
  });

  it('a connection that breaks during a statement counts as unavailable', async () => {
    const relay = await openRelay();
    const cut = open({ url: at(relay.port) });
    await cut.query(CHECK);
    const running = expectUnavailable(cut.query(SLEEP, [5]));
    setTimeout(relay.cut, 50);
    await running;
    await cut.query(CHECK);
    relay.close();
  });

  it('a session that an administrator ends counts as unavailable, and the next query reconnects', async () => {
    const single = open({ maxConnections: 1 });
    await single.query(CHECK);
    await endSessions();
    await untilConnected(single);
    const running = expectUnavailable(single.query(SLEEP, [5]));
    await endSessions();
    await running;
    await expectUnavailable(
      single.transaction(async (run) => {
        await endSessions();
        await run('SELECT 1');
      }),
    );
    await single.query(CHECK);
  });

  it('a faulty statement does not count as unavailability', async () => {
    for (const text of ['SELEC 1', 'SELECT nothing', 'SELECT 1/0', "SELECT 'x'::uuid"]) {
      const error = await database.query({ name: text, text }).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(pg.DatabaseError);
      expect(isUnavailable(error)).toBe(false);
    }
    expect(isUnavailable(new TypeError('x'))).toBe(false);
    expect(isUnavailable('ECONNREFUSED')).toBe(false);
  });
});

/** Retries until the database responds to a statement. */
async function untilConnected(tried: Database): Promise<void> {
  const isConnected = () =>
    tried.query(CHECK).then(
      () => true,
      () => false,
    );
  await expect.poll(isConnected).toBe(true);
}

async function expectUnavailable(promise: Promise<unknown>): Promise<void> {
  const error = await promise.then(
    () => 'resolved',
    (caught: unknown) => caught,
  );
  expect(isUnavailable(error), String(error)).toBe(true);
}

async function endSessions(): Promise<void> {
  const admin = new pg.Client(test.url);
  await admin.connect();
  await new Promise((resolve) => setTimeout(resolve, 50));
  await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'payments-service'`);
  await admin.end();
}

function at(port: number): string {
  const url = new URL(test.url);
  url.port = String(port);
  return url.href;
}

async function listen(onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer(onConnection);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function portOf(server: Server): number {
  return (server.address() as { port: number }).port;
}

/** Opens a relay to PostgreSQL whose connections can be cut, or muted so that nothing arrives any more. */
async function openRelay() {
  const pairs: [Socket, Socket][] = [];
  const target = Number(new URL(test.url).port);
  const server = await listen((client) => {
    const upstream = connectTcp(target, '127.0.0.1');
    for (const socket of [client, upstream]) socket.on('error', () => {});
    client.pipe(upstream).pipe(client);
    pairs.push([client, upstream]);
  });
  const cut = () => {
    for (const socket of pairs.splice(0).flat()) socket.destroy();
  };
  return {
    port: portOf(server),
    cut,
    mute: () => {
      for (const [client, upstream] of pairs) client.unpipe(upstream);
    },
    close: () => {
      cut();
      server.close();
    },
  };
}
