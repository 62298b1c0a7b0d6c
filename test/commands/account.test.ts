import { createHash, randomUUID } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import pg from 'pg';
import { expect, it, vi } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { cardPayment, walletPayment } from '../support/payment-requests.ts';
import {
  type Ended,
  ownDataDir,
  runCommand,
  type ServiceProcess,
  startService,
} from '../support/service-process.ts';

const DATA_DIR = ownDataDir();
const NOT_A_DISPLAY_NAME = '"display-name" is 1 to 100 characters';
const UNKNOWN = '00000000-0000-4000-8000-000000000000';
/** Time for which the service may still accept a revoked key from its cache, with a margin. */
const FORGETTING = { timeout: 15_000, interval: 250 };

it('the account command creates and revokes keys while the service runs, and the service follows', async () => {
  const service = await startService({ DATA_DIR });
  const created = await account('create', '--name', 'Shop');
  const id = shown(created, 'account id');
  const first = { publicKey: shown(created, 'public key'), secret: shown(created, 'secret') };
  expect(await pay(service, id, first)).toBe(201);
  expect(await pay(service, id, { ...first, secret: 'sk_guess' })).toBe(401);

  const second = {
    publicKey: shown(await account('add-public-key', id), 'public key'),
    secret: shown(await account('add-secret', id), 'secret'),
  };
  const publicOnly = { publicKey: second.publicKey };
  expect([await pay(service, id, second), await pay(service, id, publicOnly)]).toEqual([201, 201]);
  // Either secret works with either public key.
  expect(await pay(service, id, { ...first, secret: second.secret })).toBe(201);

  expect(await account('revoke-secret', shown(created, 'secret id'))).toBe('revoked\n');
  expect(await account('revoke-public-key', first.publicKey)).toBe('revoked\n');
  expect(await account('secret-always', id, 'on')).toBe('secret-always on\n');
  await vi.waitFor(async () => {
    expect(await pay(service, id, { ...first, secret: second.secret }), 'revoked public key').toBe(401);
    expect(await pay(service, id, { ...second, secret: first.secret }), 'revoked secret').toBe(401);
    expect(await pay(service, id, publicOnly), 'no secret').toBe(401);
  }, FORGETTING);
  expect(await pay(service, id, second)).toBe(201);

  service.child.kill('SIGTERM');
  expect((await service.ended).code).toBe(0);
  // Without the service, the command starts the database itself, and stops it.
  expect(await account('list')).toContain(`${id}  `);
  const keys = await account('keys', id);
  expect(keys.split('\n').filter((line) => line.includes(' revoked '))).toHaveLength(2);
  expect(keys.trim().split('\n')).toHaveLength(4);
  expect(keys).not.toContain('sk_');
});

it('the account command creates the schema in the database of DATABASE_URL and stores only the hash of a secret', async () => {
  const database = await createTestDatabase({ empty: true });
  const run = async (...args: string[]) => (await runAccount({ DATABASE_URL: database.url }, ...args)).stdout;
  expect(await run('list')).toBe('\n');
  const created = await run('create', '--name', 'Läden & Söhne', '--secret-always');
  const [line, ...others] = (await run('list')).trim().split('\n');
  expect(others).toEqual([]);
  expect(line).toMatch(/ secret always .* Läden & Söhne$/);
  const secret = shown(created, 'secret');
  const id = shown(created, 'account id');
  expect(await run('authorizations', id, 'authorized')).toBe('authorizations authorized\n');
  expect(await run('list')).toMatch(/ secret always, authorizations authorized .* Läden & Söhne$/m);
  expect(await run('authorizations', id, 'shown')).toBe('authorizations shown\n');
  const origins = 'https://shop.example,http://localhost:3000';
  expect(await run('origins', id, origins)).toBe(`origins ${origins}\n`);
  expect(await run('list')).toMatch(
    / secret always, origins https:\/\/shop.example http:\/\/localhost:3000 /m,
  );
  expect(await run('origins', id, 'none')).toBe('origins none\n');
  expect(await run('display-name', id, 'Läden')).toBe('display-name Läden\n');
  expect(await run('list')).toMatch(/ secret always, display name Läden .* Läden & Söhne$/m);
  expect(await run('display-name', id, 'none')).toBe('display-name none\n');
  expect((await run('list')).trim()).toBe(line);
  expect(secret).toMatch(/^sk_[0-9a-f]{64}$/);
  expect(shown(created, 'public key')).toMatch(/^pk_[0-9a-f]{32}$/);

  const client = new pg.Client(database.url);
  await client.connect();
  const { rows } = await client.query('SELECT id, secret_hash FROM secret_key');
  await client.end();
  expect(rows).toEqual([
    { id: shown(created, 'secret id'), secret_hash: createHash('sha256').update(secret).digest() },
  ]);
  await database.drop();
});

