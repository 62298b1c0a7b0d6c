import pg from 'pg';
import { checkNode } from './check-writable.ts';
import type { Queries } from './database.ts';
import { isLockTimeout, isNodeUnreachable, isTimeout, isUnavailable } from './database-error.ts';
import { type AccountNode, findNodeOfAccount, listAccountNodes } from './distribution.ts';
import { findUnsafeSettingsOfNode } from './durability.ts';
import type { NodeSource } from './node-gate.ts';

/** Time for which the node of an account is remembered: its shard may move, or its node be replaced. */
const REMEMBER_MS = 60_000;
const MAX_REMEMBERED = 10_000;

/**
 * Asks the engine about its nodes.
 *
 * @param questions a database of its own, whose statements time out after the longest time that a node may take to
 *   answer, and earlier if a table is locked.
 * @param allowUnsafe accepts nodes that acknowledge commits before they are on disk.
 */
export function createNodeSource(database: Queries, questions: Queries, allowUnsafe: boolean): NodeSource {
  let listed: readonly AccountNode[] = [];
  const nodes = new Map<string, Promise<string | undefined>>();
  let forgetMs = 0;

  return {
    async list() {
      listed = await listAccountNodes(questions);
      return listed.map(({ node }) => node);
    },
    nodeOf(accountId) {
      const nowMs = performance.now();
      if (nowMs > forgetMs || nodes.size >= MAX_REMEMBERED) {
        nodes.clear();
        forgetMs = nowMs + REMEMBER_MS;
      }
      const known = nodes.get(accountId);
      if (known) return known;
      const found = findNodeOfAccount(database, accountId);
      found.catch(() => nodes.delete(accountId));
      nodes.set(accountId, found);
      return found;
    },
    async ask(name) {
      const node = listed.find((one) => one.node === name);
      if (!node) return undefined;
      try {
        await checkNode(questions, node);
        const unsafe = allowUnsafe ? [] : await findUnsafeSettingsOfNode(questions, node);
        return unsafe.length > 0 ? `may lose commits: ${unsafe.join(', ')} off` : undefined;
      } catch (error) {
        return illnessOf(error);
      }
    },
  };
}

/**
 * Returns the fault that an error reveals.
 *
 * @throws the error itself if it says nothing about the node: only the coordinator's answers do. A lost connection, or a
 *   wait that this process gave up, may be the fault of the coordinator or of this machine.
 */
function illnessOf(error: unknown): string {
  if (!(error instanceof pg.DatabaseError) || !isUnavailable(error)) throw error;
  // A migration is waiting for the table, and everybody waits behind it.
  if (isLockTimeout(error)) throw error;
  if (isTimeout(error)) return 'does not respond';
  return isNodeUnreachable(error) ? 'cannot be reached' : `refuses writes: ${error.message}`;
}
