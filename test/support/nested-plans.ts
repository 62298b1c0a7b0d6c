import pg from 'pg';
import type { Database } from '#src/store/engine/database.ts';

/** A node of a plan, as EXPLAIN writes it. */
export type Plan = {
  readonly Plans?: readonly Plan[];
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'Recheck Cond'?: string;
  readonly Filter?: string;
};

/** A statement that PostgreSQL ran within a function, with its plan. */
export type NestedStatement = { readonly text: string; readonly plan: Plan };

/** A database that records the statements that its functions run. */
export type ShowingDatabase = {
  readonly database: Database;
  /** The statements that its functions have run so far. */
  readonly nested: readonly NestedStatement[];
  close(): Promise<void>;
};

/**
 * Opens the database on one connection. The plan of a call shows only the call, so each statement within logs its own
 * plan.
 */
export async function openShowing(url: string): Promise<ShowingDatabase> {
  const client = new pg.Client(url);
  await client.connect();
  const called = new Set<string>();
  const nested: NestedStatement[] = [];
  client.on('notice', ({ message = '' }) => {
    const [, json] = /^duration: .* plan:\n(\{.*)/s.exec(message) ?? [];
    if (!json) return;
    const { 'Query Text': text, Plan: plan } = JSON.parse(json) as { 'Query Text': string; Plan: Plan };
    if (!called.has(text)) nested.push({ text, plan });
  });
  await client.query("LOAD 'auto_explain'");
  const settings = {
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_nested_statements': 'on',
    'auto_explain.log_format': 'json',
    'auto_explain.log_verbose': 'on',
    'auto_explain.log_level': 'notice',
  };
  for (const [name, value] of Object.entries(settings)) await client.query(`SET ${name} = ${value}`);
  const query = async ({ text }: { text: string }, values: unknown[] = []) => {
    called.add(text);
    return client.query(text, values);
  };
  return {
    database: { query, roundTripMs: () => 0 } as unknown as Database,
    nested,
    close: () => client.end(),
  };
}

/** Returns the scans of tables in a plan. */
export function scansOf(plan: Plan): Plan[] {
  const isScan = plan['Relation Name'] !== undefined && plan['Node Type'].includes('Scan');
  return [...(isScan ? [plan] : []), ...(plan.Plans ?? []).flatMap(scansOf)];
}
