import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from './support/database.ts';
import { endAfterEach, runService, startService } from './support/service-process.ts';
import { startTransactionPooler } from './support/transaction-pooler.ts';

const key = () => randomBytes(32).toString('base64');
let database: TestDatabase;
/** A database that every test may use: its commits do not wait for the disk. */
let onDatabase: Record<string, string>;

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  onDatabase = { DATABASE_URL: database.url, VAULT_KEYS: `one:${key()}`, HASH_KEY: key() };
});
afterAll(() => database?.drop());
endAfterEach();

it.each([
  ['PORT', { PORT: 'abc' }, 'PORT must be an integer from 0 to 65535'],
  [
    'missing keys',
    { DATABASE_URL: 'postgres://a@127.0.0.1:1/b' },
    'VAULT_KEYS is required with DATABASE_URL; HASH_KEY is required with DATABASE_URL',
  ],
  [
    'a catalogue that is not there',
    { CATALOGUE_FILE: '/no/catalogue.yaml' },
    'the catalogue (CATALOGUE_FILE): /no/catalogue.yaml cannot be read (ENOENT)',
  ],
  [
    'a catalogue that is none',
    { CATALOGUE_FILE: 'package.json' },
    expect.stringMatching(/^the catalogue \(CATALOGUE_FILE\): package\.json: name: is not a known field; /),
  ],
])('names what is wrong with %s, and ends with 1', async (_what, environment, problem) => {
  expect(await refusal(environment)).toEqual(problem);
});

it('names a data directory that no one can create, and ends with 1', async () => {
  const { code, stderr } = await runService({ DATA_DIR: '/proc/x' });
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^Cannot start: The data directory \/proc\/x cannot be used: .* Set DATA_DIR to /),
  ]);
});

it('says that the database cannot be reached', async () => {
  const nobody = { ...onDatabase, DATABASE_URL: 'postgres://a:secret@127.0.0.1:1/b' };
  expect(await refusal(nobody)).toBe(
    'cannot connect to the database: connect ECONNREFUSED 127.0.0.1:1 (see DATABASE_URL)',
  );
});

it('says that the database is read-only, and what to name instead', async () => {
  const readOnly = `${onDatabase.DATABASE_URL}?options=-c%20default_transaction_read_only%3Don`;
  const unsafe = { ALLOW_UNSAFE_DATABASE: 'on' };
  const { code, stderr } = await runService({ ...onDatabase, ...unsafe, DATABASE_URL: readOnly });
  expect([code, stderr.trim()]).toEqual([
    1,
    'Cannot start: the database is read-only. Point DATABASE_URL to the primary',
  ]);
});

it('refuses a database whose commits a crash can undo, unless told to take it', async () => {
  expect(await refusal(onDatabase)).toMatch(
    /^the database acknowledges commits that a crash can undo.*: fsync, .* off\. .*ALLOW_UNSAFE_DATABASE=on$/,
  );
  const service = await startService({ ...onDatabase, ALLOW_UNSAFE_DATABASE: 'on' });
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  service.child.kill('SIGTERM');
  const { code, stderr } = await service.ended;
  expect(code).toBe(0);
  expect(stderr).toContain('Data: the database at DATABASE_URL\n');
  expect(stderr).not.toContain('sk_sandbox_one');
});

it('says that a catalogue of one’s own is needed without the sandbox, whose connections the default one has', async () => {
  const withoutSandbox = { ...onDatabase, ALLOW_UNSAFE_DATABASE: 'on', SANDBOX: 'off', LOG_LEVEL: 'silent' };
  expect(await refusal(withoutSandbox)).toBe(
    'the catalogue (CATALOGUE_FILE): connection sandbox-one: belongs to the mounted sandbox, and SANDBOX is off; set CATALOGUE_FILE to a catalogue of your own',
  );
});

it('refuses another hash key than the database was used with, before it serves anything', async () => {
  const environment = { ...onDatabase, ALLOW_UNSAFE_DATABASE: 'on' };
  const service = await startService(environment);
  service.child.kill('SIGTERM');
  expect((await service.ended).code).toBe(0);
  expect(await refusal({ ...environment, HASH_KEY: key() })).toMatch(
    /^HASH_KEY .* is not the key with which this database has been used/,
  );
});

it('refuses a pooler that it was not told of, and one through which statements have no time limit', async () => {
  const pooler = await startTransactionPooler(database.url);
  const through = { ...onDatabase, ALLOW_UNSAFE_DATABASE: 'on', DATABASE_URL: pooler.url };
  expect(await refusal(through)).toMatch(/^a connection pooler .* DATABASE_DIRECT_URL/);
  expect(await refusal({ ...through, DATABASE_DIRECT_URL: pooler.url })).toMatch(/^a connection pooler /);
  expect(await refusal({ ...through, DATABASE_DIRECT_URL: database.url })).toMatch(
    /^for the pooler .* ALTER ROLE/,
  );
  await pooler.close();
});

it('says which port is in use', async () => {
  const other = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as net.AddressInfo;
  const environment = { ...onDatabase, ALLOW_UNSAFE_DATABASE: 'on', PORT: String(port) };
  expect(await refusal(environment)).toBe(
    `port ${port} of 127.0.0.1 is in use by another process. Set PORT to a free one`,
  );
  other.close();
});

it('says that the host is none of this machine', async () => {
  const environment = { ...onDatabase, ALLOW_UNSAFE_DATABASE: 'on', HOST: '192.0.2.1' };
  expect(await refusal(environment)).toBe('HOST is not an address of this machine');
});

/** Returns what the service prints when it does not start: one line, and nothing else. */
async function refusal(environment: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await runService(environment);
  expect([code, stdout]).toEqual([1, '']);
  const [, said] = /^Cannot start: (.*)\n$/.exec(stderr) ?? [];
  expect(said, stderr).toBeDefined();
  return said ?? '';
}

it('waits at its start for a database that takes seconds to wake up', async () => {
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
