import { globSync, readFileSync } from 'node:fs';
import { createRequire, isBuiltin, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import {
  type CallExpression,
  isCallExpression,
  isIdentifier,
  isPropertyAccessExpression,
  type Node,
} from 'typescript/unstable/ast';
import { API, type Checker } from 'typescript/unstable/sync';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { databaseUrl, onOwnDatabase } from '../support/own-database.ts';

// The compiler trusts the row type of a call such as `query<Account>(LIST_ACCOUNTS)`. A column with another name would
// be read as undefined.

const ROOT = join(import.meta.dirname, '../..');
/** Files with calls whose statement is not in a constant, a name for each call. */
const NOT_HELD = [
  ...['src/store/engine/aged-rows.ts', 'src/store/engine/schema-lock.ts'],
  // A search chooses its statement from tables; test/store/look-through-payments.test.ts runs each.
  ...['src/store/tables/look-through-payments.ts', 'src/store/tables/look-through-payments.ts'],
  // The figures choose a statement by account; test/dashboard/totals.slow.test.ts reads each.
  ...['src/store/tables/payment-totals.ts', 'src/store/tables/payment-totals.ts'],
];
/** These files pass on the statements of their callers, whose calls are read like those of `query`. */
const OF_CALLERS = ['src/store/engine/search-accounts.ts', 'src/store/engine/due-work.ts'];
/** Functions with a row type, and the position of their statement argument. */
const STATEMENT_AT: Readonly<Record<string, number>> = {
  ...{ query: 0, run: 0, searchAccounts: 1, takeDueRows: 1, takeWith: 1 },
};

/** This file reads a catalog that PostgreSQL alone does not have; test/store/citus.slow.test.ts runs its statements. */
const OF_ANOTHER_ENGINE = 'src/store/engine/distribution.ts';

onOwnDatabase({ empties: 'payment' });

let client: pg.Client;
beforeAll(async () => {
  client = new pg.Client(databaseUrl());
  await client.connect();
});
afterAll(() => client?.end());

it('every statement returns the column names of its declared row type', async () => {
  const api = new API({ cwd: ROOT });
  const faults: string[] = [];
  const notHeld: string[] = [];
  try {
    const project = api.updateSnapshot({ openProjects: ['tsconfig.json'] }).getProjects()[0];
    for (const file of globSync('src/store/{engine,tables}/*.ts', { cwd: ROOT }).sort()) {
      if (file === OF_ANOTHER_ENGINE || OF_CALLERS.includes(file)) continue;
      const source = project?.program.getSourceFile(join(ROOT, file));
      if (!project || !source) throw new Error(`${file} is not in the project`);
      const calls = source.statements.flatMap((part) => typedCalls(part, project.checker));
      const texts = await textsOf(file, calls);
      for (const [i, { statement, declared }] of calls.entries()) {
        const call = `${file}: ${statement}`;
        if (texts[i]?.length === 0) notHeld.push(file);
        for (const text of texts[i] ?? []) {
          const returned = (await namesOf(text)).sort().join();
          if (returned !== declared) faults.push(`${call} returns ${returned}, not ${declared}`);
        }
      }
    }
  } finally {
    api.close();
  }
  expect(faults).toEqual([]);
  expect(notHeld).toEqual(NOT_HELD);
});

type TypedCall = {
  /** The expression of the call's statement. */
  readonly statement: string;
  /** The sorted property names of the row type. */
  readonly declared: string;
  /** The top-level part of the file that contains the call. */
  readonly part: string;
};

/** Returns the calls of functions with a row type, such as `query<Row>`, in a part of a file. */
function typedCalls(part: Node, checker: Checker): TypedCall[] {
  const found: TypedCall[] = [];
  const visit = (node: Node): void => {
    if (isCallExpression(node)) found.push(...typedCall(node, part, checker));
    node.forEachChild(visit);
  };
  visit(part);
  return found;
}

function typedCall(
  { expression, typeArguments, arguments: values }: CallExpression,
  part: Node,
  checker: Checker,
) {
  const name = isPropertyAccessExpression(expression) ? expression.name : expression;
  const row = typeArguments?.[0];
  const statement = isIdentifier(name) ? values[STATEMENT_AT[name.text] ?? values.length] : undefined;
  if (!row || !statement) return [];
  const type = checker.getTypeFromTypeNode(row);
  const names = type ? checker.getPropertiesOfType(type).map((property) => property.name) : [];
  return [{ statement: statement.getText(), declared: names.sort().join(), part: part.getText() }];
}

/**
 * Returns the SQL of each call's statement. If the value of the statement's expression depends on a local variable, it
 * returns every constant that the expression, the variable or the surrounding function names. It evaluates them in a
 * copy of the module.
 */
async function textsOf(file: string, calls: readonly TypedCall[]): Promise<string[][]> {
  const source = readFileSync(join(ROOT, file), 'utf8');
  const constants = [...source.matchAll(/^(?:export )?const ([A-Z][A-Z0-9_]*)\b/gm)].map(
    ([, name]) => name ?? '',
  );
  const values = calls.map(({ statement, part }) => {
    const [, initial = ''] = new RegExp(`\\bconst ${RegExp.escape(statement)} = ([^;]*);`).exec(part) ?? [];
    const namedIn = (text: string) => constants.filter((name) => new RegExp(`\\b${name}\\b`).test(text));
    const named = [statement, initial, part].map(namedIn).find((names) => names.length > 0) ?? [];
    return `orElse(() => (${statement}), () => [${named}])`;
  });
  const copy = `${source.replaceAll('import.meta.dirname', "''")}
    const orElse = (first, second) => { try { return first(); } catch { return second(); } };
    export const valuesOfCalls = [${values}];`;
  const { resolve } = createRequire(join(ROOT, file));
  const code = stripTypeScriptTypes(copy).replaceAll(/(?<= from )'([^']+)'/g, (_, name: string) =>
    JSON.stringify(isBuiltin(name) ? name : pathToFileURL(resolve(name)).href),
  );
  const module = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  return module.valuesOfCalls.map(sqlIn);
}

/** Returns the SQL in a value: a string, a statement, or several of them. */
function sqlIn(value: unknown): string[] {
  if (typeof value === 'string') return /^\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b/.test(value) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return 'text' in value ? sqlIn(value.text) : Object.values(value).flatMap(sqlIn);
}

/** Returns the column names of a statement, or PostgreSQL's error, without running the statement. */
function namesOf(text: string): Promise<string[]> {
  return new Promise((resolve) => {
    let names: string[] = [];
    client.query({
      submit(connection: pg.Connection) {
        connection.parse({ name: '', text, types: [] }, true);
        connection.describe({ type: 'S', name: '' }, true);
        connection.sync();
      },
      handleRowDescription({ fields }: { fields: readonly pg.FieldDef[] }) {
        names = fields.map(({ name }) => name);
      },
      handleReadyForQuery: () => resolve(names),
      handleError: ({ message }: Error) => resolve([message]),
    });
  });
}
