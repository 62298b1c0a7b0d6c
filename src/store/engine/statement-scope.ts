import { PLACEMENTS } from './distribution.ts';

/**
 * The nodes that a statement needs in a distributed database: only the coordinator, several nodes, or the node of an
 * account. `accountAt` is the index of the value that contains the account's id, or an array of account ids.
 */
export type Scope = 'coordinator' | 'nodes' | { readonly accountAt: number };

/** Finds the nodes that a statement needs, from its SQL. */
export function scopeOf(text: string): Scope {
  const known = scopes.get(text);
  if (known) return known;
  const scope = findScope(text);
  // Statements are constants; the limit guards against one that is not.
  if (scopes.size < MAX_KNOWN) scopes.set(text, scope);
  return scope;
}

const MAX_KNOWN = 1_000;
const scopes = new Map<string, Scope>();

const TABLES = /\b(?:FROM|JOIN|UPDATE|INTO|USING)\s+(\w+)(?!\w|\()/g;
const CALLS = /\bFROM\s+\w+_\d+\(/;
const WRITES_COPY = /\b(?:UPDATE|INTO|DELETE FROM)\s+account\b/;
const ACCOUNT = /\baccount_id = (?:ANY \()?\$(\d+)|\bthe_account => \$(\d+)|\bFROM\s+\w+_\d+\(\$(\d+)/;
const INSERT = /^\s*INSERT INTO \w+(?: AS \w+)?\s*\(([^)]*)\)\s*VALUES\s*\(([^)]*)/;

function findScope(text: string): Scope {
  const accounts = [...text.matchAll(TABLES)].some(([, table = '']) => PLACEMENTS[table] === 'by account');
  if (!accounts && !CALLS.test(text)) return WRITES_COPY.test(text) ? 'nodes' : 'coordinator';
  const [, ...numbers] = ACCOUNT.exec(text) ?? [];
  const number = numbers.find((it) => it !== undefined) ?? insertedAccount(text);
  return number === undefined ? 'nodes' : { accountAt: Number(number) - 1 };
}

/** Returns the number of the parameter that an INSERT gives to account_id. */
function insertedAccount(text: string): string | undefined {
  const [, columns = '', values = ''] = INSERT.exec(text) ?? [];
  const at = columns.split(',').findIndex((column) => column.trim() === 'account_id');
  return /^\$(\d+)$/.exec(values.split(',')[at]?.trim() ?? '')?.[1];
}
