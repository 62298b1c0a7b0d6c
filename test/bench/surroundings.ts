import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { resolveDataDir } from '#src/postgres/data-dir.ts';
import { startEmbeddedPostgres } from '#src/postgres/embedded-postgres.ts';
import { openDatabase } from '#src/store/engine/database.ts';
import { MIGRATIONS, migrate } from '#src/store/engine/migrate.ts';
import type { Latency } from './provider-latency.ts';
import { addAccount } from './service.ts';
import { startWorker } from './worker.ts';

/** Cleanup at the end of a benchmark, in reverse order. */
export type Ending = (() => unknown)[];

/** Runs a benchmark and cleans up after it, even if a signal interrupts it. @param run adds its cleanup to `ending`. */
export async function cleanUpAfter(run: (ending: Ending) => Promise<void>): Promise<void> {
  const ending: Ending = [];
  const end = async () => {
    for (const undo of ending.splice(0).reverse()) await undo();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => end().then(() => process.exit(1)));
  }
  try {
    await run(ending);
  } finally {
    await end();
  }
}

/**
 * Starts the environment of every benchmark: a database that waits for the disk as in production, with the account, and
 * the provider stub.
 *
 * @param ending collects the cleanup, which runs in reverse order.
 * @param latency the provider's latency; by default, the provider responds at once.
 */
export async function startSurroundings(name: string, ending: Ending, latency?: Latency) {
  const home = mkdtempSync(join(tmpdir(), `payments-${name}-`));
  ending.push(() => rmSync(home, { recursive: true, force: true }));
  // As root, PostgreSQL runs as another user, who needs access to the directory.
  chmodSync(home, 0o711);
  const log = pino({ level: 'error' }, pino.destination(2));
  const dataDir = resolveDataDir({ explicit: undefined, checkoutDir: home });
  ending.push(() => rmSync(dataDir, { recursive: true, force: true }));
  const postgres = await startEmbeddedPostgres({ dataDir, log });
  ending.push(() => postgres.stop());
  const databaseUrl = postgres.url;
  const database = openDatabase({ url: databaseUrl, maxConnections: 1, log });
  await migrate(database, MIGRATIONS);
  await database.close();
  await addAccount(databaseUrl);

  const provider = await startWorker(
    'provider.ts',
    latency ? [String(latency.medianMs), String(latency.p99Ms)] : [],
  );
  ending.push(provider.stop);
  const [postmaster] = readFileSync(join(dataDir, 'postgres/data/postmaster.pid'), 'utf8').split('\n');
  return { home, databaseUrl, provider, postmaster: Number(postmaster) };
}

/**
 * Returns the URL of the database, through a proxy if the database is to seem distant.
 *
 * @param delayMs how long the proxy delays every byte, in each direction.
 */
export async function delayed(
  databaseUrl: string,
  delayMs: number | undefined,
  ending: Ending,
): Promise<string> {
  if (delayMs === undefined) return databaseUrl;
  const url = new URL(databaseUrl);
  const proxy = await startWorker('delay-proxy.ts', [url.port, String(delayMs)]);
  ending.push(proxy.stop);
  url.port = String(proxy.port);
  return url.href;
}

/** Creates another database in the cluster. @returns its URL. */
export async function createDatabase(databaseUrl: string, name: string): Promise<string> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const url = new URL(databaseUrl);
  url.pathname = `/${name}`;
  return url.href;
}
