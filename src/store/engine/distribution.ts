import type { Database, Queries, Run } from './database.ts';
import { NIL_UUID, onlyRow } from './rows.ts';
import { whileSchemaLocked } from './schema-lock.ts';

/*
 * A distributed engine (Citus) stores each account's rows on one node. This file is the only one that knows its catalog
 * and its functions.
 */

/**
 * Place of a table's rows: on the node of their account, as a copy on every node, or on the coordinator alone. Only a
 * table to which the accounts' tables have foreign keys is copied, because a write to it needs every node. Keys, the
 * audit log and all that serves every account are on the coordinator, without which nothing works anyway: a key can be
 * revoked while a node is down.
 */
export type Placement = 'by account' | 'copied' | 'coordinator';

/** THE list of tables. A migration that adds a table must add it here. */
export const PLACEMENTS: Readonly<Record<string, Placement>> = {
  account: 'copied',
  customer: 'by account',
  checkout_session: 'by account',
  vaulted_token: 'by account',
  single_use: 'by account',
  one_time_token: 'by account',
  payment: 'by account',
  transaction: 'by account',
  movement_correction: 'by account',
  dispute: 'by account',
  payment_total: 'by account',
  recent_payment_total: 'by account',
  settlement_file: 'by account',
  settlement_line: 'by account',
  settlement_match: 'by account',
  settlement_difference: 'by account',
  settlement_progress: 'by account',
  settlement_coverage: 'by account',
  notification: 'by account',
  webhook: 'by account',
  event: 'by account',
  delivery: 'by account',
  replayed_call: 'by account',
  public_key: 'coordinator',
  secret_key: 'coordinator',
  response_schema: 'coordinator',
  audit_log: 'coordinator',
  installation_key: 'coordinator',
  operator_session: 'coordinator',
  catalogue_version: 'coordinator',
  catalogue_head: 'coordinator',
  catalogue_replica: 'coordinator',
  connection_secret: 'coordinator',
  connection_account: 'coordinator',
  retired_connection: 'coordinator',
  schema_migration: 'coordinator',
};

/** Thrown if a database cannot be distributed. The message says what to do. */
export class DistributionError extends Error {
  override readonly name = 'DistributionError';
}

// The engine's catalog exists only with its extension, so the second statement runs only if the first finds it.
const HAS_ENGINE = {
  name: 'has_engine',
  text: "SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus') AS yes",
};
const IS_DISTRIBUTED = {
  name: 'is_distributed',
  text: `
    SELECT EXISTS (
      SELECT 1 FROM pg_dist_partition WHERE logicalrelid = to_regclass('payment') AND partmethod = 'h'
    ) AS yes`,
};

type Answer = { readonly yes: boolean };

/** Returns true if the database's engine stores payments on several nodes, by their account. */
export async function isDistributed(queries: Queries): Promise<boolean> {
  if (!onlyRow(await queries.query<Answer>(HAS_ENGINE)).yes) return false;
  return onlyRow(await queries.query<Answer>(IS_DISTRIBUTED)).yes;
}

/** A node that stores accounts, and an unused account id whose account would be stored there. */
export type AccountNode = { readonly node: string; readonly accountId: string };

const NODE_NAME = "n.nodename || ':' || n.nodeport";
// Hashes ids until every node has one.
const NODES = {
  name: 'list_account_nodes',
  text: `
    SELECT DISTINCT ON (n.nodeid) ${NODE_NAME} AS node, probe.id AS "accountId"
    FROM (SELECT md5(i::text)::uuid AS id FROM generate_series(1, 200) AS i) probe
      JOIN pg_dist_placement p ON p.shardid = get_shard_id_for_distribution_column('payment', probe.id)
      JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
    ORDER BY n.nodeid, probe.id`,
};

/** Lists the nodes that store accounts. The database must be distributed. */
export async function listAccountNodes(queries: Queries): Promise<AccountNode[]> {
  return (await queries.query<AccountNode>(NODES)).rows;
}

const NODE_OF = {
  name: 'find_node_of_account',
  text: `
    SELECT ${NODE_NAME} AS node FROM pg_dist_placement p
      JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
    WHERE p.shardid = get_shard_id_for_distribution_column('payment', $1::uuid)`,
};

/** Finds the node that stores an account. The database must be distributed. @param accountId a UUID. */
export async function findNodeOfAccount(queries: Queries, accountId: string): Promise<string | undefined> {
  return (await queries.query<{ node: string }>(NODE_OF, [accountId])).rows[0]?.node;
}

const ACCOUNTS = { name: 'list_account_ids', text: 'SELECT id FROM account' };
const BY_NODE = {
  name: 'group_accounts_by_node',
  text: `
    SELECT array_agg(a.id) AS "accountIds"
    FROM unnest($1::uuid[]) AS a(id)
      JOIN pg_dist_placement p ON p.shardid = get_shard_id_for_distribution_column('payment', a.id)
    GROUP BY p.groupid`,
};