it('the account command makes keys with the requested environment in their prefix, and the service accepts them', async () => {
  const service = await startService({ DATA_DIR });
  const created = await account('create', '--name', 'Shop', '--environment', 'sandbox');
  const id = shown(created, 'account id');
  const keys = { publicKey: shown(created, 'public key'), secret: shown(created, 'secret') };
  expect(keys.publicKey).toMatch(/^sandbox_pk_[0-9a-f]{32}$/);
  expect(keys.secret).toMatch(/^sandbox_sk_[0-9a-f]{64}$/);
  const production = shown(await account('add-public-key', id, '--environment', 'prod'), 'public key');
  expect(production).toMatch(/^prod_pk_[0-9a-f]{32}$/);
  const secret = shown(await account('add-secret', id, '--environment', 'prod'), 'secret');
  expect(secret).toMatch(/^prod_sk_[0-9a-f]{64}$/);
  expect(await pay(service, id, keys)).toBe(201);
  expect(await pay(service, id, { publicKey: production, secret })).toBe(201);
});

it('every account command is in the audit log with its actor and its change, but no secret', async () => {
  const database = await createTestDatabase();
  const run = async (...args: string[]) =>
    (await runAccount({ DATABASE_URL: database.url, ACTOR: 'Alice Jones' }, ...args)).stdout;
  const created = await run('create', '--name', 'Shop');
  const id = shown(created, 'account id');
  const publicKey = shown(await run('add-public-key', id), 'public key');
  const secret = shown(created, 'secret');
  const secretId = shown(created, 'secret id');
  for (const args of [
    ['revoke-public-key', publicKey],
    ['revoke-secret', secretId],
    ['revoke-secret', secretId],
    ['secret-always', id, 'on'],
    ['authorizations', id, 'authorized'],
    ['display-name', id, 'Our shop'],
    ['keys', id],
    ['list'],
    ['audit', id],
  ]) {
    await run(...args);
  }
  const log = await run('audit', id);
  expect(log).not.toContain(secret);
  const columns = log
    .trim()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
  const who = `Alice Jones (${userInfo().username}@${hostname()})`;
  // The second revocation of a secret changed nothing, so it is not recorded.
  expect(columns.map(([, ...others]) => others)).toEqual([
    [who, 'create', `public key ${shown(created, 'public key')}, secret id ${secretId}`],
    [who, 'add-public-key', publicKey],
    [who, 'revoke-public-key', publicKey],
    [who, 'revoke-secret', secretId],
    [who, 'secret-always', 'on'],
    [who, 'authorizations', 'authorized'],
    [who, 'display-name', 'Our shop'],
    [who, 'keys'],
    [who, 'audit'],
  ]);
  const times = columns.map(([time = '']) => time);
  expect(times.every((time) => !Number.isNaN(Date.parse(time)))).toBe(true);
  expect(times).toEqual([...times].sort());
  expect(await run('audit', 'installation')).toMatch(/^\S+ {2}Alice Jones \(.+\) {2}list\n$/);
  await database.drop();
});

it('the account command makes no change that it cannot write to the audit log', async () => {
  const database = await createTestDatabase();
  const environment = { DATABASE_URL: database.url };
  const id = shown((await runAccount(environment, 'create', '--name', 'Shop')).stdout, 'account id');
  const client = new pg.Client(database.url);
  await client.connect();
  await client.query("ALTER TABLE audit_log ADD CHECK (action <> 'add-secret')");
  const { code } = await runAccount(environment, 'add-secret', id);
  const { rows } = await client.query('SELECT id FROM secret_key WHERE account_id = $1', [id]);
  await client.end();
  expect([code, rows.length]).toEqual([1, 1]);
  await database.drop();
});

