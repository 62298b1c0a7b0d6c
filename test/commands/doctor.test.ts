import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { errorBody } from '#sandbox/api-error.ts';
import { run } from '#src/commands/doctor.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type Ran, runCommand } from '../support/run-command.ts';
import { SMALL } from '../support/small-catalogue.ts';
import { openTables, type Tables } from '../support/tables.ts';
import { startTransactionPooler } from '../support/transaction-pooler.ts';

const KEYS = {
  VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  HASH_KEY: randomBytes(32).toString('base64'),
};
const home = mkdtempSync(join(tmpdir(), 'doctor-'));

let database: TestDatabase;
let tables: Tables;

beforeAll(async () => {
  database = await createTestDatabase();
  tables = await openTables(database.url);
});
afterAll(async () => {
  await tables?.close();
  await database?.drop();
  rmSync(home, { recursive: true, force: true });
});

async function doctor(environment: Readonly<Record<string, string>>): Promise<Ran> {
  const ended = await runCommand(run, {
    DATABASE_URL: database.url,
    SANDBOX: 'off',
    CATALOGUE_FILE: sandboxAt('http://127.0.0.1:1'),
    ONE_KEY: 'key',
    ...KEYS,
    ...environment,
  });
  expect(ended.stderr).toBe('');
  return ended;
}

/** Returns a catalogue with one connection to a URL. */
function sandboxAt(url: string): string {
  const file = join(home, `${encodeURIComponent(url)}.yaml`);
  writeFileSync(file, SMALL.replace('$SANDBOX_URL', url));
  return file;
}

it('the doctor finds nothing wrong with a healthy deployment, and sends its providers only probes', async () => {
  await tables.query("INSERT INTO account (id, name) VALUES (gen_random_uuid(), 'Shop')");
  const asked: string[] = [];
  const provider: Server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    // The sandbox provider's response for an unknown payment.
    const body = JSON.stringify(errorBody('not_found', 'nothing was recorded'));
    response.writeHead(404, { 'content-type': 'application/json' }).end(body);
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const { code, stdout } = await doctor({
    CATALOGUE_FILE: sandboxAt(url),
    OPERATOR_KEYS: 'o'.repeat(32),
    PUBLIC_URL: 'https://pay.example',
    TRUSTED_PROXIES: '10.0.0.0/8',
    ALLOW_UNSAFE_DATABASE: 'on',
  });
  provider.close();
  // The tests' own PostgreSQL runs with fsync off, unlike some that CITUS_URL names.
  const [setting] = await tables.query('SHOW fsync');
  const isDurable = setting?.fsync === 'on';
  expect(stdout).toMatch(isDurable ? /^ok {7}durability: /m : /^warning {2}durability: fsync, .*off/m);
  expect(stdout).toMatch(/^ok {7}connection one: its provider responds/m);
  expect(stdout).toMatch(/^ok {7}schema: up to date$/m);
  expect(stdout).toMatch(/^ok {7}keys: /m);
  expect(stdout).toMatch(isDurable ? /, 0 warnings, 0 failed\n$/ : /, 1 warnings, 0 failed\n$/);
  expect(code).toBe(0);
  expect(asked.every((call) => call.startsWith('GET '))).toBe(true);
  expect(await tables.query('SELECT name FROM installation_key')).toEqual([]);
});

