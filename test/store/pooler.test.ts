import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Database, type DatabaseOptions, openDatabase } from '#src/store/engine/database.ts';
import { assertDirect, assertPooler, PoolerError } from '#src/store/engine/pooler.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { openTables, type Tables } from '../support/tables.ts';
import { startTransactionPooler } from '../support/transaction-pooler.ts';

const log = pino({ level: 'silent' });
let test: TestDatabase;
let tables: Tables;
const closing: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  test = await createTestDatabase({ empty: true });
  tables = await openTables(test.url);
});
afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
});
afterAll(async () => {
  await tables?.close();
  await test?.drop();
});

function open(options: Partial<DatabaseOptions>): Database {
  const database = openDatabase({ url: test.url, maxConnections: 2, log, ...options });
  closing.push(database);
  return database;
}

/** A pooler of those that know no prepared statements, in transaction mode. */
async function startPooler(): Promise<string> {
  const pooler = await startTransactionPooler(test.url);
  closing.push(pooler);
  return pooler.url;
}

/** Sets the time limits of new sessions, as the role's would be set; the role itself is everybody's in these tests. */
async function setLimits(statement: string, idle: string): Promise<void> {
  const name = new URL(test.url).pathname.slice(1);
  await tables.query(`ALTER DATABASE ${name} SET statement_timeout = '${statement}'`);
  await tables.query(`ALTER DATABASE ${name} SET idle_in_transaction_session_timeout = '${idle}'`);
}

describe('the way to the database', () => {
  it('is direct where the time limits that a connection asks for arrive, whatever the role has', async () => {
    await assertDirect(open({}));
    await setLimits('1s', '2s');
    await assertDirect(open({}));
  });

  it('is refused where a pooler drops them, even if the role has the same, and says what to set', async () => {
    await setLimits('5s', '10s');
    const refused = assertDirect(open({ url: await startPooler() }));
    await expect(refused).rejects.toThrow(PoolerError);
    await expect(refused).rejects.toThrow(/set DATABASE_DIRECT_URL to the database itself/);
  });
});

describe('a pooler', () => {
  it('is refused where it mixes up prepared statements, and the error says which one to take', async () => {
    await setLimits('5s', '10s');
    const refused = assertPooler({ url: await startPooler(), log });
    await expect(refused).rejects.toThrow(PoolerError);
    await expect(refused).rejects.toThrow(/PgBouncer 1\.21 or newer .*max_prepared_statements = 200/);
  });

  it.each([
    ['0', '0', ["statement_timeout = '5s'", "idle_in_transaction_session_timeout = '10s'"]],
    ['6s', '10s', ["statement_timeout = '5s'"]],
    ['5s', '0', ["idle_in_transaction_session_timeout = '10s'"]],
  ])(
    'is refused where its sessions have the limits %s and %s, and the error has the statement that sets them',
    async (statement, idle, settings) => {
      await setLimits(statement, idle);
      const refused = await assertPooler({ url: test.url, log }).catch((error: Error) => error);
      expect(refused).toBeInstanceOf(PoolerError);
      const named = [...String(refused).matchAll(/ALTER ROLE \w+ SET (\w+ = '\w+')/g)].map(([, it]) => it);
      expect(named).toEqual(settings);
    },
  );

  it('is taken where each of its sessions keeps prepared statements and has the limits', async () => {
    await setLimits('5s', '10s');
    await assertPooler({ url: test.url, log });
  });

  it("is not asked for a session of its own, which would be somebody else's a moment later", async () => {
    const pooled = open({ isPooled: true });
    await expect(pooled.session(async () => {}, 1_000)).rejects.toThrow('a pooler');
    await expect(pooled.transaction((run) => run('SELECT 1'))).resolves.toMatchObject({ rowCount: 1 });
  });
});
