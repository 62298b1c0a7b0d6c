import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Database } from '#src/store/engine/database.ts';
import { assertDurable } from '#src/store/engine/durability.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/database.ts';

let test: TestDatabase;
let database: Database;

beforeAll(async () => {
  test = await createTestDatabase({ empty: true });
  database = openTestDatabase(test.url, 1);
});
afterAll(async () => {
  await database?.close();
  await test?.drop();
});

it('a database with fsync off is refused unless allowed, and the error names the settings that are off', async () => {
  await expect(assertDurable(database, false)).rejects.toThrow(
    /these settings are off: fsync, full_page_writes, synchronous_commit$/,
  );
  expect(await assertDurable(database, true)).toEqual([]);
});

it('a session whose commits do not wait for the disk is refused', async () => {
  const lazy = openTestDatabase(`${test.url}?options=-c%20synchronous_commit%3Doff`, 1);
  await expect(assertDurable(lazy, false)).rejects.toThrow(/synchronous_commit/);
  await lazy.close();
});
