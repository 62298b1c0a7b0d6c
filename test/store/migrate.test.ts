import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Database } from '#src/store/engine/database.ts';
import { compareSchema, migrate } from '#src/store/engine/migrate.ts';
import { MigrationError } from '#src/store/engine/schema-lock.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/database.ts';

let test: TestDatabase;
let database: Database;
let directory: string;

beforeEach(async () => {
  test = await createTestDatabase({ empty: true });
  database = openTestDatabase(test.url, 4);
  directory = mkdtempSync(join(tmpdir(), 'migrations-'));
});

afterEach(async () => {
  await database.close();
  await test.drop();
  rmSync(directory, { recursive: true, force: true });
});

it('migrations run once each, in order, and may have several statements', async () => {
  write('0001_first.sql', 'CREATE TABLE item (id int); INSERT INTO item VALUES (1);');
  write('0002_second.sql', 'INSERT INTO item SELECT id + 1 FROM item');
  expect(await migrate(database, directory)).toEqual(['0001_first.sql', '0002_second.sql']);
  expect(await migrate(database, directory)).toEqual([]);
  write('0003_third.sql', 'INSERT INTO item VALUES (3)');
  expect(await migrate(database, directory)).toEqual(['0003_third.sql']);
  expect(await select('SELECT id FROM item ORDER BY id')).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
  expect(await select('SELECT version, name FROM schema_migration ORDER BY version')).toEqual([
    { version: 1, name: 'first' },
    { version: 2, name: 'second' },
    { version: 3, name: 'third' },
  ]);
});

it('migrations run once each when replicas start together', async () => {
  write('0001_first.sql', 'CREATE TABLE item (id int); SELECT pg_sleep(0.2)');
  write('0002_second.sql', 'INSERT INTO item VALUES (1)');
  const done = await Promise.all([1, 2, 3, 4].map(() => migrate(database, directory)));
  expect(done.flat().sort()).toEqual(['0001_first.sql', '0002_second.sql']);
  expect(await select('SELECT id FROM item')).toEqual([{ id: 1 }]);
});

it('a failed migration leaves nothing behind, is named in the error, and can run once it is corrected', async () => {
  write('0001_first.sql', 'CREATE TABLE item (id int PRIMARY KEY)');
  write('0002_second.sql', 'INSERT INTO item VALUES (1); INSERT INTO item VALUES (1)');
  await expect(migrate(database, directory)).rejects.toThrow(/0002_second\.sql failed/);
  expect(await select('SELECT id FROM item')).toEqual([]);
  write('0002_second.sql', 'INSERT INTO item VALUES (1)');
  expect(await migrate(database, directory)).toEqual(['0002_second.sql']);
});

