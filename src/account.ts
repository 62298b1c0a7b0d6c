import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { CHECKOUT_DIR, readDataConfig } from './config.ts';
import { explainFailure } from './explain-failure.ts';
import {
  type Account,
  createAccount,
  findAccount,
  insertPublicKey,
  insertSecretKey,
  type KeyListing,
  listAccounts,
  listKeys,
  revokeKey,
  setSecretAlways,
} from './store/accounts.ts';
import { resolveDataDir } from './store/data-dir.ts';
import { type Database, openDatabase } from './store/database.ts';
import { runningEmbeddedPostgres, startEmbeddedPostgres } from './store/embedded-postgres.ts';
import { migrate } from './store/migrate.ts';

const USAGE = `Usage: npm run account -- <command>

  create --name <name> [--secret-always]    makes an account with a public key and a secret
  list                                      lists the accounts
  keys <account id>                         lists an account's keys
  add-public-key <account id>               gives an account one more public key
  add-secret <account id>                   gives an account one more secret
  revoke-public-key <public key>            ends a public key
  revoke-secret <secret id>                 ends a secret, by the id that "keys" shows
  secret-always <account id> on|off         demands the secret of every call, or not

A secret is shown once, when it is made: only its hash is stored. A revoked key is taken for 5 more seconds at most.
Works on the database that DATABASE_URL names, else on the service's own (DATA_DIR), whether the service runs or not.`;

/** The command line is not one of those in the usage. */
class UsageError extends Error {}

/** What the command line names is not there. */
class NotFoundError extends Error {}

/** A command line, split. */
type Arguments = { readonly operands: readonly string[]; readonly options: Options };
type Options = { readonly name?: string | undefined; readonly 'secret-always'?: boolean | undefined };

/** Does what a command says. @returns what is printed. */
type Command = (database: Database, operands: readonly string[], options: Options) => Promise<string>;

/** By name: what a command has to be given, and what it does. */
const COMMANDS: Readonly<Record<string, { operands: readonly string[]; run: Command }>> = {
  create: { operands: [], run: create },
  list: { operands: [], run: async (database) => table((await listAccounts(database)).map(accountRow)) },
  keys: { operands: ['<account id>'], run: keys },
  'add-public-key': { operands: ['<account id>'], run: addPublicKey },
  'add-secret': { operands: ['<account id>'], run: addSecret },
  'revoke-public-key': { operands: ['<public key>'], run: (database, [key = '']) => revoke(database, 'public', key) },
  'revoke-secret': {
    operands: ['<secret id>'],
    run: (database, [id = '']) => revoke(database, 'secret', asId(id, 'secret')),
  },
  'secret-always': { operands: ['<account id>', 'on|off'], run: demandSecret },
};

