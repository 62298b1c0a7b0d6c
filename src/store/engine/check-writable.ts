import type { Database, Queries } from './database.ts';
import { type AccountNode, listAccountNodes } from './distribution.ts';

// Writes no row, but fails whenever a payment could not be written: on a standby, without the schema, or without the
// privilege.
const CHECK_WRITABLE = {
  name: 'check_writable',
  text: 'UPDATE payment SET status = status WHERE false',
};

// The engine sends this statement to the account's node. It runs the statement above on the coordinator alone.
const CHECK_NODE = {
  name: 'check_node_writable',
  text: 'UPDATE payment SET status = status WHERE account_id = $1 AND id = $1',
};

/**
 * Resolves if a payment could be written now; otherwise rejects as a claim would. On a distributed database it resolves
 * if a payment of any account could: a replica that serves the other accounts stays in service while a node is down.
 */
export async function checkWritable(database: Database): Promise<void> {
  if (!database.isDistributed) {
    await database.query(CHECK_WRITABLE);
    return;
  }
  const nodes = await listAccountNodes(database);
  await Promise.any(nodes.map((node) => checkNode(database, node))).catch(({ errors }: AggregateError) => {
    throw errors[0];
  });
}

/** Resolves if a node of a distributed database could write a payment now; otherwise rejects as a claim would. */
export async function checkNode(queries: Queries, { accountId }: AccountNode): Promise<void> {
  await queries.query(CHECK_NODE, [accountId]);
}
