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

/** Starts a pooler in transaction mode without support for prepared statements. */
async function startPooler(): Promise<string> {
  const pooler = await startTransactionPooler(test.url);
  closing.push(pooler);
  return pooler.url;
}

/** Sets the time limits of new sessions for the database, because the tests share one role. */
async function setLimits(statement: string, idle: string): Promise<void> {
  const name = new URL(test.url).pathname.slice(1);
  await tables.query(`ALTER DATABASE ${name} SET statement_timeout = '${statement}'`);
  await tables.query(`ALTER DATABASE ${name} SET idle_in_transaction_session_timeout = '${idle}'`);
}

describe('a direct connection', () => {
  it('a connection counts as direct if its time limits take effect, whatever the defaults', async () => {
    await assertDirect(open({}));
    await setLimits('1s', '2s');
    await assertDirect(open({}));
  });

  it('a connection through a pooler that drops time limits is refused, and the error names the setting', async () => {
    await setLimits('5s', '10s');
    const refused = assertDirect(open({ url: await startPooler() }));
    await expect(refused).rejects.toThrow(PoolerError);
    await expect(refused).rejects.toThrow(/set DATABASE_DIRECT_URL to the database itself/);
  });
});

describe('a pooler', () => {
  it('a pooler without prepared statements is refused, and the error names a suitable one', async () => {
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
    'sessions with the limits %s and %s are refused, and the error has the statement that sets them',
    async (statement, idle, settings) => {
      await setLimits(statement, idle);
      const refused = await assertPooler({ url: test.url, log }).catch((error: Error) => error);
      expect(refused).toBeInstanceOf(PoolerError);
      const named = [...String(refused).matchAll(/ALTER ROLE \w+ SET (\w+ = '\w+')/g)].map(([, it]) => it);
      expect(named).toEqual(settings);
    },
  );

  it('sessions that keep prepared statements and have the required limits are accepted', async () => {
    await setLimits('5s', '10s');
    await assertPooler({ url: test.url, log });
  });

  it('a pooled database refuses to open a session but runs transactions', async () => {
    const pooled = open({ isPooled: true });
    await expect(pooled.session(async () => {}, 1_000)).rejects.toThrow('a pooler');
    await expect(pooled.transaction((run) => run('SELECT 1'))).resolves.toMatchObject({ rowCount: 1 });
  });
});
