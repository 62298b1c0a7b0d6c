import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { resolveDataDir } from '#src/postgres/data-dir.ts';
import { startEmbeddedPostgres } from '#src/postgres/embedded-postgres.ts';
import { type Database, type DatabaseOptions, openDatabase } from '#src/store/engine/database.ts';
import { MIGRATIONS, migrate } from '#src/store/engine/migrate.ts';
import { cloneCitus, createCitusTemplate, dropCitus } from './citus.ts';
import { COMPILED, compileAhead } from './compiled.ts';
import { databaseUrl, runIn } from './run-in.ts';

const CLUSTER_URL = 'TEST_CLUSTER_URL';
const TEMPLATE = 'template_payments';
const CHECKOUT = join(import.meta.dirname, '../..');
/** The name of a run's directory, with the run's process ID. */
const HOME = /^payments-test-run-(\d+)-/;
/** Linux's file system in memory. */
const IN_MEMORY = '/dev/shm';
/** A whole run takes less than 1 GB. */
const ENOUGH_BYTES = 4e9;

/** A test's own database. */
export type TestDatabase = {
  readonly url: string;
  /** Drops the database, even with open connections. */
  drop(): Promise<void>;
};

/**
 * Creates a database with the payments schema, cloned from a migrated template in this test run's PostgreSQL, or in
 * Citus if CITUS_URL names a coordinator.
 *
 * @param options.empty if true, the database has no schema.
 */
export async function createTestDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const clusterUrl = process.env[CLUSTER_URL];
  if (!clusterUrl)
    throw new Error(`${CLUSTER_URL} is not set: vitest.config.ts names this file as globalSetup`);
  const name = `test_${randomBytes(8).toString('hex')}`;
  const citusUrl = process.env.CITUS_URL;
  if (citusUrl && !options.empty) {
    return { url: await cloneCitus(citusUrl, name), drop: () => dropCitus(citusUrl, name) };
  }
  const template = options.empty ? 'template0' : TEMPLATE;
  // Copies files: the default, copying through the log, would write every page twice.
  await runIn(clusterUrl, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`);
  return {
    url: databaseUrl(clusterUrl, name),
    async drop() {
      await runIn(clusterUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

/** Opens a database like the service, but waits longer for a connection, which may take seconds on a busy machine. */
export function openTestDatabase(
  url: string,
  maxConnections: number,
  log: DatabaseOptions['log'] = pino({ level: 'silent' }),
): Database {
  const database = openDatabase({ url, maxConnections, connectTimeoutMs: 30_000, log });
  return process.env.CITUS_URL ? { ...database, isDistributed: true } : database;
}

/**
 * Vitest's global setup: one PostgreSQL for the whole run, and the service compiled for the processes that tests start.
 * The workers get both through their environment.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const where = hasMemoryToSpare() ? IN_MEMORY : tmpdir();
  removeLeftovers(where);
  const home = mkdtempSync(join(where, `payments-test-run-${process.pid}-`));
  // As root, PostgreSQL runs as another user, who needs access to the directory.
  chmodSync(home, 0o711);
  const dataDir = resolveDataDir({ explicit: undefined, checkoutDir: home });
  const postgres = await startEmbeddedPostgres({
    dataDir,
    log: pino({ level: 'error' }),
    unsafeForTests: true,
  });
  const teardown = async () => {
    await postgres.stop();
    for (const directory of [dataDir, home]) rmSync(directory, { recursive: true, force: true });
  };
  try {
    await createTemplate(postgres.url);
    if (process.env.CITUS_URL) await createCitusTemplate(process.env.CITUS_URL);
  } catch (error) {
    await teardown();
    throw error;
  }
  process.env[CLUSTER_URL] = postgres.url;
  const compiled = join(home, 'compiled');
  await compileAhead(CHECKOUT, { [COMPILED]: compiled });
  process.env[COMPILED] = compiled;
  return teardown;
}

/**
 * Reports whether the databases can be in memory, which saves a third of a run's time: each of the hundreds of databases
 * has 400 files, and ext4 takes long to create files soon after it has deleted others.
 */
function hasMemoryToSpare(): boolean {
  if (!existsSync(IN_MEMORY)) return false;
  const { bavail, bsize } = statfsSync(IN_MEMORY);
  return Math.min(bavail * bsize, freemem()) >= ENOUGH_BYTES;
}

/** Removes what this user's runs left behind when they were killed; PostgreSQL ends without its files. */
function removeLeftovers(where: string): void {
  for (const name of readdirSync(where)) {
    const pid = Number(HOME.exec(name)?.[1] ?? 0);
    if (pid === 0 || isAlive(pid)) continue;
    const home = join(where, name);
    const isOurs = statSync(home, { throwIfNoEntry: false })?.uid === process.getuid?.();
    if (isOurs) rmSync(home, { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

async function createTemplate(clusterUrl: string): Promise<void> {
  await runIn(clusterUrl, `CREATE DATABASE ${TEMPLATE} TEMPLATE template0`);
  const database = openTestDatabase(databaseUrl(clusterUrl, TEMPLATE), 1, pino({ level: 'error' }));
  try {
    await migrate(database, MIGRATIONS);
  } finally {
    await database.close();
  }
}