it('the doctor fails with advice if settings, database, keys, catalogue or schema would prevent the service from starting', async () => {
  const wrong = await doctor({ PORT: 'none' });
  expect([wrong.code, wrong.stdout]).toEqual([
    1,
    expect.stringMatching(/^FAILED {3}configuration: PORT must be/m),
  ]);

  const away = await doctor({ DATABASE_URL: 'postgres://a:hidden@127.0.0.1:1/b' });
  expect(away.code).toBe(1);
  expect(away.stdout).toMatch(
    /^FAILED {3}database: cannot connect to the database.*\n {9}check DATABASE_URL/m,
  );
  expect(away.stdout).toMatch(/^FAILED {3}connection one: .*nothing was sent \(.*ECONNREFUSED\)/m);
  expect(away.stdout).not.toContain('hidden');

  await tables.query("INSERT INTO installation_key (name, check_value) VALUES ('hash key', '\\x00')");
  const otherKey = await doctor({});
  expect([otherKey.code, otherKey.stdout]).toEqual([1, expect.stringMatching(/^FAILED {3}keys: HASH_KEY/m)]);
  await tables.query('DELETE FROM installation_key');

  const lacking = await doctor({ ONE_KEY: '' });
  expect([lacking.code, lacking.stdout]).toEqual([
    1,
    expect.stringMatching(/^FAILED {3}catalogue: .*the environment variable ONE_KEY is not set/m),
  ]);

  const file = join(home, 'broken.yaml');
  writeFileSync(file, 'routes: 1\n');
  const broken = await doctor({ CATALOGUE_FILE: file });
  expect([broken.code, broken.stdout]).toEqual([1, expect.stringMatching(/^FAILED {3}catalogue: .*routes/m)]);

  const last = await tables.query(
    'DELETE FROM schema_migration WHERE version = (SELECT max(version) FROM schema_migration) RETURNING version, name, sha256',
  );
  expect((await doctor({})).stdout).toMatch(/^warning {2}schema: 1 migrations are pending/m);
  await tables.query("INSERT INTO schema_migration (version, name, sha256) VALUES (9999, 'later', '')");
  const newer = await doctor({});
  expect(newer.stdout).toMatch(/^warning {2}schema: migrated by a later release \(9999_later\.sql\)/m);
  await tables.query('DELETE FROM schema_migration WHERE version = 9999');
  await tables.query(
    'INSERT INTO schema_migration (version, name, sha256) VALUES ($1, $2, $3)',
    Object.values(last[0] ?? {}),
  );
});

