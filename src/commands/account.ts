import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { readDataConfig } from '#src/config.ts';
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
  setTellsAuthorized,
} from '#src/store/accounts.ts';
import type { Database } from '#src/store/database.ts';
import { withDatabase } from './command-database.ts';
import { explainFailure } from './explain-failure.ts';

const USAGE = `Usage: npm run account -- <command>

  create --name <name> [--secret-always]    makes an account with a public key and a secret
  list                                      lists the accounts
  keys <account id>                         lists an account's keys
  add-public-key <account id>               gives an account one more public key
  add-secret <account id>                   gives an account one more secret
  revoke-public-key <public key>            ends a public key
  revoke-secret <secret id>                 ends a secret, by the id that "keys" shows
  secret-always <account id> on|off         demands the secret of every call, or not
  authorizations <account id> shown|authorized
                                            tells authorizations as the interface shows them (SUCCEEDED, PURCHASE), or as
                                            such (PENDING / AUTHORIZED, AUTHORIZE)

A secret is shown once, when it is made: only its hash is stored. A revoked key is taken for 5 more
seconds at most, and a setting takes effect within as many.
Works on the database that DATABASE_URL names, else on the service's own (DATA_DIR), whether the service runs or not.`;

/** The command line is not one of those in the usage. */
class UsageError extends Error {}

/** Error for an object that the command line names and that does not exist. */
class NotFoundError extends Error {}

/** A command line, split. */
type Arguments = { readonly operands: readonly string[]; readonly options: Options };
type Options = { readonly name?: string | undefined; readonly 'secret-always'?: boolean | undefined };

/** Checks its command line, then does what it says. @returns what is printed. */
type Command = (operands: readonly string[], options: Options) => Work;
type Work = (database: Database) => Promise<string>;

/** By name: what a command has to be given, and what it does. */
const COMMANDS: Readonly<Record<string, { operands: readonly string[]; run: Command }>> = {
  create: { operands: [], run: create },
  list: {
    operands: [],
    run: () => async (database) => table((await listAccounts(database)).map(accountRow)),
  },
  keys: { operands: ['<account id>'], run: keys },
  'add-public-key': { operands: ['<account id>'], run: addPublicKey },
  'add-secret': { operands: ['<account id>'], run: addSecret },
  'revoke-public-key': { operands: ['<public key>'], run: ([key = '']) => revoke('public', key) },
  'revoke-secret': { operands: ['<secret id>'], run: ([id]) => revoke('secret', asId(id)) },
  'secret-always': { operands: ['<account id>', 'on|off'], run: demandSecret },
  authorizations: { operands: ['<account id>', 'shown|authorized'], run: tellAuthorizations },
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
  const work = command.run(operands, options);
  console.log(await withDatabase(readDataConfig(), ({ database }) => work(database)));
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

const NAME = /^[^\p{Cc}]{1,255}$/u;

function create(_operands: readonly string[], options: Options): Work {
  const { name = '', 'secret-always': secretAlways = false } = options;
  if (!NAME.test(name)) throw new UsageError('--name is needed: 1 to 255 characters.');
  return async (database) => {
    const account = { id: randomUUID(), name, secretAlways };
    const publicKey = newPublicKey();
    const { id, secret, hash } = newSecret();
    await createAccount(database, account, { publicKey, secretId: id, secretHash: hash });
    return `account id   ${account.id}\npublic key   ${publicKey}\n${showSecret(secret, id)}`;
  };
}

function keys([id]: readonly string[]): Work {
  return withAccount(id, async (database, account) => {
    const { publicKeys, secrets } = await listKeys(database, account.id);
    return table([
      ...publicKeys.map((key) => keyRow('public key', key)),
      ...secrets.map((key) => keyRow('secret id', key)),
    ]);
  });
}

function addPublicKey([id]: readonly string[]): Work {
  return withAccount(id, async (database, account) => {
    const publicKey = newPublicKey();
    await insertPublicKey(database, publicKey, account.id);
    return `public key   ${publicKey}`;
  });
}

function addSecret([id]: readonly string[]): Work {
  return withAccount(id, async (database, account) => {
    const { id: secretId, secret, hash } = newSecret();
    await insertSecretKey(database, { id: secretId, accountId: account.id, hash });
    return showSecret(secret, secretId);
  });
}

function revoke(kind: 'public' | 'secret', id: string): Work {
  return async (database) => {
    if ((await revokeKey(database, kind, id)) !== undefined) return 'revoked';
    const what = kind === 'public' ? 'public key' : 'secret';
    throw new NotFoundError(`There is no such ${what}, or it is revoked already.`);
  };
}

function demandSecret([id, value]: readonly string[]): Work {
  if (value !== 'on' && value !== 'off') throw new UsageError('"secret-always" is on or off.');
  return withAccount(id, async (database, account) => {
    await setSecretAlways(database, account.id, value === 'on');
    return `secret-always ${value}`;
  });
}

function tellAuthorizations([id, value]: readonly string[]): Work {
  if (value !== 'shown' && value !== 'authorized')
    throw new UsageError('"authorizations" is shown or authorized.');
  return withAccount(id, async (database, account) => {
    await setTellsAuthorized(database, account.id, value === 'authorized');
    return `authorizations ${value}`;
  });
}

function withAccount(
  text: string | undefined,
  work: (database: Database, account: Account) => Promise<string>,
): Work {
  const id = asId(text);
  return async (database) => {
    const account = await findAccount(database, id);
    if (!account) throw new NotFoundError(`There is no account ${id}.`);
    return work(database, account);
  };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function asId(text = ''): string {
  if (!UUID.test(text)) throw new UsageError(`"${text}" is no id: these are UUIDs.`);
  return text;
}

function showSecret(secret: string, id: string): string {
  return `secret       ${secret}\nsecret id    ${id}\n\nKeep the secret now: it is not shown again, and cannot be had from the database.`;
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
  const settings: string[] = [];
  if (account.secretAlways) settings.push('secret always');
  if (account.tellsAuthorized) settings.push('authorizations authorized');
  return [account.id, settings.join(', '), account.createdAt.toISOString(), account.name];
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
