import { pino } from 'pino';
import { CHECKOUT_DIR, type Config } from '#src/config.ts';
import { resolveDataDir } from '#src/postgres/data-dir.ts';
import { runningEmbeddedPostgres, startEmbeddedPostgres } from '#src/postgres/embedded-postgres.ts';
import { type Database, openDatabase } from '#src/store/database.ts';
import { MIGRATIONS, migrate } from '#src/store/migrate.ts';
import { assertDirect } from '#src/store/pooler.ts';

/** Storage that a command uses. */
export type CommandStorage = {
  readonly database: Database;
  /** Set for the embedded database; undefined with a DATABASE_URL. */
  readonly dataDir: string | undefined;
};

/**
 * Runs a command's work on the service's database, after migrating it: the one that DATABASE_DIRECT_URL or DATABASE_URL
 * names, or the embedded one, which is started if the service does not run.
 */
export async function withDatabase<T>(
  config: Pick<Config, 'databaseUrl' | 'databaseDirectUrl' | 'dataDir'>,
  work: (storage: CommandStorage) => Promise<T>,
): Promise<T> {
  const { databaseDirectUrl, databaseUrl, dataDir: explicit } = config;
  const log = pino({ level: 'error' }, pino.destination(2));
  const dataDir = databaseUrl ? undefined : resolveDataDir({ explicit, checkoutDir: CHECKOUT_DIR });
  const url = databaseDirectUrl ?? databaseUrl ?? (dataDir && runningEmbeddedPostgres(dataDir));
  const started = url || !dataDir ? undefined : await startEmbeddedPostgres({ dataDir, log });
  const database = openDatabase({ url: url ?? started?.url ?? '', maxConnections: 1, log });
  try {
    await assertDirect(database);
    await migrate(database, MIGRATIONS);
    return await work({ database, dataDir });
  } finally {
    await database.close();
    await started?.stop();
  }
}
