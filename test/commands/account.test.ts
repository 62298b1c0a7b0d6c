import { createHash } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import pg from 'pg';
import { expect, it } from 'vitest';
import { run as account } from '#src/commands/account.ts';
import { createTestDatabase } from '../support/database.ts';
import { type Ran, runCommand } from '../support/run-command.ts';

const NOT_A_DISPLAY_NAME = '"display-name" must have 1 to 100 visible characters';
const UNKNOWN = '00000000-0000-4000-8000-000000000000';

it('the account command creates the schema in DATABASE_URL and stores only the hash of a secret', async () => {
  const database = await createTestDatabase({ empty: true });
  const run = async (...args: string[]) => (await runAccount({ DATABASE_URL: database.url }, ...args)).stdout;
  expect(await run('list')).toBe('\n');
  const created = await run('create', '--name', 'Läden & Söhne', '--public-key-may', 'NOTHING');
  const [line, ...others] = (await run('list')).trim().split('\n');
  expect(others).toEqual([]);
  expect(line).toMatch(/ public key may NOTHING .* Läden & Söhne$/);
  const secret = shown(created, 'secret');
  const id = shown(created, 'account id');
  expect(await run('authorizations', id, 'authorized')).toBe('authorizations authorized\n');
  expect(await run('list')).toMatch(/ public key may NOTHING, authorizations authorized .* Läden & Söhne$/m);
  expect(await run('authorizations', id, 'shown')).toBe('authorizations shown\n');
  const origins = 'https://shop.example,http://localhost:3000';
  expect(await run('origins', id, origins)).toBe(`origins ${origins}\n`);
  expect(await run('list')).toMatch(
    / public key may NOTHING, origins https:\/\/shop.example http:\/\/localhost:3000 /m,
  );
  expect(await run('origins', id, 'none')).toBe('origins none\n');
  expect(await run('display-name', id, 'Läden')).toBe('display-name Läden\n');
  expect(await run('list')).toMatch(/ public key may NOTHING, display name Läden .* Läden & Söhne$/m);
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

it('every account command is recorded in the audit log with its actor and its change, but no secret', async () => {
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
    ['public-key-may', id, 'PAYMENTS'],
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
    [who, 'public-key-may', 'PAYMENTS'],
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

it('an account command makes no change that it cannot record in the audit log', async () => {
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
  ['no command', [], 'Missing command.'],
  ['an unknown command', ['delete'], 'Unknown command "delete".'],
  ['the name of a property of every object', ['constructor'], 'Unknown command "constructor".'],
  ['no name', ['create'], '--name is required: 1 to 255 characters.'],
  ['a name with a line break', ['create', '--name', 'a\nb'], '--name is required: 1 to 255 characters.'],
  ['an unknown option', ['create', '--nom', 'a'], "Unknown option '--nom'"],
  ['an option of another command', ['list', '--name', 'a'], '"list" takes no --name.'],
  [
    'an environment that is not a word',
    ['create', '--name', 'a', '--environment', 'a_b'],
    '--environment must be a word such as sandbox or prod:',
  ],
  [
    'an environment for a command that creates no key',
    ['list', '--environment', 'prod'],
    '"list" takes no --',
  ],
  ['an audit log for something that is not an id', ['audit', 'shop'], '"shop" is not an id: ids are UUIDs.'],
  ['no account', ['keys'], '"keys" takes <account id>.'],
  ['an id that is not a UUID', ['keys', 'shop'], '"shop" is not an id: ids are UUIDs.'],
  [
    'an unknown permission of the public key',
    ['public-key-may', UNKNOWN, 'ALL'],
    '"public-key-may" must be NOTHING, SESSIONS, PAYMENTS.',
  ],
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
  [
    'a display name that reverses the direction of text',
    ['display-name', UNKNOWN, 'a\u202eb'],
    NOT_A_DISPLAY_NAME,
  ],
  ['a display name that consists of spaces', ['display-name', UNKNOWN, '  '], NOT_A_DISPLAY_NAME],
  ['a display name that is too long', ['display-name', UNKNOWN, 'a'.repeat(101)], NOT_A_DISPLAY_NAME],
  ['a wildcard in place of an origin', ['origins', UNKNOWN, '*'], '"origins" takes up to 100 origins'],
  [
    'an unknown way to show authorizations',
    ['authorizations', UNKNOWN, 'on'],
    '"authorizations" must be "shown" or "authorized".',
  ],
  ['one operand too many', ['keys', UNKNOWN, UNKNOWN], '"keys" takes <account id>.'],
])(
  'the account command refuses %s with a usage message and exit code 2, without opening a database',
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

it('the account command names a missing account or key and exits with 1', async () => {
  const database = await createTestDatabase();
  const refusals = [
    [['keys', UNKNOWN], `No account ${UNKNOWN}.`],
    [['audit', UNKNOWN], `No account ${UNKNOWN}.`],
    [['add-secret', UNKNOWN], `No account ${UNKNOWN}.`],
    [['add-public-key', UNKNOWN], `No account ${UNKNOWN}.`],
    [['public-key-may', UNKNOWN, 'NOTHING'], `No account ${UNKNOWN}.`],
    [['authorizations', UNKNOWN, 'shown'], `No account ${UNKNOWN}.`],
    [['revoke-secret', UNKNOWN], 'No such secret, or it is already revoked.'],
    [['revoke-public-key', 'pk_none'], 'No such public key, or it is already revoked.'],
  ] as const;
  for (const [args, message] of refusals) {
    const { code, stdout, stderr } = await runAccount({ DATABASE_URL: database.url }, ...args);
    expect([code, stdout, stderr], args.join(' ')).toEqual([1, '', `${message}\n`]);
  }
  await database.drop();
});

it('the account command reports an unreachable database without its password and exits with 1', async () => {
  const { code, stderr } = await runAccount({ DATABASE_URL: 'postgres://a:secret@127.0.0.1:1/b' }, 'list');
  expect(code).toBe(1);
  expect(stderr).toBe(
    'Not done: cannot connect to the database: connect ECONNREFUSED 127.0.0.1:1 (see DATABASE_URL)\n',
  );
});

it('the account command prints its usage for --help', async () => {
  const { code, stdout, stderr } = await runAccount({}, '--help');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^Usage: npm run account/);
});

function runAccount(environment: Readonly<Record<string, string>>, ...args: string[]): Promise<Ran> {
  return runCommand(account, environment, ...args);
}

/** Returns the value after a name in a command's output. */
function shown(output: string, name: string): string {
  return new RegExp(`^${name} +(\\S+)$`, 'm').exec(output)?.[1] ?? '';
}
