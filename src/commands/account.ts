import { createHash, randomBytes, randomUUIDv7 } from 'node:crypto';
import { readDataConfig } from '#src/config.ts';
import { type Database, type Queries, queriesOf } from '#src/store/engine/database.ts';
import { isSurelyNotCommitted, isUnavailable } from '#src/store/engine/database-error.ts';
import {
  type Account,
  type AccountChange,
  changeAccount,
  findAccount,
  insertAccount,
  insertPublicKey,
  insertSecretKey,
  type KeyListing,
  listAccounts,
  listKeys,
  PUBLIC_KEY_MAY,
  type PublicKeyMay,
  revokeKey,
} from '#src/store/tables/accounts.ts';
import {
  AFTER_ALL_ENTRIES,
  type AuditEntry,
  type AuditedAction,
  INSTALLATION,
  listActions,
  recordAction,
} from '#src/store/tables/audit-log.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { actorOf } from './actor.ts';
import { closeAccount } from './close-account.ts';
import { withDatabase } from './command-database.ts';
import { type CommandIo, createCommand, parseArguments, runAsProcess, UsageError } from './command-line.ts';
import { explainFailure } from './explain-failure.ts';
import { table } from './table.ts';

/** Error for an object that does not exist. */
class NotFoundError extends Error {}

type Options = ReturnType<typeof split>['options'];

/** Checks a command's operands and options. @returns the work, which resolves to the text to print. */
type Command = (operands: readonly string[], options: Options) => Work;
type Work = (session: Session) => Promise<string>;

/** Commands by name, with their operands and options. */
const COMMANDS: Readonly<
  Record<
    string,
    { operands: readonly string[]; options?: readonly string[]; isStepwise?: true; run: Command }
  >
> = {
  create: { operands: [], options: ['name', 'public-key-may', 'environment'], run: create },
  list: { operands: [], run: () => list },
  keys: { operands: ['<account id>'], run: keys },
  audit: { operands: ['<account id>|installation'], run: audit },
  'add-public-key': { operands: ['<account id>'], options: ['environment'], run: addPublicKey },
  'add-secret': { operands: ['<account id>'], options: ['environment'], run: addSecret },
  'revoke-public-key': { operands: ['<public key>'], run: ([key = '']) => revoke('public', key) },
  'revoke-secret': { operands: ['<secret id>'], run: ([id]) => revoke('secret', asId(id)) },
  'close-sandbox': { operands: [], run: () => closeSandbox },
  close: { operands: ['<account id>'], options: ['confirm'], isStepwise: true, run: close },
  'public-key-may': { operands: ['<account id>', PUBLIC_KEY_MAY.join('|')], run: limitPublicKey },
  authorizations: { operands: ['<account id>', 'shown|authorized'], run: tellAuthorizations },
  origins: { operands: ['<account id>', '<origin>,…|none'], run: allowOrigins },
  'display-name': { operands: ['<account id>', '<name>|none'], run: nameForPayers },
};

