import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database, Run } from './database.ts';
import { distribute, isDistributed } from './distribution.ts';
import {
  type LockLimits,
  MigrationError,
  whileSchemaLocked,
  whileSchemaLockedInSession,
} from './schema-lock.ts';

type Migration = {
  readonly version: number;
  readonly name: string;
  readonly text: string;
  readonly sha256: string;
};
type AppliedRow = Omit<Migration, 'text'>;

/** The directory of the service's migrations. */
export const MIGRATIONS = join(import.meta.dirname, '../migrations');

const FILE = /^(\d{4})_([a-z0-9_]+)\.sql$/;
/** The first line of a file whose statements run one by one, outside transactions. */
const CONCURRENTLY = '-- migrate: concurrently';
/** Statements allowed in such a file. Each is repeatable, so that the next run completes an interrupted run. */
const CONCURRENT_STATEMENT =
  /^CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS (\w+) ON |^DROP INDEX CONCURRENTLY IF EXISTS (\w+)$/;

const CREATE_TABLE = `
  CREATE TABLE IF NOT EXISTS schema_migration (
    version integer PRIMARY KEY,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  )`;

/**
 * Brings the schema up to date: runs the pending `NNNN_name.sql` files of a directory in order, each in a transaction
 * together with its row in schema_migration. A file whose first line is `-- migrate: concurrently` may only build and
 * drop indexes. Its statements run one by one, outside transactions, while the table is read and written; if
 * interrupted, the next run repeats them. On a distributed database, new tables and functions are then distributed.
 * Several replicas may migrate at the same time. A migration that finds a table locked gives way and tries again.
 * Migrations of a later release are left alone: they remove nothing that the previous release uses, so it can keep
 * running and can be rolled back to.
 *
 * @returns the names of the files that were run.
 * @throws MigrationError if a file has changed since it was run, its directory is malformed, or a file fails.
 */
export async function migrate(database: Database, directory: string, limits?: LockLimits): Promise<string[]> {
  const migrations = readMigrations(directory);
  await whileSchemaLocked(database, async (run) => {
    await run(CREATE_TABLE);
    refuseMismatch(migrations, await readApplied(run));
  });
  const done: string[] = [];
  for (const migration of migrations) {
    const apply = isConcurrent(migration)
      ? whileSchemaLockedInSession(database, (run) => applyOnce(run, migration, runConcurrently))
      : whileSchemaLocked(database, (run) => applyOnce(run, migration, (run, { text }) => run(text)), limits);
    if (await apply) done.push(fileName(migration));
  }
  if (await isDistributed(database)) await distribute(database);
  return done;
}

/** The migrations that only this release or only the database has, by file name. */
export type SchemaDifference = {
  /** Migrations that `migrate` would run. */
  readonly pending: readonly string[];
  /** Migrations that a later release has run. */
  readonly later: readonly string[];
};

/**
 * Compares a database with the files of a directory, without writing. The schema must exist.
 *
 * @throws MigrationError if a file has changed since it was run.
 */
export async function compareSchema(database: Database, directory: string): Promise<SchemaDifference> {
  const migrations = readMigrations(directory);
  const applied = await database.transaction(readApplied);
  refuseMismatch(migrations, applied);
  const isApplied = ({ version }: Migration) => applied.some((row) => row.version === version);
  return {
    pending: migrations.filter((migration) => !isApplied(migration)).map(fileName),
    later: applied.filter(({ version }) => version > migrations.length).map(fileName),
  };
}

function isConcurrent({ text }: Migration): boolean {
  return text.split('\n', 1)[0] === CONCURRENTLY;
}

/** Runs the statements one by one. Rebuilds the unfinished index of an interrupted run. */
async function runConcurrently(run: Run, { text }: Migration): Promise<void> {
  for (const statement of statementsOf(text)) {
    const built = CONCURRENT_STATEMENT.exec(statement)?.[1];
    if (built !== undefined) await dropUnfinished(run, built);
    await run(statement);
  }
}

const UNFINISHED = `
  SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT (indisvalid AND indisready)`;

async function dropUnfinished(run: Run, index: string): Promise<void> {
  const { rowCount } = await run(UNFINISHED, [index]);
  if (rowCount) await run(`DROP INDEX CONCURRENTLY IF EXISTS ${index}`);
}

/** Returns the statements of a concurrent file, which may not contain quoted semicolons. */
function statementsOf(text: string): string[] {
  return text
    .replaceAll(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.trim().replaceAll(/\s+/g, ' '))
    .filter((statement) => statement !== '');
}

async function applyOnce(
  run: Run,
  migration: Migration,
  apply: (run: Run, migration: Migration) => Promise<unknown>,
): Promise<boolean> {
  const applied = await readApplied(run);
  // Another replica, perhaps of another release, may have run the migration in the meantime.
  refuseMismatch([migration], applied);
  if (applied.some((row) => row.version === migration.version)) return false;
  try {
    await apply(run, migration);
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
    if (!match) throw new MigrationError(`migration ${file} must have a name such as 0001_name.sql`);
    const version = Number(match[1]);
    if (version !== index + 1) {
      throw new MigrationError(`migration ${file} is out of sequence: expected number ${index + 1}`);
    }
    const text = readFileSync(join(directory, file), 'utf8');
    const sha256 = createHash('sha256').update(text).digest('hex');
    const migration = { version, name: match[2] ?? '', text, sha256 };
    const foreign =
      isConcurrent(migration) && statementsOf(text).find((one) => !CONCURRENT_STATEMENT.test(one));
    if (foreign) {
      throw new MigrationError(
        `migration ${file} may contain only CREATE INDEX CONCURRENTLY IF NOT EXISTS and DROP INDEX CONCURRENTLY IF EXISTS, not: ${foreign}`,
      );
    }
    return migration;
  });
}

function refuseMismatch(migrations: readonly Migration[], applied: readonly AppliedRow[]): void {
  for (const row of applied) {
    const migration = migrations.find((candidate) => candidate.version === row.version);
    // A row without a migration of ours comes from a later release.
    if (migration && migration.sha256 !== row.sha256) {
      throw new MigrationError(
        `migration ${fileName(migration)} was changed after the database ran it; nothing was done. Use the release that made the database. If the database holds only sandbox data, you can instead stop the service and delete its data directory (DATA_DIR, by default "data" in the checkout): the next start makes a new one. If you changed the file, restore it, and put the change into a new file`,
      );
    }
  }
}

function fileName(migration: { version: number; name: string }): string {
  return `${String(migration.version).padStart(4, '0')}_${migration.name}.sql`;
}
