import { globSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { DUE } from '#src/store/engine/due-work.ts';
import { callMainPath } from '../support/main-path.ts';
import { type Plan, scansOf } from '../support/nested-plans.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { openTables, type Tables } from '../support/tables.ts';

// The schema can be sharded by account: an account's rows are together, and a main-path statement needs only one shard.

/** Tables whose key does not contain the account, with the reason. */
const NOT_BY_ACCOUNT: Readonly<Record<string, string>> = {
  account: 'its own id is the account',
  public_key: 'finds the account of a caller: copied to every shard',
  schema_migration: 'of the installation',
  installation_key: 'of the installation',
  response_schema: 'of the releases that ran here: copied to every shard',
  operator_session: 'of the installation',
  catalogue_version: 'of the installation',
  catalogue_head: 'of the installation',
  catalogue_replica: 'of the installation',
  connection_secret: 'of the installation',
  connection_account: 'of the installation',
  retired_connection: 'of the installation',
};
/** The simulated provider's schema, which is not sharded. */
const FOREIGN_SCHEMAS = ['sandbox'];
const OF_ALL = 'background work on due rows of all accounts';
const FIRST = 'runs before the account is known, with an id from a caller, payer or provider';
const OPERATOR = 'for an operator, or for the start of the service';

/** Statements that need not name the account because they are not on the main path, with the reason. */
const NOT_MAIN_PATH: Readonly<Record<string, string>> = {
  find_account_keys: FIRST,
  find_accounts_by_digits: FIRST,
  find_transaction_of_provider_payment: FIRST,
  list_accounts_by_digits: 'for settlement, which begins with ids in a provider’s report',
  settled_transactions_by_provider_id: 'for settlement, which begins with ids in a provider’s report',
  count_open_attempts: OF_ALL,
  count_open_later: OF_ALL,
  find_due_work: OF_ALL,
  find_due_transactions: OF_ALL,
  find_unaskable_attempts: OF_ALL,
  find_due_notifications: OF_ALL,
  find_due_enrollments: OF_ALL,
  find_due_events: OF_ALL,
  relay_events: 'calls a function, whose statements another test checks',
  list_overdue_webhooks: OF_ALL,
  count_recent_attempts: OF_ALL,
  count_latest_transactions: OF_ALL,
  claim_and_write_many: 'calls functions, whose statements another test checks',
  claim_many: 'calls a function, whose statements another test checks',
  write_outcomes: 'calls a function, whose statements another test checks',
  write_outcomes_of_account: 'calls a function, whose statements another test checks',
  claim_many_of_account: 'calls a function, whose statements another test checks',
  add_response_schema: OPERATOR,
  read_response_schema: 'of the release that stored a response, for a release with another schema',
  insert_operator_session: OPERATOR,
  find_operator_session: OPERATOR,
  touch_operator_session: OPERATOR,
  delete_operator_session: OPERATOR,
  has_payments_at_connection: OPERATOR,
  read_refund_term: OPERATOR,
  list_account_names: OPERATOR,
  export_end: OPERATOR,
  export_accounts: OPERATOR,
  list_open_disputes: OPERATOR,
  find_payments_by_provider_payment: OPERATOR,
  is_distributed: OPERATOR,
  list_account_nodes: OPERATOR,
  open_elsewhere: OPERATOR,
  list_account_ids: OF_ALL,
  group_accounts_by_node: 'reads the catalog of a distributed engine',
  find_node_of_account: 'reads the catalog of a distributed engine',
  list_oldest_open_attempts: OF_ALL,
  list_troubled_webhooks: OF_ALL,
  count_pending_deliveries: OF_ALL,
  check_writable: OPERATOR,
  durability: OPERATOR,
  time_limits: OPERATOR,
  estimate_rows: OPERATOR,
  database_facts: OPERATOR,
  service_facts: OPERATOR,
  insert_account: OPERATOR,
  list_accounts: OPERATOR,
  find_account: OPERATOR,
  change_account: OPERATOR,
  insert_public_key: OPERATOR,
  revoke_public_key: OPERATOR,
  revoke_secret: OPERATOR,
  read_catalogue_head: OPERATOR,
  read_catalogue_version: OPERATOR,
  list_catalogue_versions: OPERATOR,
  save_catalogue_replica: OPERATOR,
  list_catalogue_replicas: OPERATOR,
  read_connection_secrets: OPERATOR,
  list_connection_secrets: OPERATOR,
  read_connection_accounts: OPERATOR,
  list_sealed_connection_secrets: OPERATOR,
  replace_sealed_connection_secret: OPERATOR,
};

/** Statements that PostgreSQL plans for each call, so they are sent without a name; each with a part of its text. */
const UNNAMED: Readonly<Record<string, string>> = {
  list_payments_by_order_and_status: 'AND merchant_order_id = $6 AND status = $7',
};

let server: TestServer;
let tables: Tables;
/** Every named statement that the service ran, and those of UNNAMED. */
const statements = new Map<string, string>();

beforeAll(async () => {
  const query = pg.Client.prototype.query;
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const { name, text } = (args[0] ?? {}) as { name?: string; text?: string };
    const known = name ?? Object.keys(UNNAMED).find((unnamed) => text?.includes(UNNAMED[unnamed] ?? ''));
    if (known && text) statements.set(known, text);
    return Reflect.apply(query, this, args);
  } as typeof query);
  server = await startTestServer();
  tables = await openTables(server.databaseUrl);
});
afterAll(async () => {
  vi.restoreAllMocks();
  await tables?.close();
  await server?.close();
});

