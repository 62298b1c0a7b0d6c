import { expect, it } from 'vitest';
import { checkWritable } from '#src/store/engine/check-writable.ts';
import { distribute, isDistributed, PLACEMENTS } from '#src/store/engine/distribution.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';

onOwnDatabase({});

it('every table of the schema has a placement', async () => {
  const rows = await tables.query(
    "SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
  );
  expect(rows.map(({ name }) => name).sort()).toEqual(Object.keys(PLACEMENTS).sort());
});

it('tables are placed by account if their primary key begins with the account, except secret keys and the audit log', async () => {
  const rows = await tables.query(
    `SELECT c.relname AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
     WHERE i.indisprimary AND a.attname = 'account_id' AND c.relnamespace = 'public'::regnamespace`,
  );
  const byAccount = Object.keys(PLACEMENTS).filter((name) => PLACEMENTS[name] === 'by account');
  expect(rows.map(({ name }) => name).sort()).toEqual([...byAccount, 'audit_log', 'secret_key'].sort());
});

it.skipIf(process.env.CITUS_URL)('a database without a distributed engine is not distributed', async () => {
  expect(await isDistributed(database)).toBe(false);
  await expect(distribute(database)).rejects.toThrow('Citus is not installed in the database');
  await checkWritable(database);
});
