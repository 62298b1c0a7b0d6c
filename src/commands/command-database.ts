import { CHECKOUT_DIR, type Config } from '#src/config.ts';
import { createLog } from '#src/observe/log-writer.ts';
import { resolveDataDir } from '#src/postgres/data-dir.ts';
import { runningEmbeddedPostgres, startEmbeddedPostgres } from '#src/postgres/embedded-postgres.ts';
import { type Database, openDatabase, PATIENT_CONNECT_MS } from '#src/store/engine/database.ts';
import { MIGRATIONS, migrate } from '#src/store/engine/migrate.ts';
import { assertDirect } from '#src/store/engine/pooler.ts';
import type { CommandIo } from './command-line.ts';

/** The database that a command uses. */
export type CommandStorage = {
  readonly database: Database;
  readonly url: string;
  /** Directory of the embedded database; undefined with a DATABASE_URL. */
  readonly dataDir: string | undefined;
};

type DatabaseConfig = Pick<Config, 'databaseUrl' | 'databaseDirectUrl' | 'dataDir'>;

/**
 * Finds the database: DATABASE_DIRECT_URL or, if it is not set, DATABASE_URL or, if neither is, the embedded database.
 *
 * @returns the database's `url`, missing if the embedded database is not running, and the embedded database's
 * `dataDir`.
 */
export function findDatabase({ databaseDirectUrl, databaseUrl, dataDir: explicit }: DatabaseConfig) {
  const dataDir = databaseUrl ? undefined : resolveDataDir({ explicit, checkoutDir: CHECKOUT_DIR });
  const url = databaseDirectUrl ?? databaseUrl ?? (dataDir && runningEmbeddedPostgres(dataDir));
  return { url, dataDir };
}

/**
 * Migrates the service's database, then runs a command's work on it. Starts the embedded database if the service is not
 * running; its log goes to the command's standard error.
 *
 * @param migrates false leaves the schema as it is, for commands that change nothing.
 */
export async function withDatabase<T>(
  config: DatabaseConfig,
  { stderr }: Pick<CommandIo, 'stderr'>,
  work: (storage: CommandStorage) => Promise<T>,
  migrates = true,
): Promise<T> {
  const log = createLog({ level: 'error' }, stderr);
  const { url, dataDir } = findDatabase(config);
  const started = url || !dataDir ? undefined : await startEmbeddedPostgres({ dataDir, log });
  const own = url ?? started?.url ?? '';
  const database = openDatabase({
    url: own,
    maxConnections: 1,
    connectTimeoutMs: PATIENT_CONNECT_MS,
    log,
  });
  try {
    await assertDirect(database);
    if (migrates) await migrate(database, MIGRATIONS);
    return await work({ database, url: own, dataDir });
  } finally {
    await database.close();
    await started?.stop();
  }
}
