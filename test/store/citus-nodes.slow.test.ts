import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { guardNodes } from '#src/server/guard-nodes.ts';
import { checkNode } from '#src/store/engine/check-writable.ts';
import type { Database } from '#src/store/engine/database.ts';
import { type AccountNode, listAccountNodes } from '#src/store/engine/distribution.ts';
import { MIGRATIONS, migrate } from '#src/store/engine/migrate.ts';
import { insertAccount, insertPublicKey } from '#src/store/tables/accounts.ts';
import { createTestDatabase, openTestDatabase } from '../support/database.ts';
import { walletPayment } from '../support/payment-requests.ts';
import { runIn } from '../support/run-in.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

// These tests need Citus: CITUS_URL names a database of a coordinator with workers, all on this machine.

const onCitus = describe.skipIf(!process.env.CITUS_URL);

onCitus(
  'a node that hangs (skipped unless CITUS_URL names a coordinator whose nodes run on this machine)',
  () => {
    let server: TestServer;
    let healthy: AccountNode;
    let hanging: AccountNode;
    let pids: number[];
    beforeAll(async () => {
      server = await startTestServer();
      const database = openTestDatabase(server.databaseUrl, 1);
      const [first, second] = await listAccountNodes(database);
      if (!first || !second) throw new Error('the test needs two nodes');
      [healthy, hanging] = [first, second];
      for (const { accountId } of [healthy, hanging]) {
        await insertAccount(database, { id: accountId, name: '', publicKeyMay: 'PAYMENTS' });
        await insertPublicKey(database, `pk-${accountId}`, accountId);
      }
      await database.close();
      const node = new URL(server.databaseUrl);
      node.host = hanging.node;
      const [row] = await runIn(
        node.href,
        "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS pid",
      );
      pids = processTree(Number(row?.pid));
    });
    afterAll(() => server?.close());

    const pay = async ({ accountId }: AccountNode) => {
      const startedMs = performance.now();
      const response = await fetch(`${server.url}/v1/payments`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'public-api-key': `pk-${accountId}`,
          'x-idempotency-key': randomUUID(),
        },
        body: JSON.stringify({ ...walletPayment(), account_id: accountId }),
      });
      await response.arrayBuffer();
      return { status: response.status, ms: performance.now() - startedMs };
    };

    it("only the hanging node's accounts are refused, within seconds, and the service stays ready", async () => {
      expect((await pay(healthy)).status).toBe(201);
      expect((await pay(hanging)).status).toBe(201);
      const others: { status: number; ms: number }[] = [];
      const refused: { status: number; ms: number }[] = [];
      pids = processTree(pids[0] ?? 0);
      for (const pid of pids) process.kill(pid, 'SIGSTOP');
      try {
        const untilMs = performance.now() + 6_000;
        const calls: Promise<unknown>[] = [];
        while (performance.now() < untilMs) {
          calls.push(pay(healthy).then((it) => others.push(it)));
          calls.push(pay(hanging).then((it) => refused.push(it)));
          await sleep(50);
        }
        await Promise.all(calls);
        const ready = await fetch(`${server.url}/readyz`);
        expect([ready.status, await ready.json()]).toEqual([
          200,
          { status: 'ready', ill_nodes: [`${hanging.node} does not respond`] },
        ]);
        expect(await (await fetch(`${server.url}/metrics`)).text()).toContain(
          `database_node_ill{node="${hanging.node}"} 1`,
        );
      } finally {
        for (const pid of pids) process.kill(pid, 'SIGCONT');
      }
      expect(new Set(others.map(({ status }) => status))).toEqual(new Set([201]));
      expect(Math.max(...refused.map(({ ms }) => ms))).toBeLessThan(5_000);
      const statuses = refused.map(({ status }) => status);
      expect(new Set(statuses.slice(-20))).toEqual(new Set([503]));
      expect(statuses.filter((status) => status !== 503 && status !== 409)).toEqual([]);
      await vi.waitFor(async () => expect((await pay(hanging)).status).toBe(201), {
        timeout: 10_000,
        interval: 200,
      });
    });
  },
);

/** Returns a process and all its descendants. */
function processTree(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean);
  return [pid, ...children.flatMap((child) => processTree(Number(child)))];
}

onCitus('a migration of a busy table (skipped unless CITUS_URL names a coordinator)', () => {
  it('a migration that cannot lock a shard gives way, so that payments on other nodes go on', async () => {
    const own = await createTestDatabase();
    const database = openTestDatabase(own.url, 4);
    const [node] = await listAccountNodes(database);
    const directory = mkdtempSync(join(tmpdir(), 'migrations-'));
    cpSync(MIGRATIONS, directory, { recursive: true });
    const next = `${String(readdirSync(directory).length + 1).padStart(4, '0')}_more.sql`;
    writeFileSync(join(directory, next), 'ALTER TABLE payment ADD COLUMN later integer');
    const url = new URL(own.url);
    url.host = node?.node ?? '';
    const client = new pg.Client(url.href);
    await client.connect();
    await client.query(
      'SET citus.override_table_visibility = false; SET citus.enable_manual_changes_to_shards = true',
    );
    const { rows } = await client.query(
      "SELECT relname FROM pg_class WHERE relname ~ '^payment_[0-9]+$' LIMIT 1",
    );
    await client.query(`BEGIN; LOCK TABLE ${rows[0]?.relname} IN ACCESS SHARE MODE`);
    const config = { databaseMaxConnections: 4, workers: 1, allowUnsafeDatabase: false };
    const guarded = await guardNodes(database, own.url, config, pino({ level: 'silent' }));
    const migrating = migrate(database, directory, { tableWaitMs: 2_000, tries: 20, pauseMs: 1_000 });
    // A node that is found ill would refuse a read.
    const slowest = await slowestRead(guarded.database, 6_000);
    expect(slowest).toBeLessThan(3_000);
    await client.query('COMMIT');
    await guarded.close();
    await client.end();
    expect(await migrating).toEqual([next]);
    rmSync(directory, { recursive: true });
    await database.close();
    await own.drop();
  });

  /** Reads a payment of every node again and again. @returns the longest time that a read took, in milliseconds. */
  async function slowestRead(database: Database, forMs: number): Promise<number> {
    const nodes = await listAccountNodes(database);
    const untilMs = performance.now() + forMs;
    let slowestMs = 0;
    while (performance.now() < untilMs) {
      const startedMs = performance.now();
      await Promise.all(nodes.map((node) => checkNode(database, node)));
      slowestMs = Math.max(slowestMs, performance.now() - startedMs);
      await sleep(20);
    }
    return slowestMs;
  }
});