it('every table with account data has the account first in its primary key', async () => {
  const rows = await tables.query(
    `SELECT c.relname AS name, a.attname AS first, i.indisvalid AS valid
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
     LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
     WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname <> ALL ($1)
     ORDER BY c.relname`,
    [FOREIGN_SCHEMAS],
  );
  const byAccount = rows.filter(({ name }) => !Object.hasOwn(NOT_BY_ACCOUNT, String(name)));
  const names = byAccount.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['payment', 'transaction', 'webhook']));
  expect(byAccount).toEqual(byAccount.map(({ name }) => ({ name, first: 'account_id', valid: true })));
  expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(NOT_BY_ACCOUNT)));
});

it('every unique index and foreign key of a table with account data contains the account, for sharding', async () => {
  const unique = await tables.query(
    `SELECT i.indexrelid::regclass::text AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
     JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public'
     WHERE i.indisunique AND c.relname <> ALL ($1) AND NOT EXISTS (
       SELECT FROM pg_attribute a
       WHERE a.attrelid = c.oid AND a.attname = 'account_id' AND a.attnum = ANY (i.indkey::smallint[]))`,
    [Object.keys(NOT_BY_ACCOUNT)],
  );
  expect(unique).toEqual([]);
  const references = await tables.query(
    `SELECT conname FROM pg_constraint k
     WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND confrelid <> 'account'::regclass AND NOT EXISTS (
       SELECT FROM pg_attribute a WHERE a.attrelid = k.conrelid AND a.attname = 'account_id' AND a.attnum = ANY (k.conkey))`,
  );
  expect(references).toEqual([]);
});

it('migrations leave no invalid index', async () => {
  expect(await tables.query('SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid')).toEqual([]);
});

describe('statements of the main path', () => {
  beforeAll(async () => {
    await callMainPath(server.url);
  });

  it('the test runs the statements of the main path', () => {
    expect(mainPath().map(([name]) => name)).toEqual(
      expect.arrayContaining([
        ...['claim', 'claim_with_card', 'claim_of_session_by_token', 'claim_operation', 'find_by_key'],
        ...['write_outcome', 'write_change', 'write_next_attempt', 'read_payment_state'],
        ...['get_payment', 'find_operation_by_key', 'find_stored_objects'],
        ...['list_payments', 'list_payments_by_order', 'list_payments_by_status'],
        ...['list_payments_by_order_and_status', 'get_checkout_session', 'get_one_time_token'],
      ]),
    );
  });

  // Reads PostgreSQL's own plans.
  it.skipIf(process.env.CITUS_URL)(
    'every statement of the main path reads and writes only rows of its account',
    async () => {
      for (const setting of ['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin'])
        await tables.query(`SET ${setting} = off`);
      const byAccount = new Set(
        (
          await tables.query(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE a.attname = 'account_id' AND c.relkind = 'r'",
          )
        ).map(({ relname }) => relname),
      );
      for (const [name, text] of mainPath()) {
        const [row] = await tables.query(`EXPLAIN (GENERIC_PLAN, VERBOSE, FORMAT JSON) ${text}`);
        const [{ Plan: plan }] = (row as { 'QUERY PLAN': [{ Plan: Plan }] })['QUERY PLAN'];
        for (const scan of scansOf(plan)) {
          const table = scan['Relation Name'];
          if (!byAccount.has(table) || table === 'public_key') continue;
          const conditions = [scan['Index Cond'], scan['Recheck Cond'], scan.Filter].join(' ');
          expect(conditions, `${name} reads ${table}`).toContain('account_id');
        }
        for (const [, table = '', columns = ''] of text.matchAll(/INSERT INTO (\w+)\s*\(([^)]*)\)/g)) {
          if (byAccount.has(table)) expect(columns, `${name} inserts into ${table}`).toContain('account_id');
        }
      }
    },
  );

  it('every statement in the store names the account, unless it ran in this test or is listed with a reason', () => {
    const source = globSync('src/store/{engine,tables}/*.ts')
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n');
    const named = new Map(
      [...source.matchAll(NAMED_STATEMENT)].map(([, name = '', text = '']) => [name, text]),
    );
    for (const { name, text } of Object.values(DUE).flatMap(Object.values)) named.set(name, text);
    const without = [...named].filter(([, text]) => !text.includes('account_id')).map(([name]) => name);
    expect(without.filter((name) => !statements.has(name) && !Object.hasOwn(NOT_MAIN_PATH, name))).toEqual(
      [],
    );
    expect(
      Object.keys(NOT_MAIN_PATH).filter((name) => !named.has(name)),
      'listed, but no longer in the store',
    ).toEqual([]);
    expect(named.size).toBeGreaterThan(50);
  });

  const mainPath = () => [...statements].filter(([name]) => !Object.hasOwn(NOT_MAIN_PATH, name));
});

/** Matches a named statement in the store's source. */
const NAMED_STATEMENT = /name: '(\w+)',\s*text:\s*('[^']*'|`[^`]*`)/g;
