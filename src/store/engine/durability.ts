import type { Database, Queries } from './database.ts';
import { isUnavailable, UnsafeDatabaseError } from './database-error.ts';
import { type AccountNode, isDistributed, listAccountNodes } from './distribution.ts';
import { onlyRow } from './rows.ts';

/** The settings without which an acknowledged commit can be lost. */
const SETTINGS = ['fsync', 'full_page_writes', 'synchronous_commit'] as const;

type Values = Readonly<Record<(typeof SETTINGS)[number], string | null>>;

// A value is null if another engine with PostgreSQL's protocol lacks the setting.
const CURRENT = SETTINGS.map((name) => `current_setting('${name}', true) AS ${name}`).join(', ');
const OF_DATABASE = { name: 'durability', text: `SELECT ${CURRENT}` };
// The engine sends the whole statement to the account's node, which evaluates it there and returns a row in any case.
const OF_NODE = {
  name: 'durability_of_node',
  text: `SELECT ${CURRENT} FROM payment WHERE account_id = $1 AND id = $1 HAVING count(*) >= 0`,
};

/** Returns the settings that are off although an acknowledged commit can be lost without them. */
export async function findUnsafeSettings(queries: Queries): Promise<string[]> {
  return offIn(onlyRow(await queries.query<Values>(OF_DATABASE)));
}

/** Does the same for a node of a distributed database. */
export async function findUnsafeSettingsOfNode(
  queries: Queries,
  { accountId }: Pick<AccountNode, 'accountId'>,
): Promise<string[]> {
  return offIn(onlyRow(await queries.query<Values>(OF_NODE, [accountId])));
}

/**
 * Checks that no node acknowledges commits before they are on disk.
 *
 * @param allowUnsafe accepts such a database anyway.
 * @returns the nodes that could not be asked, because they are unavailable.
 * @throws UnsafeDatabaseError naming the node and its settings at fault.
 */
export async function assertDurable(database: Database, allowUnsafe: boolean): Promise<readonly string[]> {
  if (allowUnsafe) return [];
  refuse('the database', await findUnsafeSettings(database));
  const unavailable: string[] = [];
  for (const node of (await isDistributed(database)) ? await listAccountNodes(database) : []) {
    try {
      refuse(`the node ${node.node}`, await findUnsafeSettingsOfNode(database, node));
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      unavailable.push(node.node);
    }
  }
  return unavailable;
}

function refuse(who: string, off: readonly string[]): void {
  if (off.length === 0) return;
  throw new UnsafeDatabaseError(
    `${who} acknowledges commits that a crash can undo, so payments could be lost; these settings are off: ${off.join(', ')}`,
  );
}

const offIn = (values: Values) => SETTINGS.filter((name) => values[name] === 'off');
