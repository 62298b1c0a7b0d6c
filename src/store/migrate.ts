import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database, Run } from './database.ts';

type Migration = {
  readonly version: number;
  readonly name: string;
  readonly text: string;
  readonly sha256: string;
};
type AppliedRow = { version: number; name: string; sha256: string };

/** The database and the migrations do not belong together, or the directory is not as it should be. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
}

const FILE = /^(\d{4})_([a-z0-9_]+)\.sql$/;
/** Any fixed number: what replicas that start together wait for each other on. */
const LOCK_KEY = '7021990411503221';
/** How long another replica's migration is waited for. */
const LOCK_WAIT_MS = 60_000;
/** How long a migration waits for a table: while it waits, everyone else who wants the table waits behind it. */
const TABLE_WAIT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 600_000;

const CREATE_TABLE = `
  CREATE TABLE IF NOT EXISTS schema_migration (
    version integer PRIMARY KEY,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  )`;

/**
 * Brings the schema up to date: runs the `NNNN_name.sql` files of a directory that have not been run yet, in order, each
 * in a transaction with its row in schema_migration. Replicas may do it at the same time.
 *
 * @returns the names of the files that were run.
 * @throws MigrationError when a file that was run is changed or gone, or when a number is missing.
 */
export async function migrate(database: Database, directory: string): Promise<string[]> {
  const migrations = readMigrations(directory);
  await locked(database, async (run) => {
    await run(CREATE_TABLE);
    refuseMismatch(migrations, await readApplied(run));
  });
  const done: string[] = [];
  for (const migration of migrations) {
    if (await locked(database, (run) => applyOnce(run, migration))) done.push(fileName(migration));
  }
  return done;
}

/** A transaction that no other replica's runs beside. The lock goes with it, so that nothing can leave it behind. */
function locked<T>(database: Database, work: (run: Run) => Promise<T>): Promise<T> {
  return database.transaction(async (run) => {
    await run(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`);
    await run(`SELECT pg_advisory_xact_lock(${LOCK_KEY})`);
    await run(`SET LOCAL lock_timeout = ${TABLE_WAIT_MS}`);
    return work(run);
  }, STATEMENT_TIMEOUT_MS);
}

async function applyOnce(run: Run, migration: Migration): Promise<boolean> {
  const applied = await readApplied(run);
  // Another replica, perhaps of another release, may have run it since we looked.
  refuseMismatch(
    [migration],
    applied.filter((row) => row.version === migration.version),
  );
  if (applied.some((row) => row.version === migration.version)) return false;
  try {
    await run(migration.text);
  } catch (cause) {
    throw new MigrationError(`migration ${fileName(migration)} failed: ${(cause as Error).message}`, {
      cause,
    });
  }
  const { version, name, sha256 } = migration;
  await run('INSERT INTO schema_migration (version, name, sha256) VALUES ($1, $2, $3)', [
    version,
    name,
    sha256,
  ]);
  return true;
}

async function readApplied(run: Run): Promise<AppliedRow[]> {
  const { rows } = await run<AppliedRow>(
    'SELECT version, name, sha256 FROM schema_migration ORDER BY version',
  );
  return rows;
}

function readMigrations(directory: string): Migration[] {
  const names = readdirSync(directory)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  return names.map((file, index) => {
    const match = FILE.exec(file);
    if (!match) throw new MigrationError(`migration ${file} is not named like 0001_name.sql`);
    const version = Number(match[1]);
    if (version !== index + 1) {
      throw new MigrationError(
        `migration ${file} does not follow the one before: expected number ${index + 1}`,
      );
    }
    const text = readFileSync(join(directory, file), 'utf8');
    const sha256 = createHash('sha256').update(text).digest('hex');
    return { version, name: match[2] ?? '', text, sha256 };
  });
}

function refuseMismatch(migrations: readonly Migration[], applied: readonly AppliedRow[]): void {
  for (const row of applied) {
    const migration = migrations.find((candidate) => candidate.version === row.version);
    if (!migration) {
      throw new MigrationError(
        `the database has migration ${fileName(row)}, which this release does not: the database is newer than the service`,
      );
    }
    if (migration.sha256 !== row.sha256) {
      throw new MigrationError(
        `migration ${fileName(migration)} was changed after the database had run it: restore it, and put the change into a new file`,
      );
    }
  }
}

function fileName(migration: { version: number; name: string }): string {
  return `${String(migration.version).padStart(4, '0')}_${migration.name}.sql`;
}
