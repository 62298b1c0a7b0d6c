import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { checkNode, checkWritable } from '#src/store/engine/check-writable.ts';
import { countOpenAttempts, countOpenLater, takeDue, takeUnaskable } from '#src/store/engine/checks.ts';
import { type Database, openDatabase } from '#src/store/engine/database.ts';
import { isUnavailable } from '#src/store/engine/database-error.ts';
import { distribute, isDistributed, listAccountNodes, PLACEMENTS } from '#src/store/engine/distribution.ts';
import { findDueWork } from '#src/store/engine/due-work.ts';
import { MIGRATIONS, migrate } from '#src/store/engine/migrate.ts';
import { findNotifiedTransaction, takeDueNews } from '#src/store/tables/notifications.ts';
import {
  countPendingDeliveries,
  countRecentAttempts,
  listOldestOpenAttempts,
  listRecentRecords,
  listTroubledWebhooks,
} from '#src/store/tables/open-work.ts';
import { listOverdueWebhooks, relayEvents } from '#src/store/tables/outbox.ts';
import { takeDueEnrollments } from '#src/store/tables/wallet-enrollments.ts';
import { createCitus, dropCitus } from '../support/citus.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/database.ts';
import { callMainPath } from '../support/main-path.ts';
import { runIn } from '../support/run-in.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

// These tests need Citus: CITUS_URL names a database of a coordinator to which workers were added. If it is set, the
// other tests also run on Citus: CITUS_URL=… npx vitest run test/scenarios.test.ts

const coordinatorUrl = process.env.CITUS_URL ?? '';
const onCitus = describe.skipIf(coordinatorUrl === '');

onCitus('distributing a database (skipped unless CITUS_URL names a coordinator)', () => {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  let url: string;
  const open = () => openDatabase({ url, maxConnections: 2, log: { warn: () => {} } });
  beforeAll(async () => {
    url = await createCitus(coordinatorUrl, name);
  });
  afterAll(() => dropCitus(coordinatorUrl, name));

  it('a database with payments is distributed once and keeps its rows', async () => {
    const database = open();
    await migrate(database, MIGRATIONS);
    expect(await isDistributed(database)).toBe(false);
    await runIn(
      url,
      "INSERT INTO account (id, name) SELECT md5(i::text)::uuid, '' FROM generate_series(1, 10) i",
    );
    await runIn(
      url,
      `INSERT INTO payment (account_id, id, idempotency_key, request_hash, request_shape, status, record)
       SELECT md5((i % 10 + 1)::text)::uuid, gen_random_uuid(), i, '', '', '', '' FROM generate_series(1, 5000) i`,
    );
    const { byAccount, functions } = await distribute(database);
    expect(byAccount).toEqual(Object.keys(PLACEMENTS).filter((table) => PLACEMENTS[table] === 'by account'));
    expect(functions.length).toBeGreaterThan(4);
    expect(await isDistributed(database)).toBe(true);
    expect(await distribute(database)).toEqual({ copied: [], byAccount: [], functions: [] });
    expect(await runIn(url, 'SELECT count(*)::integer AS n FROM payment')).toEqual([{ n: 5_000 }]);
    expect(await runIn(url, "SELECT pg_relation_size('payment')::integer AS local")).toEqual([{ local: 0 }]);
    const keys =
      "SELECT conname FROM pg_constraint WHERE contype = 'f' AND conrelid = 'checkout_session'::regclass";
    expect(await runIn(url, `${keys} AND confrelid = 'customer'::regclass`)).toHaveLength(1);
    await database.close();
  });

  it('two replicas that migrate a distributed database at once distribute a table that a migration has added', async () => {
    const replicas = [open(), open()];
    await runIn(url, "SELECT undistribute_table('single_use')");
    await Promise.all(replicas.map((database) => migrate(database, MIGRATIONS)));
    const placed = "SELECT partmethod FROM pg_dist_partition WHERE logicalrelid = 'single_use'::regclass";
    expect(await runIn(url, placed)).toEqual([{ partmethod: 'h' }]);
    for (const database of replicas) await database.close();
  });

  it('every node that stores accounts can be asked whether it accepts writes', async () => {
    const database = { ...open(), isDistributed: true };
    const nodes = await listAccountNodes(database);
    expect(nodes.length).toBeGreaterThan(1);
    for (const node of nodes) await checkNode(database, node);
    await checkWritable(database);
    await database.close();
  });
});

