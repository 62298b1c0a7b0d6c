import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { Statement } from '#src/store/engine/database.ts';
import { PLACEMENTS } from '#src/store/engine/distribution.ts';
import { DUE } from '#src/store/engine/due-work.ts';

// A distributed engine runs only some of PostgreSQL's SQL. These rules hold for every statement of the store, on every
// machine; test/store/citus.slow.test.ts runs statements on such an engine.

/** Statements that join tables across all accounts: background work, and facts for operators. */
const OVER_ALL_ACCOUNTS = [
  'list_overdue_webhooks',
  'list_recent_records',
  'service_facts',
  // The searches for old events and sessions; the statements that delete them name the account.
  'o.due_at IS NOT NULL',
  "o.status IN ('READY_TO_PAY', 'PENDING')",
];

/** Statements on tables that are not distributed, and reads of the catalog. */
const NOT_DISTRIBUTED =
  /operator_session|installation_key|catalogue_\w+|retired_connection|connection_secret|schema_migration|pg_\w+|unnest\(ARRAY/;

const written = globSync('src/store/{engine,tables}/*.ts').flatMap((file) =>
  [...readFileSync(file, 'utf8').matchAll(/(?:name: '(\w+)',\s*text:\s*)?(?:`([^`]*)`|'([^'\n]*)')/g)]
    .map(([, name, long, short]) => ({
      name: name ?? file,
      text: (long ?? short ?? '').replaceAll(/\s+/g, ' '),
    }))
    .filter(({ text }) => /\b(SELECT|INSERT INTO|UPDATE \w+|DELETE FROM)\b/.test(text))
    .filter(({ text }) => !NOT_DISTRIBUTED.test(text)),
);
const generated = Object.values(DUE)
  .flatMap((of): Statement[] => Object.values(of))
  .map(({ name, text }) => ({ name, text: text.replaceAll(/\s+/g, ' ') }));
const statements = [...written, ...generated];

const those = (pattern: RegExp) =>
  statements.filter(({ text }) => pattern.test(text)).map(({ name, text }) => `${name}: ${text}`);

it('the rules read the statements of the store', () => {
  expect(statements.length).toBeGreaterThan(100);
  expect(generated.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['find_due_events', 'take_due_notifications', 'prompt_enrollments']),
  );
});

it('every table in a statement gets its account from a parameter, not from another table', () => {
  const joined = those(/account_id = [a-z]+\.account_id/);
  expect(joined.filter((text) => !OVER_ALL_ACCOUNTS.some((known) => text.includes(known)))).toEqual([]);
});

it('every table of a search can be restricted to some accounts, so that it does not need a node that is down', () => {
  const mark = /\bIN_ACCOUNTS\}|\binAccountsOf\(|\/\* in accounts/g;
  const searches = statements.filter(({ text }) => text.match(mark) && !/FROM \$\{/.test(text));
  const unmarked = searches.filter(({ text }) => {
    const tables = [...text.matchAll(/\b(?:FROM|JOIN) (\w+)/g)].map(([, table = '']) => table);
    return tables.filter((table) => PLACEMENTS[table] === 'by account').length !== text.match(mark)?.length;
  });
  expect(searches.length).toBeGreaterThan(10);
  expect(unmarked.map(({ name }) => name)).toEqual([]);
});

it('rows are locked only within one account', () => {
  expect(
    those(/FOR (NO KEY )?UPDATE|FOR SHARE/).filter(
      (text) => !/(account_id|WHERE id) = \$1|\$\{account\}|\$\{DUE\}/.test(text),
    ),
  ).toEqual([]);
});

it('a statement has at most one INSERT', () => {
  expect(those(/INSERT INTO.*INSERT INTO/).filter((text) => !text.startsWith('claim_many:'))).toEqual([]);
});

it('a statement has no recursion, no lateral limit, no empty list and no simple CASE on a parameter', () => {
  expect(those(/WITH RECURSIVE|\bLATERAL\b|SELECT FROM|CASE \$\d/)).toEqual([]);
});

it('RETURNING computes nothing from the current time', () => {
  expect(those(/RETURNING [^)]*(now\(|extract\(|make_interval|_at::|\bCASE\b)/)).toEqual([]);
});

it('SET computes nothing from both a column and the current time', () => {
  const mixed = setsOf(statements).filter(({ set }) =>
    assignments(set).some((value) => value.includes('now()') && columnsIn(value).length > 0),
  );
  expect(mixed).toEqual([]);
  expect(columnsIn('least(n.check_at, now())')).toEqual(['n.check_at']);
});

it('SET takes no time from a CASE or a coalesce', () => {
  const conditional = (some: typeof statements) =>
    setsOf(some).filter(({ set }) =>
      assignments(set).some((value) => /^(CASE|coalesce)\b.*now\(/.test(value)),
    );
  // A statement that begins with another one is sent whole to the node of its account.
  expect(conditional(statements.filter(({ text }) => !/^ ?WITH\b/.test(text)))).toEqual([]);
  const text = 'UPDATE a SET b = NULL, c = CASE WHEN $1 THEN now() END WHERE account_id = $2';
  expect(conditional([{ name: 'a', text }])).toHaveLength(1);
});

function setsOf(some: typeof statements) {
  return some.flatMap(({ name, text }) =>
    [...text.matchAll(/\bSET ((?:(?! FROM | WHERE | RETURNING ).)*)/g)].map(([, set = '']) => ({
      name,
      set,
    })),
  );
}

/** Returns the values of a SET clause. */
function assignments(set: string): string[] {
  const values: string[] = [];
  let depth = 0;
  let value = '';
  for (const letter of set) {
    if (letter === '(') depth += 1;
    if (letter === ')') depth -= 1;
    if (letter === ',' && depth === 0) {
      values.push(value);
      value = '';
    } else value += letter;
  }
  return [...values, value].map((text) => text.replace(/^\s*\w+ = /, ''));
}

/** Returns the words of an expression that are columns, not functions, parameter names, types or keywords. */
function columnsIn(value: string): string[] {
  const words = value
    .replaceAll(/'[^']*'|::\w+(\[\])?|\w+ =>/g, ' ')
    .matchAll(/(?<![$\w.])([a-z_]+(?:\.[a-z_]+)?)\b(?!\()/g);
  return [...words].map(([word]) => word);
}