async function main(argv: readonly string[], io: CommandIo): Promise<number> {
  const [name] = argv;
  if (name === undefined) throw new UsageError('Missing command.');
  if (['help', '--help', '-h'].includes(name)) {
    io.stdout.write(`${USAGE}\n`);
    return 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw new UsageError(`Unknown command "${name}".`);
  const { operands, options } = split(name, argv, io, command.options ?? []);
  if (operands.length !== command.operands.length) {
    throw new UsageError(`"${name}" takes ${command.operands.join(' ') || 'no operands'}.`);
  }
  const work = command.run(operands, options);
  const config = readDataConfig(io.environment);
  const actor = actorOf(config);
  const printed = await withDatabase(config, io, ({ database }) => {
    const within = (queries: Queries) =>
      work({ database, queries, audit: (entry) => recordAction(queries, { ...entry, actor, action: name }) });
    return command.isStepwise ? within(database) : database.transaction((run) => within(queriesOf(run)));
  });
  io.stdout.write(`${printed}\n`);
  return 0;
}

/** Splits a command line into operands and options. */
function split(name: string, argv: readonly string[], io: CommandIo, known: readonly string[]) {
  const config = { args: argv.slice(1), allowPositionals: true, options: OPTIONS };
  const { positionals, values } = parseArguments(argv, config, io.environment);
  const option = Object.keys(values).find((one) => !known.includes(one));
  if (option) throw new UsageError(`"${name}" takes no --${option}.`);
  return { operands: positionals, options: values };
}

const OPTIONS = {
  name: { type: 'string' },
  'public-key-may': { type: 'string' },
  environment: { type: 'string' },
  confirm: { type: 'boolean' },
} as const;

const NAME = /^[^\p{Cc}]{1,255}$/u;

function create(_operands: readonly string[], options: Options): Work {
  const { name = '', 'public-key-may': may = 'SESSIONS' } = options;
  if (!NAME.test(name)) throw new UsageError('--name is required: 1 to 255 characters.');
  const publicKeyMay = asPublicKeyMay('--public-key-may', may);
  const publicKey = newPublicKey(prefixOf(options));
  const { id, secret, hash } = newSecret(prefixOf(options));
  return async ({ queries, audit }) => {
    const accountId = randomUUIDv7();
    await insertAccount(queries, { id: accountId, name, publicKeyMay });
    await insertPublicKey(queries, publicKey, accountId);
    await insertSecretKey(queries, { id, accountId, hash });
    const detail = `public key ${publicKey}, secret id ${id}${publicKeyMay === 'SESSIONS' ? '' : `, public key may ${publicKeyMay}`}`;
    await audit({ accountId, detail });
    return `account id   ${accountId}\npublic key   ${publicKey}\n${showSecret(secret, id)}`;
  };
}

async function list({ queries, audit }: Session): Promise<string> {
  await audit({ accountId: INSTALLATION });
  return table((await listAccounts(queries)).map(accountRow));
}

function keys([id]: readonly string[]): Work {
  return withAccount(id, async ({ queries, audit }, account) => {
    await audit({ accountId: account.id });
    const { publicKeys, secrets } = await listKeys(queries, account.id);
    return table([
      ...publicKeys.map((key) => keyRow('public key', key)),
      ...secrets.map((key) => keyRow('secret id', key)),
    ]);
  });
}

const AUDIT_PAGE = 1_000;

function audit([operand]: readonly string[]): Work {
  const readLog = async ({ queries, audit }: Session, accountId: string) => {
    const entries: AuditEntry[] = [];
    for (;;) {
      const beforeId = entries.at(-1)?.id ?? AFTER_ALL_ENTRIES;
      const page = await listActions(queries, accountId, { beforeId, limit: AUDIT_PAGE });
      if (page.length === 0) break;
      entries.push(...page);
    }
    // Reading the audit log is logged too: the next reader sees this entry.
    await audit({ accountId });
    return table(entries.reverse().map(auditRow));
  };
  if (operand === 'installation') return (session) => readLog(session, INSTALLATION);
  return withAccount(operand, (session, account) => readLog(session, account.id));
}

function addPublicKey([id]: readonly string[], options: Options): Work {
  const publicKey = newPublicKey(prefixOf(options));
  return withAccount(id, async ({ queries, audit }, account) => {
    await insertPublicKey(queries, publicKey, account.id);
    await audit({ accountId: account.id, subject: publicKey });
    return `public key   ${publicKey}`;
  });
}

function addSecret([id]: readonly string[], options: Options): Work {
  const { id: secretId, secret, hash } = newSecret(prefixOf(options));
  return withAccount(id, async ({ queries, audit }, account) => {
    await insertSecretKey(queries, { id: secretId, accountId: account.id, hash });
    await audit({ accountId: account.id, subject: secretId });
    return showSecret(secret, secretId);
  });
}

function revoke(kind: 'public' | 'secret', id: string): Work {
  return async ({ queries, audit }) => {
    const accountId = await revokeKey(queries, kind, id);
    if (accountId !== undefined) {
      await audit({ accountId, subject: id });
      return 'revoked';
    }
    const what = kind === 'public' ? 'public key' : 'secret';
    throw new NotFoundError(`No such ${what}, or it is already revoked.`);
  };
}

function close([id]: readonly string[], { confirm = false }: Options): Work {
  return withAccount(id, ({ database, audit }, account) =>
    closeAccount(database, account, { confirm, audit }),
  );
}

function limitPublicKey([id, value = '']: readonly string[]): Work {
  return change(id, 'public-key-may', value, { publicKeyMay: asPublicKeyMay('"public-key-may"', value) });
}

function asPublicKeyMay(what: string, value: string): PublicKeyMay {
  const known = PUBLIC_KEY_MAY.find((one) => one === value);
  if (known === undefined) throw new UsageError(`${what} must be ${PUBLIC_KEY_MAY.join(', ')}.`);
  return known;
}

function tellAuthorizations([id, value]: readonly string[]): Work {
  if (value !== 'shown' && value !== 'authorized')
    throw new UsageError('"authorizations" must be "shown" or "authorized".');
  return change(id, 'authorizations', value, { tellsAuthorized: value === 'authorized' });
}

/**
 * Sets the account's allowed origins, which must be spelled as browsers send them: scheme, host and port in lower case,
 * without a path (RFC 6454).
 */
function allowOrigins([id, list = '']: readonly string[]): Work {
  const origins = list === 'none' ? [] : list.split(',');
  const isOrigin = (text: string) => /^https?:/.test(text) && URL.parse(text)?.origin === text;
  if (!origins.every(isOrigin) || origins.length > MAX_ORIGINS) {
    throw new UsageError(
      `"origins" takes up to ${MAX_ORIGINS} origins such as https://shop.example, separated by commas, or "none".`,
    );
  }
  return change(id, 'origins', list, { allowedOrigins: origins });
}

const MAX_ORIGINS = 100;

function nameForPayers([id, name = '']: readonly string[]): Work {
  if (!DISPLAY_NAME.test(name)) {
    throw new UsageError('"display-name" must have 1 to 100 visible characters. Use "none" to remove it.');
  }
  return change(id, 'display-name', name, { displayName: name === 'none' ? '' : name });
}

// Bidirectional control characters could change how the page reads.
const DISPLAY_NAME = /^(?=.*\S)[^\p{Cc}\p{Bidi_C}]{1,100}$/u;

/** Changes an account's setting. @param value the new value, as entered on the command line. */
function change(id: string | undefined, setting: string, value: string, changed: AccountChange): Work {
  return withAccount(id, async ({ queries, audit }, account) => {
    await changeAccount(queries, account.id, changed);
    await audit({ accountId: account.id, detail: value });
    return `${setting} ${value}`;
  });
}

function withAccount(
  text: string | undefined,
  work: (session: Session, account: Account) => Promise<string>,
): Work {
  const id = asId(text);
  return async (session) => {
    const account = await findAccount(session.queries, id);
    if (!account) throw new NotFoundError(`No account ${id}.`);
    return work(session, account);
  };
}

function asId(text = ''): string {
  if (!isUuid(text)) throw new UsageError(`"${text}" is not an id: ids are UUIDs.`);
  return text;
}

function showSecret(secret: string, id: string): string {
  return `secret       ${secret}\nsecret id    ${id}\n\nSave the secret now: it is never shown again and cannot be recovered from the database.`;
}

function prefixOf({ environment }: Options): string {
  const prefix = keyPrefix(environment);
  if (prefix !== undefined) return prefix;
  throw new UsageError(
    '--environment must be a word such as sandbox or prod: up to 31 characters from a-z, 0-9 and -, starting with a letter.',
  );
}

function accountRow(account: Account): string[] {
  const settings: string[] = [];
  if (account.isSandbox) settings.push('sandbox');
  if (account.publicKeyMay !== 'SESSIONS') settings.push(`public key may ${account.publicKeyMay}`);
  if (account.tellsAuthorized) settings.push('authorizations authorized');
  if (account.allowedOrigins.length > 0) settings.push(`origins ${account.allowedOrigins.join(' ')}`);
  if (account.displayName) settings.push(`display name ${account.displayName}`);
  return [account.id, settings.join(', '), account.createdAt.toISOString(), account.name];
}

function keyRow(kind: string, { id, createdAt, revokedAt }: KeyListing): string[] {
  const state = revokedAt ? `revoked ${revokedAt.toISOString()}` : '';
  return [kind, id, `created ${createdAt.toISOString()}`, state];
}

function auditRow({ at, actor, action, subject, detail }: AuditEntry): string[] {
  return [at.toISOString(), actor, action, [subject, detail].filter(Boolean).join('  ')];
}

/** The usage text of `npm run account`. */
const USAGE = `Usage: npm run account -- <command>

  create --name <name> [--public-key-may NOTHING|SESSIONS|PAYMENTS]
                                            creates an account with a public key and a secret
  list                                      lists the accounts
  keys <account id>                         lists an account's keys
  add-public-key <account id>               adds a public key to an account
  add-secret <account id>                   adds a secret to an account
  audit <account id>|installation           lists changes to an account or to the installation, oldest first
  revoke-public-key <public key>            revokes a public key
  revoke-secret <secret id>                 revokes a secret by the id that "keys" shows
  close-sandbox                             revokes every key of the sandbox's accounts for good, before live payments
  close <account id> [--confirm]            lists what is open in the account of a merchant who leaves; with --confirm, ends its
                                            keys, sessions and webhooks, and says what remains until when
  public-key-may <account id> NOTHING|SESSIONS|PAYMENTS
                                            sets what the public key may do without the secret: nothing; pay and read open
                                            checkout sessions (the default); or also start redirects of any amount
  authorizations <account id> shown|authorized
                                            shows authorizations as the interface does (SUCCEEDED, PURCHASE), or as what
                                            they are (PENDING / AUTHORIZED, AUTHORIZE)
  origins <account id> <origin>,…|none      lets only pages of these origins call from a browser with the public key alone
                                            (https://shop.example, http://localhost:3000)
  display-name <account id> <name>|none     shows payers this name on the checkout page, as the recipient of the payment

create, add-public-key and add-secret take --environment <word>: the keys then start with that word (sandbox_…, prod_…), for
clients that derive the service's host from their key.

A secret is shown once, when it is created: only its hash is stored. A revoked key stops working within 5 seconds, and a
setting takes effect within 5 seconds.
The audit log records every command with its user and host, and the name in ACTOR if set.
Uses the database named by DATABASE_URL, or else the embedded one (DATA_DIR). The service need not be running.`;

/** Runs the command. */
export const run = createCommand(USAGE, main, (error) => {
  if (error instanceof NotFoundError) return error.message;
  if (!isUnavailable(error) || isSurelyNotCommitted(error)) return `Not done: ${explainFailure(error)}`;
  const why = (error as Error).message;
  return `The database did not acknowledge the change (${why}), so it may have been made. Check with list, keys or audit, then repeat the command if needed.`;
});

/** A command's database transaction, which commits the changes together with their audit log entries. */
type Session = {
  readonly queries: Queries;
  /** For a command whose steps are commits of their own. */
  readonly database: Database;
  readonly audit: (entry: Pick<AuditedAction, 'accountId' | 'subject' | 'detail'>) => Promise<void>;
};

/**
 * Revokes every key of the sandbox's accounts. A repetition revokes the keys that were added since.
 *
 * @returns the text to print.
 */
async function closeSandbox({ queries, audit }: Session): Promise<string> {
  let revoked = 0;
  for (const { id: accountId } of (await listAccounts(queries)).filter(({ isSandbox }) => isSandbox)) {
    const { publicKeys, secrets } = await listKeys(queries, accountId);
    const keys = [
      ...publicKeys.map(({ id }) => ['public', id] as const),
      ...secrets.map(({ id }) => ['secret', id] as const),
    ];
    for (const [kind, subject] of keys) {
      if ((await revokeKey(queries, kind, subject)) === undefined) continue;
      await audit({ accountId, subject });
      revoked += 1;
    }
  }
  if (revoked === 0) await audit({ accountId: INSTALLATION });
  return `revoked ${revoked} keys of the sandbox`;
}

const PUBLIC_KEY_BYTES = 16;
const SECRET_BYTES = 32;

/** Generates a public key: the prefix, then `pk_` and 32 hexadecimal digits. */
function newPublicKey(prefix: string): string {
  return `${prefix}pk_${randomBytes(PUBLIC_KEY_BYTES).toString('hex')}`;
}

/** Generates a secret (the prefix, then `sk_` and 64 hexadecimal digits), its id and the hash to store. */
function newSecret(prefix: string): { id: string; secret: string; hash: Uint8Array } {
  const secret = `${prefix}sk_${randomBytes(SECRET_BYTES).toString('hex')}`;
  return { id: randomUUIDv7(), secret, hash: createHash('sha256').update(secret).digest() };
}

/**
 * Clients take the text before the first `_` as the environment, so the name of an environment must not contain `_`.
 */
const ENVIRONMENT = /^[a-z][a-z0-9-]{0,30}$/;

/**
 * Returns the prefix of an environment's keys, such as `sandbox_`; empty without an environment, undefined for an
 * invalid one.
 */
function keyPrefix(environment: string | undefined): string | undefined {
  if (environment === undefined) return '';
  return ENVIRONMENT.test(environment) ? `${environment}_` : undefined;
}

if (import.meta.main) await runAsProcess(run);