onCitus('a node that is down (skipped unless CITUS_URL names a coordinator)', () => {
  const connection = { connectionId: 'scripted', identity: 'scripted' };
  let own: TestDatabase;
  let database: Database;
  let accountUp: string;
  let accountDown: string;
  beforeAll(async () => {
    own = await createTestDatabase();
    database = openTestDatabase(own.url, 4);
    const [up, down] = await listAccountNodes(database);
    accountUp = up?.accountId ?? '';
    accountDown = down?.accountId ?? '';
    for (const accountId of [accountUp, accountDown]) {
      await runIn(own.url, `INSERT INTO account (id, name) VALUES ('${accountId}', '')`);
      await runIn(own.url, dueTransaction(accountId));
    }
    // The engine finds no PostgreSQL at the port, as if the node had stopped.
    const [host, port] = (down?.node ?? '').split(':');
    await runIn(
      own.url,
      `UPDATE pg_dist_node SET nodeport = 1 WHERE nodename = '${host}' AND nodeport = ${port}`,
    );
  });
  afterAll(async () => {
    await database?.close();
    await own?.drop();
  });

  it('while a node is down, due transactions on the other nodes are leased', async () => {
    const leased = await takeDue(database, connection, { limit: 10, leaseS: 60 });
    expect(leased.map(({ accountId }) => accountId)).toEqual([accountUp]);
    expect(await takeDue(database, connection, { limit: 10, leaseS: 60 })).toEqual([]);
  });

  it('while a node is down, provider ids on other nodes are found, and no id is reported as unknown', async () => {
    const find = (providerPaymentId: string) =>
      findNotifiedTransaction(database, { ...connection, transactionId: undefined, providerPaymentId });
    expect((await find(`of ${accountUp}`))?.accountId).toBe(accountUp);
    await expect(find(`of ${accountDown}`)).rejects.toSatisfy(isUnavailable);
  });

  it.each(Object.entries(SEARCHES))(
    'while a node is down, %s answers for the other nodes',
    async (_name, search) => {
      await search(database);
    },
  );

  it('the service is ready while one node accepts writes, but refuses accounts on a node that is down', async () => {
    await checkWritable(database);
    await expect(checkNode(database, { node: '', accountId: accountDown })).rejects.toSatisfy(isUnavailable);
  });

  it('a statement that reaches no node keeps its connection to the coordinator', async () => {
    const single = openTestDatabase(own.url, 1);
    const pid = async () =>
      (await single.query({ name: 'pid', text: 'SELECT pg_backend_pid() AS pid' })).rows[0];
    const before = await pid();
    await expect(checkNode(single, { node: '', accountId: accountDown })).rejects.toSatisfy(isUnavailable);
    expect(await pid()).toEqual(before);
    await single.close();
  });
});

/** Everything that searches all accounts, but those that lease, which the tests above call. */
const SEARCHES: Readonly<Record<string, (database: Database) => Promise<unknown>>> = {
  findDueWork: (database) => findDueWork(database, ['scripted'], []),
  countRecentAttempts,
  listRecentRecords,
  listOldestOpenAttempts: (database) => listOldestOpenAttempts(database, 10),
  countOpenAttempts: (database) => countOpenAttempts(database, 10),
  countOpenLater: (database) => countOpenLater(database, 10),
  listTroubledWebhooks: (database) => listTroubledWebhooks(database, 10),
  countPendingDeliveries: (database) => countPendingDeliveries(database, 10),
  listOverdueWebhooks: (database) => listOverdueWebhooks(database, 5),
  relayEvents: (database) => relayEvents(database, 10),
  takeUnaskable: (database) => takeUnaskable(database, [], { dueForS: 3_600, leaseS: 60 }),
  takeDueNews: (database) => takeDueNews(database, 'scripted', 10, { share: 1, firstS: 1, longestS: 60 }),
  takeDueEnrollments: (database) => takeDueEnrollments(database, 10),
};

const dueTransaction = (accountId: string) => `
  INSERT INTO transaction (account_id, id, payment_id, connection_id, connection_identity, status, amount_minor_units,
    currency, capture, provider_payment_id, check_at)
  SELECT '${accountId}', gen_random_uuid(), gen_random_uuid(), 'scripted', 'scripted', 'PENDING', 100, 'USD', true,
    'of ${accountId}', now() - interval '1 minute'`;

onCitus('the main path (skipped unless CITUS_URL names a coordinator)', () => {
  let server: TestServer;
  const calls = new Map<string, { text: string; values: unknown[] }>();
  beforeAll(async () => {
    const query = pg.Client.prototype.query;
    vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
      const {
        name,
        text,
        values = [],
      } = (args[0] ?? {}) as { name?: string; text?: string; values?: unknown[] };
      if (name && text) calls.set(name, { text, values });
      return Reflect.apply(query, this, args);
    } as typeof query);
    server = await startTestServer();
    await callMainPath(server.url);
    vi.restoreAllMocks();
  });
  afterAll(() => server?.close());

  it('every statement of the main path is one task on one node', async () => {
    const client = new pg.Client(server.databaseUrl);
    await client.connect();
    const tasks: Record<string, unknown> = {};
    for (const name of MAIN_PATH) {
      const { text, values } = calls.get(name) ?? {
        text: `SELECT 'the test does not run ${name}'`,
        values: [],
      };
      const { rows } = await client.query(`EXPLAIN (FORMAT JSON, VERBOSE) ${text}`, values as unknown[]);
      tasks[name] = /"Task Count": ?(\d+)/.exec(JSON.stringify(rows[0]))?.[1];
    }
    await client.end();
    expect(tasks).toEqual(Object.fromEntries(MAIN_PATH.map((name) => [name, '1'])));
  });
});

const MAIN_PATH = [
  ...['claim', 'claim_with_card', 'claim_of_session_by_token', 'claim_operation', 'find_by_key'],
  ...['write_outcome', 'write_change', 'write_next_attempt', 'read_payment_state'],
  ...['get_payment', 'find_operation_by_key', 'find_stored_objects'],
  ...['list_payments', 'list_payments_by_order', 'list_payments_by_status'],
  ...['get_checkout_session', 'get_one_time_token'],
];