async function main(): Promise<void> {
  const [name, ...rest] = process.argv.slice(2);
  if (name === undefined) throw new UsageError('A command is needed.');
  if (['help', '--help', '-h'].includes(name)) {
    console.log(USAGE);
    return;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw new UsageError(`There is no command "${name}".`);
  const { operands, options } = readArguments(name, rest);
  if (operands.length !== command.operands.length) {
    throw new UsageError(`"${name}" takes ${command.operands.join(' ') || 'no operands'}.`);
  }
  console.log(await withDatabase((database) => command.run(database, operands, options)));
}

function readArguments(name: string, args: string[]): Arguments {
  let parsed: { positionals: string[]; values: Options };
  try {
    parsed = parseArgs({ args, allowPositionals: true, options: CREATE_OPTIONS });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const [option] = name === 'create' ? [] : Object.keys(parsed.values);
  if (option) throw new UsageError(`"${name}" takes no --${option}.`);
  return { operands: parsed.positionals, options: parsed.values };
}

const CREATE_OPTIONS = { name: { type: 'string' }, 'secret-always': { type: 'boolean' } } as const;

/** Opens the database, brought up to date; the service's own is started when the service does not run. */
async function withDatabase<T>(work: (database: Database) => Promise<T>): Promise<T> {
  const { databaseUrl, dataDir: explicit } = readDataConfig();
  const log = pino({ level: 'error' }, pino.destination(2));
  const dataDir = databaseUrl ? '' : resolveDataDir({ explicit, checkoutDir: CHECKOUT_DIR });
  const url = databaseUrl ?? runningEmbeddedPostgres(dataDir);
  const started = url ? undefined : await startEmbeddedPostgres({ dataDir, log });
  const database = openDatabase({ url: url ?? started?.url ?? '', maxConnections: 1, log });
  try {
    await migrate(database, join(import.meta.dirname, 'store/migrations'));
    return await work(database);
  } finally {
    await database.close();
    await started?.stop();
  }
}

const NAME = /^[^\p{Cc}]{1,255}$/u;

async function create(database: Database, _operands: readonly string[], options: Options): Promise<string> {
  const { name = '' } = options;
  if (!NAME.test(name)) throw new UsageError('--name is needed: 1 to 255 characters.');
  const account = { id: randomUUID(), name, secretAlways: options['secret-always'] ?? false };
  const publicKey = newPublicKey();
  const { id, secret, hash } = newSecret();
  await createAccount(database, account, { publicKey, secretId: id, secretHash: hash });
  return [
    `account id   ${account.id}`,
    `public key   ${publicKey}`,
    `secret       ${secret}`,
    `secret id    ${id}`,
    SHOWN_ONCE,
  ].join('\n');
}

const SHOWN_ONCE = '\nKeep the secret now: it is not shown again, and cannot be had from the database.';

async function keys(database: Database, [id = '']: readonly string[]): Promise<string> {
  const account = await requireAccount(database, id);
  const { publicKeys, secrets } = await listKeys(database, account.id);
  return table([
    ...publicKeys.map((key) => keyRow('public key', key)),
    ...secrets.map((key) => keyRow('secret id', key)),
  ]);
}

async function addPublicKey(database: Database, [id = '']: readonly string[]): Promise<string> {
  const account = await requireAccount(database, id);
  const publicKey = newPublicKey();
  await insertPublicKey(database, publicKey, account.id);
  return `public key   ${publicKey}`;
}

async function addSecret(database: Database, [id = '']: readonly string[]): Promise<string> {
  const account = await requireAccount(database, id);
  const { id: secretId, secret, hash } = newSecret();
  await insertSecretKey(database, { id: secretId, accountId: account.id, hash });
  return `secret       ${secret}\nsecret id    ${secretId}\n${SHOWN_ONCE}`;
}

async function revoke(database: Database, kind: 'public' | 'secret', id: string): Promise<string> {
  if (await revokeKey(database, kind, id)) return 'revoked';
  throw new NotFoundError(
    `There is no such ${kind === 'public' ? 'public key' : 'secret'}, or it is revoked already.`,
  );
}

async function demandSecret(database: Database, [id = '', value = '']: readonly string[]): Promise<string> {
  if (value !== 'on' && value !== 'off') throw new UsageError('"secret-always" is on or off.');
  const account = await requireAccount(database, id);
  await setSecretAlways(database, account.id, value === 'on');
  return `secret-always ${value}`;
}

async function requireAccount(database: Database, id: string): Promise<Account> {
  const account = await findAccount(database, asId(id, 'account'));
  if (!account) throw new NotFoundError(`There is no account ${id}.`);
  return account;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function asId(text: string, what: string): string {
  if (!UUID.test(text)) throw new UsageError(`"${text}" is no ${what} id.`);
  return text;
}

const PUBLIC_KEY_BYTES = 16;
const SECRET_BYTES = 32;

function newPublicKey(): string {
  return `pk_${randomBytes(PUBLIC_KEY_BYTES).toString('hex')}`;
}

function newSecret(): { id: string; secret: string; hash: Uint8Array } {
  const secret = `sk_${randomBytes(SECRET_BYTES).toString('hex')}`;
  return { id: randomUUID(), secret, hash: createHash('sha256').update(secret).digest() };
}

function accountRow(account: Account): string[] {
  return [
    account.id,
    account.secretAlways ? 'secret always' : '',
    account.createdAt.toISOString(),
    account.name,
  ];
}

function keyRow(kind: string, { id, createdAt, revokedAt }: KeyListing): string[] {
  const state = revokedAt ? `revoked ${revokedAt.toISOString()}` : '';
  return [kind, id, `created ${createdAt.toISOString()}`, state];
}

/** Rows in columns. */
function table(rows: readonly string[][]): string {
  const widths = rows[0]?.map((_cell, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

try {
  await main();
} catch (error) {
  if (error instanceof UsageError) console.error(`${error.message}\n\n${USAGE}`);
  else console.error(error instanceof NotFoundError ? error.message : `Not done: ${explainFailure(error)}`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
