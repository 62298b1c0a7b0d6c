import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { Database } from '#src/store/engine/database.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from './database.ts';
import { ACCOUNT_ONE } from './payment-requests.ts';
import { openTables, type Tables } from './tables.ts';

let test: TestDatabase;
/** The file's database, as the service uses it. */
export let database: Database;
/** Its URL, for the test's own connections. */
export const databaseUrl = (): string => test.url;
/** The same database, for the test's own statements. */
export let tables: Tables;

/**
 * Gives a file's tests their own database.
 *
 * @param options.empties names the tables to empty before each test; by default none.
 */
export function onOwnDatabase(options: {
  readonly empties?: string | undefined;
  readonly maxConnections?: number;
}): void {
  const { empties, maxConnections = 4 } = options;
  beforeAll(async () => {
    test = await createTestDatabase();
    database = openTestDatabase(test.url, maxConnections);
    tables = await openTables(test.url);
    await tables.query("INSERT INTO account (id, name) VALUES ($1, 'Test')", [ACCOUNT_ONE]);
  });
  if (empties) beforeEach(() => tables.query(`TRUNCATE ${empties}`));
  afterAll(async () => {
    await tables?.close();
    await database?.close();
    await test?.drop();
  });
}