it('a migration that changed after it ran is refused with what to do, and nothing runs', async () => {
  write('0001_first.sql', 'CREATE TABLE item (id int)');
  await migrate(database, directory);
  write('0001_first.sql', 'CREATE TABLE item (id bigint)');
  write('0002_second.sql', 'INSERT INTO item VALUES (1)');
  await expectRefusal(
    /^migration 0001_first\.sql was changed after .* delete its data directory \(DATA_DIR.* a new file$/,
  );
  expect(await select('SELECT id FROM item')).toEqual([]);
});

it('migrations of a later release are left alone and listed', async () => {
  write('0001_first.sql', 'SELECT 1');
  write('0002_second.sql', 'SELECT 1');
  await migrate(database, directory);
  expect(await compareSchema(database, directory)).toEqual({ pending: [], later: [] });
  rmSync(join(directory, '0002_second.sql'));
  expect(await migrate(database, directory)).toEqual([]);
  expect(await compareSchema(database, directory)).toEqual({ pending: [], later: ['0002_second.sql'] });
});

it.each([
  ['a missing number', ['0001_a.sql', '0003_c.sql'], /0003_c\.sql is out of sequence/],
  ['a duplicate number', ['0001_a.sql', '0001_b.sql'], /0001_b\.sql is out of sequence/],
  ['an invalid name', ['1-a.sql'], /1-a\.sql must have a name such as/],
])('migrations with %s are refused', async (_case, files, message) => {
  for (const file of files) write(file, 'SELECT 1');
  await expectRefusal(message);
});

const SOON = { tableWaitMs: 100, tries: 3, pauseMs: 500 };

it('a migration that cannot lock a table gives up after its last try', async () => {
  write('0001_first.sql', 'CREATE TABLE item (id int)');
  await migrate(database, directory);
  write('0002_second.sql', 'ALTER TABLE item ADD name text');
  await database.transaction(async (run) => {
    await run('SELECT id FROM item');
    await expect(migrate(database, directory, SOON)).rejects.toThrow(/0002_second\.sql failed.*lock timeout/);
  });
  expect(await migrate(database, directory)).toEqual(['0002_second.sql']);
});

it('a migration that cannot lock a table gives way to the calls behind it, and runs later', async () => {
  write('0001_first.sql', 'CREATE TABLE item (id int)');
  await migrate(database, directory);
  write('0002_second.sql', 'INSERT INTO item VALUES (1); ALTER TABLE item ADD name text');
  const holder = openTestDatabase(test.url, 1);
  let migrating: Promise<string[]> | undefined;
  await holder.transaction(async (run) => {
    await run('SELECT id FROM item');
    migrating = migrate(database, directory, { ...SOON, tries: 100 });
    await untilLocked();
    // Waits behind the migration, which gives way.
    await database.query({ name: 'read', text: 'SELECT id FROM item' });
  });
  expect(await migrating).toEqual(['0002_second.sql']);
  expect(await select('SELECT id, name FROM item')).toEqual([{ id: 1, name: null }]);
  await holder.close();
});

/** Waits until a statement waits for a table. */
async function untilLocked(): Promise<void> {
  await vi.waitFor(
    async () =>
      expect(await select('SELECT FROM pg_locks WHERE NOT granted AND relation IS NOT NULL')).toHaveLength(1),
    { timeout: 10_000, interval: 5 },
  );
}

const BUILD = `-- migrate: concurrently
-- A comment; with a semicolon.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS item_id
  ON item (id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS item_name ON item (name);`;

it('indexes are built once, without blocking writers, while four replicas start together', async () => {
  write('0001_first.sql', 'CREATE TABLE item (id int, name text); INSERT INTO item VALUES (1)');
  await migrate(database, directory);
  write('0002_second.sql', BUILD);
  write('0003_third.sql', 'ALTER TABLE item ADD CONSTRAINT item_pkey PRIMARY KEY USING INDEX item_id');
  const writer = openTestDatabase(test.url, 1);
  const written = Promise.withResolvers<void>();
  const building = writer.transaction(async (run) => {
    await run('INSERT INTO item VALUES (2)');
    written.resolve();
    // A build waits for earlier transactions, and blocks no one while it waits.
    await untilBuilding();
    await database.query({ name: 'insert', text: 'INSERT INTO item VALUES (3)' });
  });
  await written.promise;
  const replicas = [1, 2, 3, 4].map(() => openTestDatabase(test.url, 2));
  const done = await Promise.all([...replicas.map((replica) => migrate(replica, directory)), building]);
  await Promise.all([writer, ...replicas].map((one) => one.close()));
  expect(done.flat().filter(Boolean).sort()).toEqual(['0002_second.sql', '0003_third.sql']);
  expect(
    await select(
      "SELECT indexrelid::regclass::text AS name, indisprimary, indisvalid FROM pg_index WHERE indrelid = 'item'::regclass ORDER BY 1",
    ),
  ).toEqual([
    { name: 'item_name', indisprimary: false, indisvalid: true },
    { name: 'item_pkey', indisprimary: true, indisvalid: true },
  ]);
});

it('an unfinished index from a failed run is rebuilt, and finished ones are kept', async () => {
  write('0001_first.sql', 'CREATE TABLE item (id int, name text); INSERT INTO item VALUES (1), (1)');
  const swapped = BUILD.split('\n').toReversed().slice(0, 1).concat(BUILD.split('\n').slice(2, 4));
  write('0002_second.sql', ['-- migrate: concurrently', ...swapped].join('\n'));
  await expect(migrate(database, directory)).rejects.toThrow(/0002_second\.sql failed/);
  const indexes =
    "SELECT indexrelid::regclass::text AS name, indexrelid, indisvalid FROM pg_index WHERE indrelid = 'item'::regclass ORDER BY 1";
  const before = (await select(indexes)) as { indexrelid: number }[];
  expect(before).toMatchObject([
    { name: 'item_id', indisvalid: false },
    { name: 'item_name', indisvalid: true },
  ]);
  await select('DELETE FROM item');
  expect(await migrate(database, directory)).toEqual(['0002_second.sql']);
  expect(await select(indexes)).toMatchObject([
    { name: 'item_id', indisvalid: true },
    { name: 'item_name', indisvalid: true, indexrelid: before[1]?.indexrelid },
  ]);
});

it('a concurrent migration is refused if it contains a statement that cannot be repeated', async () => {
  write('0001_first.sql', '-- migrate: concurrently\nCREATE INDEX CONCURRENTLY item_id ON item (id);');
  await expectRefusal(/0001_first\.sql may contain only .* not: CREATE INDEX CONCURRENTLY item_id/);
});

async function untilBuilding(): Promise<void> {
  await vi.waitFor(async () =>
    expect(
      await select(
        "SELECT 1 AS one FROM pg_stat_progress_create_index WHERE datname = current_database() AND phase LIKE 'waiting%'",
      ),
    ).toEqual([{ one: 1 }]),
  );
}

function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text);
}

async function select(text: string): Promise<unknown[]> {
  return (await database.query({ name: text, text })).rows;
}

async function expectRefusal(message: RegExp): Promise<void> {
  const error = await migrate(database, directory).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(MigrationError);
  expect((error as Error).message).toMatch(message);
}