it.each([
  ['refused credentials', 401, 'application/json', '{"error":{}}', 'the credentials are refused (HTTP 401)'],
  ['an HTML page', 401, 'text/html; charset=utf-8', '<p>Sign in', 'the response is an HTML page (HTTP 401)'],
  ['an unreadable response', 502, 'text/plain', 'no', 'the response is unreadable (HTTP 502)'],
])('the doctor tells %s of a provider apart from other problems', async (_what, status, type, body, says) => {
  const provider: Server = createServer((_request, response) => {
    response.writeHead(status, { 'content-type': type }).end(body);
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const { code, stdout } = await doctor({ CATALOGUE_FILE: sandboxAt(url) });
  provider.close();
  expect(stdout).toContain(`connection one: its provider cannot be used: ${says}`);
  expect(code).toBe(1);
});

it('the doctor fails for a connection that has open transactions and is not in the catalogue', async () => {
  const [account] = await tables.query(
    "INSERT INTO account (id, name) VALUES (gen_random_uuid(), 'Shop') RETURNING id",
  );
  for (const connection of ['gone', 'one']) {
    await tables.query(
      `WITH made AS (
         INSERT INTO payment (account_id, id, idempotency_key, request_hash, request_shape, status, record)
         VALUES ($1, gen_random_uuid(), gen_random_uuid()::text, '', '', 'PENDING', '') RETURNING id
       )
       INSERT INTO transaction (account_id, id, payment_id, connection_id, connection_identity, status,
         amount_minor_units, currency, capture, check_at)
       SELECT $1, gen_random_uuid(), id, $2, $2, 'PENDING', 1, 'USD', true, now() FROM made`,
      [account?.id, connection],
    );
  }
  const { code, stdout } = await doctor({});
  expect(stdout).toMatch(
    /^FAILED {3}connection gone: 1 open transactions, but the catalogue lacks the connection/m,
  );
  expect(stdout).not.toMatch(/connection one: \d+ open transactions/);
  expect(code).toBe(1);
  await tables.query('TRUNCATE payment, transaction');
});

it('the doctor reports overdue work from the service’s tables', async () => {
  const [account] = await tables.query(
    "INSERT INTO account (id, name) VALUES (gen_random_uuid(), 'Shop') RETURNING id",
  );
  await tables.query(
    `INSERT INTO webhook (account_id, id, url, description, events, secret, failing_since)
     VALUES ($1, $1, 'https://example.com', '', '{}', '', now() - interval '2 hours')`,
    [account?.id],
  );
  await tables.query(
    `INSERT INTO delivery (account_id, id, webhook_id, event_id, due_at) VALUES ($1, $1, $1, $1, now() - interval '11 minutes')`,
    [account?.id],
  );
  await tables.query(
    `INSERT INTO transaction (account_id, id, payment_id, connection_id, connection_identity, status, amount_minor_units,
       currency, capture, check_at, created_at)
     VALUES ($1, $1, $1, 'one', 'one', 'PENDING', 1, 'USD', true, now(), now() - interval '1 hour')`,
    [account?.id],
  );
  await tables.query(
    `INSERT INTO notification (connection_id, deduplication_key, subject, body, query, received_at)
     VALUES ('one', 'k', 0, '', '', now() - interval '1 hour')`,
  );
  // Overdue: an authorization a day past the usual term that is checked hourly, and one due a day ago whose connection
  // is gone. Not overdue: an authorization that has just reached its term, one with a longer term, one that is hours
  // late, a captured one, a released one, and a refund.
  for (const [captured, type, check, age, released = false] of [
    [0, 'PURCHASE', '30 minutes', '9 days'],
    [0, 'AUTHORIZE', '-2 days', '7 days'],
    [0, 'AUTHORIZE', '10 minutes', '7 days'],
    [0, 'AUTHORIZE', '2 hours', '20 days'],
    [0, 'AUTHORIZE', '-23 hours', '7 days'],
    [1, 'AUTHORIZE', '-20 days', '27 days'],
    [0, 'AUTHORIZE', '-21 days', '28 days', true],
    [0, 'REFUND', '30 minutes', '20 days'],
  ]) {
    await tables.query(
      `WITH made AS (
         INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record,
           captured_minor_units, released)
         VALUES (gen_random_uuid(), $1, gen_random_uuid()::text, '', '', 'SUCCEEDED', '', $2, $6) RETURNING id
       )
       INSERT INTO transaction (account_id, id, payment_id, type, connection_id, connection_identity, status,
         amount_minor_units, currency, capture, check_at, created_at)
       SELECT $1, gen_random_uuid(), id, $3, 'one', 'one', 'SUCCEEDED', 1, 'USD', false, now() + $4::interval, now() - $5::interval FROM made`,
      [account?.id, captured, type, check, age, released],
    );
  }
  const { stdout } = await doctor({});
  expect(stdout).toMatch(/^warning {2}authorizations: 2 have waited .*; the oldest was made 9 days ago/m);
  expect(stdout).toMatch(/^warning {2}outcomes: a payment's outcome has been unknown for 60 minutes/m);
  expect(stdout).toMatch(/^warning {2}notifications: a provider's notification has waited for 60 minutes/m);
  expect(stdout).toMatch(/^warning {2}webhooks: 1 have deliveries that are 10 minutes late/m);
  expect(stdout).toMatch(/^warning {2}webhooks: 1 have accepted nothing for an hour, 0 were turned off/m);
  await tables.query('TRUNCATE webhook, delivery, payment, transaction, notification');
});

it('the doctor reports a problem with a pooler, and continues with the database itself', async () => {
  const pooler = await startTransactionPooler(database.url);
  const { code, stdout } = await doctor({ DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: database.url });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^FAILED {3}pooler: .*ALTER ROLE/m);
  expect(stdout).toMatch(/^ok {7}schema: up to date$/m);
  expect((await doctor({ DATABASE_URL: pooler.url })).stdout).toMatch(
    /^FAILED {3}database: .*DATABASE_DIRECT_URL/m,
  );
  await pooler.close();
});
