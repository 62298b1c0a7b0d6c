import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from './support/database.ts';
import { endAfterEach, runService, startService } from './support/service-process.ts';
import { startTransactionPooler } from './support/transaction-pooler.ts';

const key = () => randomBytes(32).toString('base64');
let database: TestDatabase;
/** Variables for a database that all tests share. Its commits do not wait for the disk. */
let onDatabase: Record<string, string>;

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  onDatabase = { DATABASE_URL: database.url, VAULT_KEYS: `one:${key()}`, HASH_KEY: key() };
});
afterAll(() => database?.drop());
endAfterEach();

it.each([
  ['an invalid PORT', { PORT: 'abc' }, 'PORT must be an integer from 0 to 65535'],
  [
    'missing keys',
    { DATABASE_URL: 'postgres://a@127.0.0.1:1/b' },
    'VAULT_KEYS is required with DATABASE_URL; HASH_KEY is required with DATABASE_URL',
  ],
  [
    'a missing catalogue',
    { CATALOGUE_FILE: '/no/catalogue.yaml' },
    'the catalogue (CATALOGUE_FILE): /no/catalogue.yaml cannot be read (ENOENT)',
  ],
  [
    'an invalid catalogue',
    { CATALOGUE_FILE: 'package.json' },
    expect.stringMatching(/^the catalogue \(CATALOGUE_FILE\): package\.json: name: is not a known field; /),
  ],
])('with %s, the service names the problem and exits with 1', async (_what, environment, problem) => {
  expect(await refusal(environment)).toEqual(problem);
});

it('with a data directory that cannot be created, the service names the directory and exits with 1', async () => {
  const { code, stderr } = await runService({ DATA_DIR: '/proc/x' });
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^Cannot start: The data directory \/proc\/x cannot be used: .* Set DATA_DIR to /),
  ]);
});

it('the service does not start if the database cannot be reached, and says so', async () => {
  const nobody = { ...onDatabase, DATABASE_URL: 'postgres://a:secret@127.0.0.1:1/b' };
  expect(await refusal(nobody)).toBe(
    'cannot connect to the database: connect ECONNREFUSED 127.0.0.1:1 (see DATABASE_URL)',
  );
});

it('the service does not start if the database is read-only, and says what to set', async () => {
  const readOnly = `${onDatabase.DATABASE_URL}?options=-c%20default_transaction_read_only%3Don`;
  const unsafe = { ALLOW_UNSAFE_DATABASE: 'on' };
  const { code, stderr } = await runService({ ...onDatabase, ...unsafe, DATABASE_URL: readOnly });
  expect([code, stderr.trim()]).toEqual([
    1,
    'Cannot start: the database is read-only. Point DATABASE_URL to the primary',
  ]);
});

it('the service refuses a database whose commits a crash can undo, unless allowed', async () => {
  expect(await refusal(onDatabase)).toMatch(
    /^the database acknowledges commits that a crash can undo.*; these settings are off: fsync, .*\. .*ALLOW_UNSAFE_DATABASE=on$/,
  );
  const service = await startService({ ...onDatabase, ALLOW_UNSAFE_DATABASE: 'on' });
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  service.child.kill('SIGTERM');
  const { code, stderr } = await service.ended;
  expect(code).toBe(0);
  expect(stderr).toContain('Data: the database at DATABASE_URL\n');
  expect(stderr).not.toContain('sk_sandbox_one');
});

it('without the sandbox, the service requires a catalogue other than the default one', async () => {
  const withoutSandbox = { ...onDatabase, ALLOW_UNSAFE_DATABASE: 'on', SANDBOX: 'off', LOG_LEVEL: 'silent' };
  expect(await refusal(withoutSandbox)).toBe(
    'the catalogue (version 1 in the database): connection sandbox-one: belongs to the mounted sandbox, and SANDBOX is off; publish a catalogue of your own (npm run catalogue), or set CATALOGUE_FILE to one',
  );
});

it('the service refuses a hash key other than the one that its database was used with', async () => {
  const environment = { ...onDatabase, ALLOW_UNSAFE_DATABASE: 'on' };
  const service = await startService(environment);
  service.child.kill('SIGTERM');
  expect((await service.ended).code).toBe(0);
  expect(await refusal({ ...environment, HASH_KEY: key() })).toMatch(
    /^HASH_KEY .* is not the key with which this database has been used/,
  );
});

it('the service refuses an undeclared pooler, and a pooler whose role has no statement timeout', async () => {
  const pooler = await startTransactionPooler(database.url);
  const through = { ...onDatabase, ALLOW_UNSAFE_DATABASE: 'on', DATABASE_URL: pooler.url };
  expect(await refusal(through)).toMatch(/^a connection pooler .* DATABASE_DIRECT_URL/);
  expect(await refusal({ ...through, DATABASE_DIRECT_URL: pooler.url })).toMatch(/^a connection pooler /);
  expect(await refusal({ ...through, DATABASE_DIRECT_URL: database.url })).toMatch(
    /^for the pooler .* ALTER ROLE/,
  );
  await pooler.close();
});

it('the service does not start if its port is in use, and names the port', async () => {
  const other = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as net.AddressInfo;
  const environment = { ...onDatabase, ALLOW_UNSAFE_DATABASE: 'on', PORT: String(port) };
  expect(await refusal(environment)).toBe(
    `port ${port} of 127.0.0.1 is in use by another process. Set PORT to a free one`,
  );
  other.close();
});

it('the service does not start if HOST is not an address of this machine', async () => {
  const environment = { ...onDatabase, ALLOW_UNSAFE_DATABASE: 'on', HOST: '192.0.2.1' };
  expect(await refusal(environment)).toBe('HOST is not an address of this machine');
});

/** Runs the service, which must print one line and not start. @returns the reason that it prints. */
async function refusal(environment: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await runService(environment);
  expect([code, stdout]).toEqual([1, '']);
  const [, said] = /^Cannot start: (.*)\n$/.exec(stderr) ?? [];
  expect(said, stderr).toBeDefined();
  return said ?? '';
}

it('the service waits for a database that takes seconds to wake up', async () => {
  const { hostname, port } = new URL(database.url);
  let awakeAtMs: number | undefined;
  const asleep = net.createServer((near) => {
    awakeAtMs ??= performance.now() + 3_000;
    const far = net.connect(Number(port), hostname);
    for (const socket of [near, far]) socket.on('error', () => {});
    setTimeout(() => near.pipe(far).pipe(near), Math.max(0, awakeAtMs - performance.now()));
  });
  asleep.listen(0, '127.0.0.1');
  await once(asleep, 'listening');
  const url = new URL(database.url);
  url.port = String((asleep.address() as net.AddressInfo).port);
  const service = await startService({ ...onDatabase, DATABASE_URL: url.href, ALLOW_UNSAFE_DATABASE: 'on' });
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  service.child.kill('SIGTERM');
  await service.ended;
  asleep.close();
});
