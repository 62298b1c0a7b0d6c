import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '#src/store/engine/database.ts';
import { distribute } from '#src/store/engine/distribution.ts';
import { MIGRATIONS, migrate } from '#src/store/engine/migrate.ts';
import { databaseUrl, runIn } from './run-in.ts';

/*
 * Test databases on Citus. CITUS_URL names a database of the coordinator whose workers accept connections of the same
 * user. A database is created on every node; tests clone one that is already distributed.
 */

const TEMPLATE = 'template_citus_payments';
/** Few shards, since each is a table on a worker. */
const SHARDS = 4;

/** Creates a distributed template. @param fill adds rows before it is distributed. */
export async function createCitusTemplate(
  coordinatorUrl: string,
  template = TEMPLATE,
  fill?: (url: string) => Promise<void>,
): Promise<void> {
  await dropCitus(coordinatorUrl, template);
  const url = await createCitus(coordinatorUrl, template);
  await fill?.(url);
  const database = openDatabase({
    url,
    maxConnections: 1,
    log: { warn: () => {} },
  });
  try {
    await migrate(database, MIGRATIONS);
    await distribute(database);
  } finally {
    await database.close();
  }
}

/** Creates an empty database with the workers added. @returns its URL on the coordinator. */
export async function createCitus(coordinatorUrl: string, name: string): Promise<string> {
  const nodes = await nodesOf(coordinatorUrl);
  for (const node of nodes) {
    await runIn(node, `CREATE DATABASE ${name}`);
    await runIn(databaseUrl(node, name), 'CREATE EXTENSION citus');
  }
  const [coordinator = '', ...workers] = nodes.map((node) => new URL(node));
  const url = databaseUrl(coordinatorUrl, name);
  const { hostname, port } = coordinator as URL;
  await runIn(url, `SELECT citus_set_coordinator_host('${hostname}', ${port})`);
  for (const worker of workers)
    await runIn(url, `SELECT citus_add_node('${worker.hostname}', ${worker.port})`);
  await runIn(url, `ALTER DATABASE ${name} SET citus.shard_count = ${SHARDS}`);
  return url;
}

/** Clones the template on every node. The rows of the engine's catalog refer to tables by ids that a copy keeps. */
export async function cloneCitus(coordinatorUrl: string, name: string, template = TEMPLATE): Promise<string> {
  const clone = `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`;
  for (const node of await nodesOf(coordinatorUrl)) await runAlone(node, template, clone);
  return databaseUrl(coordinatorUrl, name);
}

/** Drops a database on every node. */
export async function dropCitus(coordinatorUrl: string, name: string): Promise<void> {
  const drop = `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`;
  for (const node of await nodesOf(coordinatorUrl)) await runAlone(node, name, drop);
}

/**
 * Runs a statement that needs a database without connections. The engine has a process that connects to every database
 * in use, so that process is terminated first.
 */
async function runAlone(node: string, database: string, sql: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    await runIn(node, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`);
    try {
      await runIn(node, sql);
      return;
    } catch (error) {
      if (tries === 20) throw error;
      await sleep(200);
    }
  }
}

/** Returns the URLs of CITUS_URL's database on the coordinator and the workers. */
async function nodesOf(coordinatorUrl: string): Promise<string[]> {
  const rows = await runIn(
    coordinatorUrl,
    "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid",
  );
  return rows.map(({ nodename, nodeport }) => {
    const url = new URL(coordinatorUrl);
    url.hostname = String(nodename);
    url.port = String(nodeport);
    return url.href;
  });
}