it.each([
  ['no command', [], 'A command is needed.'],
  ['an unknown command', ['delete'], 'There is no command "delete".'],
  ['the name of a property of every object', ['constructor'], 'There is no command "constructor".'],
  ['no name', ['create'], '--name is needed: 1 to 255 characters.'],
  ['a name with a line break', ['create', '--name', 'a\nb'], '--name is needed: 1 to 255 characters.'],
  ['an unknown option', ['create', '--nom', 'a'], "Unknown option '--nom'"],
  ['an option of another command', ['list', '--name', 'a'], '"list" takes no --name.'],
  [
    'an environment that is not a word',
    ['create', '--name', 'a', '--environment', 'a_b'],
    '--environment is a word such as sandbox or prod:',
  ],
  ['an environment for a command that makes no key', ['list', '--environment', 'prod'], '"list" takes no --'],
  ['an audit log of something that is not an id', ['audit', 'shop'], '"shop" is not an id; ids are UUIDs.'],
  ['no account', ['keys'], '"keys" takes <account id>.'],
  ['an id that is not a UUID', ['keys', 'shop'], '"shop" is not an id; ids are UUIDs.'],
  ['a value other than on or off', ['secret-always', UNKNOWN, 'yes'], '"secret-always" is on or off.'],
  [
    'an origin with a path',
    ['origins', UNKNOWN, 'https://shop.example/'],
    '"origins" takes up to 100 origins',
  ],
  [
    'a host in place of an origin',
    ['origins', UNKNOWN, 'https://a.example,b.example'],
    '"origins" takes up to 100',
  ],
  ['a display name with a line break', ['display-name', UNKNOWN, 'a\nb'], NOT_A_DISPLAY_NAME],
  ['a display name that turns text round', ['display-name', UNKNOWN, 'a\u202eb'], NOT_A_DISPLAY_NAME],
  ['a display name of spaces', ['display-name', UNKNOWN, '  '], NOT_A_DISPLAY_NAME],
  ['a display name that is too long', ['display-name', UNKNOWN, 'a'.repeat(101)], NOT_A_DISPLAY_NAME],
  ['a wildcard in place of an origin', ['origins', UNKNOWN, '*'], '"origins" takes up to 100 origins'],
  [
    'an unknown way to show authorizations',
    ['authorizations', UNKNOWN, 'on'],
    '"authorizations" is shown or authorized.',
  ],
  ['one operand too many', ['keys', UNKNOWN, UNKNOWN], '"keys" takes <account id>.'],
])(
  'the account command refuses %s with its usage and exit code 2, before it opens a database',
  async (_what, args, message) => {
    const { code, stdout, stderr } = await runAccount(
      { DATABASE_URL: 'postgres://a@127.0.0.1:1/b' },
      ...args,
    );
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr.startsWith(message), stderr).toBe(true);
    expect(stderr).toContain('\n\nUsage: npm run account -- <command>\n');
  },
);

it('the account command says what does not exist, with exit code 1', async () => {
  const database = await createTestDatabase();
  const refusals = [
    [['keys', UNKNOWN], `There is no account ${UNKNOWN}.`],
    [['audit', UNKNOWN], `There is no account ${UNKNOWN}.`],
    [['add-secret', UNKNOWN], `There is no account ${UNKNOWN}.`],
    [['add-public-key', UNKNOWN], `There is no account ${UNKNOWN}.`],
    [['secret-always', UNKNOWN, 'on'], `There is no account ${UNKNOWN}.`],
    [['authorizations', UNKNOWN, 'shown'], `There is no account ${UNKNOWN}.`],
    [['revoke-secret', UNKNOWN], 'There is no such secret, or it is revoked already.'],
    [['revoke-public-key', 'pk_none'], 'There is no such public key, or it is revoked already.'],
  ] as const;
  for (const [args, message] of refusals) {
    const { code, stdout, stderr } = await runAccount({ DATABASE_URL: database.url }, ...args);
    expect([code, stdout, stderr], args.join(' ')).toEqual([1, '', `${message}\n`]);
  }
  await database.drop();
});

it('the account command says that the database cannot be reached, without its password and with exit code 1', async () => {
  const { code, stderr } = await runAccount({ DATABASE_URL: 'postgres://a:secret@127.0.0.1:1/b' }, 'list');
  expect(code).toBe(1);
  expect(stderr).toBe(
    'Not done: no connection to the database: connect ECONNREFUSED 127.0.0.1:1 (see DATABASE_URL)\n',
  );
});

it('the account command prints its usage for --help', async () => {
  const { code, stdout, stderr } = await runAccount({}, '--help');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^Usage: npm run account/);
});

function runAccount(environment: Readonly<Record<string, string>>, ...args: string[]): Promise<Ended> {
  return runCommand('account', environment, ...args);
}

/** Returns the output of a command on the service's own database, which has to succeed. */
async function account(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runAccount({ DATA_DIR }, ...args);
  expect([code, stderr], args.join(' ')).toEqual([0, '']);
  return stdout;
}

/** Returns the value after a name in a command's output. */
function shown(output: string, name: string): string {
  return new RegExp(`^${name} +(\\S+)$`, 'm').exec(output)?.[1] ?? '';
}

/** Pays with an account's keys: by card, or without a secret by a wallet that redirects. @returns the HTTP status. */
async function pay(
  service: ServiceProcess,
  accountId: string,
  keys: { publicKey: string; secret?: string },
): Promise<number> {
  const { publicKey, secret } = keys;
  const request = secret === undefined ? walletPayment() : cardPayment();
  const response = await fetch(`${service.url}/v1/payments`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      connection: 'close',
      'x-idempotency-key': randomUUID(),
      'public-api-key': publicKey,
      ...(secret !== undefined && { 'private-secret-key': secret }),
    },
    body: JSON.stringify({ ...request, account_id: accountId }),
  });
  await response.arrayBuffer();
  return response.status;
}
