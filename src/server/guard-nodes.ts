import type { Logger } from 'pino';
import type { Config } from '#src/config.ts';
import { type Database, openDatabase } from '#src/store/engine/database.ts';
import { isDistributed } from '#src/store/engine/distribution.ts';
import { createNodeGate } from '#src/store/engine/node-gate.ts';
import { createNodeSource } from '#src/store/engine/node-source.ts';
import { connectionsOfWorker } from '#src/workers/storage.ts';

/** Longest time that a working node may take to answer. */
const ANSWER_MS = 1_000;
/** A wait for a table that reveals a lock, rather than a node that does not answer. */
const LOCKED_MS = 500;
/** A node that does not answer holds one connection. */
const MAX_QUESTIONS = 4;

/** A database, and the function that stops asking its nodes. */
export type GuardedDatabase = { readonly database: Database; close(): Promise<void> };

/**
 * Guards a distributed database against nodes that hang. Any other database is returned as it is.
 *
 * @param url the database, for a pool of its own that asks the nodes.
 */
export async function guardNodes(
  database: Database,
  url: string,
  config: Pick<Config, 'databaseMaxConnections' | 'workers' | 'allowUnsafeDatabase'>,
  log: Logger,
): Promise<GuardedDatabase> {
  if (!(await isDistributed(database))) return { database, close: async () => {} };
  const questions = openDatabase({
    url,
    maxConnections: MAX_QUESTIONS,
    statementTimeoutMs: ANSWER_MS,
    lockTimeoutMs: LOCKED_MS,
    log,
  });
  const distributed = { ...database, isDistributed: true };
  const nodes = createNodeSource(database, questions, config.allowUnsafeDatabase);
  const maxConnections = connectionsOfWorker(config.databaseMaxConnections, config.workers);
  const gate = createNodeGate(distributed, nodes, { maxConnections, log });
  return {
    database: gate.database,
    async close() {
      await gate.stop();
      await questions.close();
    },
  };
}
