import type { Database, Statement } from './database.ts';
import { isUnavailable } from './database-error.ts';
import { listAccountsByNode } from './distribution.ts';

/**
 * Marks the place in a search's WHERE at which it can be restricted to some accounts. In SQL, it is a comment. Every
 * table of a search needs one: if a join leaves a table unrestricted, the engine reads it on every node.
 */
export const IN_ACCOUNTS = '/* in accounts */';

/** IN_ACCOUNTS for one of several tables. */
export const inAccountsOf = (alias: string) => `/* in accounts of ${alias} */`;

const MARKS = /\/\* in accounts(?: of (\w+))? \*\//g;

/** The result of a search while a node is down: the other nodes' rows, or an error if they have none. */
export type Completeness = 'of reachable nodes' | 'found or complete';

/**
 * Searches the rows of all accounts. If a node of a distributed database cannot be reached, the search is repeated on
 * each node alone, so that the other nodes' accounts do not wait for it.
 *
 * @param search a statement with IN_ACCOUNTS. A LIMIT in it applies to each node.
 * @param completeness 'found or complete' rejects if nothing was found and a node could not be searched.
 * @throws the database's error if no node could be searched.
 */
export async function searchAccounts<Row extends object>(
  database: Database,
  search: Statement,
  values: readonly unknown[],
  completeness: Completeness = 'of reachable nodes',
): Promise<readonly Row[]> {
  try {
    return (await database.query<Row>(search, values)).rows;
  } catch (error) {
    if (!database.isDistributed || !isUnavailable(error)) throw error;
    const { found, failed } = await searchNodes<Row>(database, search, values);
    if (completeness === 'found or complete' && found.length === 0 && failed.length > 0) throw failed[0];
    return found;
  }
}

/**
 * Adds up the rows that a count over all accounts returned for each node.
 *
 * @param keyOf tells which rows count the same.
 */
export function addUp<Row extends object>(
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  add: (a: Row, b: Row) => Row,
): Row[] {
  return [...Map.groupBy(rows, keyOf).values()].map((same) => same.reduce(add));
}

async function searchNodes<Row extends object>(
  database: Database,
  search: Statement,
  values: readonly unknown[],
) {
  const statement = {
    name: `${search.name}_of_node`,
    text: search.text.replaceAll(
      MARKS,
      (_mark, alias?: string) =>
        `${alias ? `${alias}.` : ''}account_id = ANY ($${values.length + 1}::uuid[]) AND`,
    ),
  };
  const nodes = await listAccountsByNode(database);
  const results = await Promise.allSettled(
    nodes.map(({ accountIds }) => database.query<Row>(statement, [...values, accountIds])),
  );
  const rows = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.rows] : []));
  const failed = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  if (rows.length === 0) throw failed[0];
  return { found: takeTurns(rows), failed };
}

/** Merges lists by taking one element of each in turn, so that a caller that uses only the first rows omits no node. */
function takeTurns<Row>(lists: readonly (readonly Row[])[]): Row[] {
  const longest = Math.max(...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1))).flat();
}