/** Lists all accounts, and the nil account, grouped by the node that stores them. The database must be distributed. */
export async function listAccountsByNode(
  database: Database,
): Promise<readonly { readonly accountIds: readonly string[] }[]> {
  const { rows } = await database.query<{ id: string }>(ACCOUNTS);
  const ids = [NIL_UUID, ...rows.map(({ id }) => id)];
  return (await database.query<{ accountIds: string[] }>(BY_NODE, [ids])).rows;
}

/** The tables that are yet to be distributed, and the functions that are yet to run on an account's node. */
export type DistributionPlan = {
  readonly copied: readonly string[];
  readonly byAccount: readonly string[];
  readonly functions: readonly string[];
};

const FUNCTIONS = `
  SELECT p.oid::regprocedure::text AS signature
  FROM pg_proc p LEFT JOIN pg_dist_object d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
  WHERE p.pronamespace = current_schema()::regnamespace AND p.proargnames[1] = 'the_account'
    AND p.proargtypes[0] = 'uuid'::regtype AND d.distribution_argument_index IS NULL
  ORDER BY 1`;
const DISTRIBUTED_TABLES = `SELECT logicalrelid::text AS name FROM pg_dist_partition WHERE partmethod = 'h' OR repmodel = 't'`;
const WORKERS = `SELECT count(*)::integer AS n FROM pg_dist_node WHERE noderole = 'primary' AND shouldhaveshards`;

/**
 * Finds the tables and functions that are left to distribute.
 *
 * @throws DistributionError if the database has no distributed engine, or no node that stores accounts.
 */
export async function planDistribution(run: Run): Promise<DistributionPlan> {
  if (!onlyRow(await run<Answer>(HAS_ENGINE.text)).yes) {
    throw new DistributionError(
      'Citus is not installed in the database: run CREATE EXTENSION citus on every node first',
    );
  }
  if (onlyRow(await run<{ n: number }>(WORKERS)).n === 0) {
    throw new DistributionError('no node stores shards: add the workers with citus_add_node first');
  }
  const done = new Set((await run<{ name: string }>(DISTRIBUTED_TABLES)).rows.map(({ name }) => name));
  const left = (placement: Placement) =>
    Object.keys(PLACEMENTS).filter((table) => PLACEMENTS[table] === placement && !done.has(table));
  const functions = (await run<{ signature: string }>(FUNCTIONS)).rows.map(({ signature }) => signature);
  return { copied: left('copied'), byAccount: left('by account'), functions };
}

// A foreign key between two tables by account cannot exist while only one of them is distributed.
const FOREIGN_KEYS = `
  SELECT conrelid::regclass::text AS "table", quote_ident(conname) AS name, pg_get_constraintdef(oid) AS definition
  FROM pg_constraint
  WHERE contype = 'f' AND conrelid = ANY ($1::text[]::regclass[]) AND confrelid = ANY ($1::text[]::regclass[])
  ORDER BY 1, 2`;

/**
 * Distributes a database, or the rest of it, in one transaction, which distributes all of it or changes nothing. The
 * tables are locked meanwhile. May be repeated, also by several replicas at the same time.
 *
 * @returns what was distributed.
 */
export async function distribute(database: Database): Promise<DistributionPlan> {
  const plan = await whileSchemaLocked(database, async (run) => {
    const plan = await planDistribution(run);
    await carryOut(run, plan);
    return plan;
  });
  await whileSchemaLocked(database, truncateLeftovers);
  return plan;
}

// The engine copies a table's rows to the nodes, and leaves the originals on the coordinator, where nothing reads them.
const LEFTOVERS = `
  SELECT logicalrelid::text AS name FROM pg_dist_partition
  WHERE partmethod = 'h' AND EXISTS (
    SELECT 1 FROM pg_class WHERE oid = logicalrelid AND pg_relation_size(oid) > 0
  )`;

async function truncateLeftovers(run: Run): Promise<void> {
  for (const { name } of (await run<{ name: string }>(LEFTOVERS)).rows) {
    await run('SELECT truncate_local_data_after_distributing_table($1)', [name]);
  }
}

async function carryOut(run: Run, { copied, byAccount, functions }: DistributionPlan): Promise<void> {
  // Tables with foreign keys to copies can only be changed one shard after another.
  await run("SET LOCAL citus.multi_shard_modify_mode = 'sequential'");
  for (const table of copied) await run('SELECT create_reference_table($1)', [table]);
  const { rows: keys } = await run<{ table: string; name: string; definition: string }>(FOREIGN_KEYS, [
    byAccount,
  ]);
  for (const { table, name } of keys) await run(`ALTER TABLE ${table} DROP CONSTRAINT ${name}`);
  for (const table of byAccount) {
    const beside = table === 'customer' ? 'default' : 'customer';
    await run("SELECT create_distributed_table($1, 'account_id', colocate_with => $2)", [table, beside]);
  }
  for (const { table, name, definition } of keys) {
    await run(`ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`);
  }
  for (const signature of functions) {
    // The engine needs the parameters' values to find the account's node, so it cannot use a plan without them.
    await run(`ALTER FUNCTION ${signature} RESET plan_cache_mode`);
    await run("SELECT create_distributed_function($1, 'the_account', colocate_with => 'payment')", [
      signature,
    ]);
  }
}
