import type { Database, Queries } from '../engine/database.ts';

/** Every value of PublicKeyMay. */
export const PUBLIC_KEY_MAY = ['NOTHING', 'SESSIONS', 'PAYMENTS'] as const;

/**
 * The calls that an account's public key may make alone: none; those of browsers within a checkout session; or also
 * payments by redirect outside a session, whose amount the caller chooses.
 */
export type PublicKeyMay = (typeof PUBLIC_KEY_MAY)[number];

/** An account, as found by its public key. */
export type AccountKeys = Pick<Account, 'publicKeyMay' | 'tellsAuthorized' | 'allowedOrigins'> & {
  readonly accountId: string;
  /** SHA-256 digests of the secrets that are not revoked. */
  readonly secretHashes: readonly Uint8Array[];
};

const FIND_KEYS = {
  name: 'find_account_keys',
  text: `
    SELECT a.id AS "accountId", a.public_key_may AS "publicKeyMay", a.tells_authorized AS "tellsAuthorized",
      a.allowed_origins AS "allowedOrigins",
      array(SELECT s.secret_hash FROM secret_key s WHERE s.account_id = a.id AND s.revoked_at IS NULL) AS "secretHashes"
    FROM public_key p JOIN account a ON a.id = p.account_id
    WHERE p.public_key = $1 AND p.revoked_at IS NULL AND (NOT a.sandbox OR $2)`,
};

/**
 * Finds the account of a public key, with its secrets' hashes; undefined for an unknown or revoked key.
 *
 * @param ofSandbox also finds the sandbox's accounts.
 */
export async function findAccountKeys(
  database: Database,
  publicKey: string,
  ofSandbox: boolean,
): Promise<AccountKeys | undefined> {
  return (await database.query<AccountKeys>(FIND_KEYS, [publicKey, ofSandbox])).rows[0];
}

// Finds accounts by the digits that an object's id shares with its account's id (new-id). Several accounts may match.
const FIND_BY_DIGITS = {
  name: 'find_accounts_by_digits',
  text: 'SELECT id FROM account WHERE right(id::text, 6) = right(($1::uuid)::text, 6)',
};

/**
 * Finds an object by an id that came back from a payer or provider, without its account.
 *
 * @param id a UUID.
 * @param find looks for the object in one account.
 */
export async function findInAccounts<T>(
  database: Database,
  id: string,
  find: (accountId: string) => Promise<T | undefined>,
): Promise<T | undefined> {
  for (const account of (await database.query<{ id: string }>(FIND_BY_DIGITS, [id])).rows) {
    const found = await find(account.id);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** An account as its checkout page shows and uses it. */
export type CheckoutOwner = {
  readonly accountId: string;
  /** The newest public key that is not revoked. */
  readonly publicKey: string;
  /** The merchant's name as known to payers; '' if none. */
  readonly displayName: string;
};

const FIND_CHECKOUT_OWNER = {
  name: 'find_checkout_owner',
  text: `
    SELECT a.id AS "accountId", p.public_key AS "publicKey", a.display_name AS "displayName"
    FROM account a JOIN public_key p ON p.account_id = a.id
    WHERE a.id = $1 AND p.revoked_at IS NULL AND (NOT a.sandbox OR $2)
    ORDER BY p.created_at DESC, p.public_key LIMIT 1`,
};

/**
 * Finds an account with its public key; undefined if it has none, and therefore no checkout page.
 *
 * @param ofSandbox also finds the sandbox's accounts.
 */
export async function findCheckoutOwner(
  database: Database,
  accountId: string,
  ofSandbox: boolean,
): Promise<CheckoutOwner | undefined> {
  return (await database.query<CheckoutOwner>(FIND_CHECKOUT_OWNER, [accountId, ofSandbox])).rows[0];
}

const INSERT_ACCOUNT = {
  name: 'insert_account',
  text: `
    INSERT INTO account (id, name, public_key_may, tells_authorized, display_name, sandbox)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (id) DO NOTHING`,
};
const INSERT_PUBLIC_KEY = {
  name: 'insert_public_key',
  text: 'INSERT INTO public_key (public_key, account_id) VALUES ($1, $2) ON CONFLICT (public_key) DO NOTHING',
};
const INSERT_SECRET_KEY = {
  name: 'insert_secret_key',
  text: 'INSERT INTO secret_key (id, account_id, secret_hash) VALUES ($1, $2, $3) ON CONFLICT (account_id, id) DO NOTHING',
};

/** Adds an account. An existing account is not changed. */
export async function insertAccount(
  queries: Queries,
  account: Pick<Account, 'id' | 'name'> &
    Partial<Pick<Account, 'publicKeyMay' | 'tellsAuthorized' | 'displayName' | 'isSandbox'>>,
): Promise<void> {
  const { id, name, publicKeyMay = 'SESSIONS', displayName = '' } = account;
  const { tellsAuthorized = false, isSandbox = false } = account;
  await queries.query(INSERT_ACCOUNT, [id, name, publicKeyMay, tellsAuthorized, displayName, isSandbox]);
}

/** Adds a public key to an account. */
export async function insertPublicKey(queries: Queries, publicKey: string, accountId: string): Promise<void> {
  await queries.query(INSERT_PUBLIC_KEY, [publicKey, accountId]);
}

/** Adds a secret, as its hash, to an account. */
export async function insertSecretKey(
  queries: Queries,
  secret: { id: string; accountId: string; hash: Uint8Array },
): Promise<void> {
  await queries.query(INSERT_SECRET_KEY, [secret.id, secret.accountId, secret.hash]);
}

const COLUMNS = `id, name, public_key_may AS "publicKeyMay", tells_authorized AS "tellsAuthorized",
  allowed_origins AS "allowedOrigins", display_name AS "displayName", sandbox AS "isSandbox", created_at AS "createdAt"`;
const LIST_ACCOUNTS = {
  name: 'list_accounts',
  text: `SELECT ${COLUMNS} FROM account ORDER BY created_at, id`,
};
const FIND_ACCOUNT = {
  name: 'find_account',
  text: `SELECT ${COLUMNS} FROM account WHERE id = $1`,
};
const CHANGE_ACCOUNT = {
  name: 'change_account',
  text: `
    UPDATE account SET public_key_may = coalesce($2, public_key_may),
      tells_authorized = coalesce($3, tells_authorized), allowed_origins = coalesce($4::text[], allowed_origins),
      display_name = coalesce($5, display_name)
    WHERE id = $1`,
};

/** An account as shown to the operator. */
export type Account = {
  readonly id: string;
  readonly name: string;
  readonly publicKeyMay: PublicKeyMay;
  /** true: authorizations are shown as authorizations, not as purchases. */
  readonly tellsAuthorized: boolean;
  /** Origins whose pages may call with the public key alone. */
  readonly allowedOrigins: readonly string[];
  /** The merchant's name as known to payers; '' if none. */
  readonly displayName: string;
  /** true: the sandbox created it, with keys that are public knowledge. */
  readonly isSandbox: boolean;
  readonly createdAt: Date;
};

/** Lists all accounts, oldest first. */
export async function listAccounts(queries: Queries): Promise<Account[]> {
  return (await queries.query<Account>(LIST_ACCOUNTS)).rows;
}

const LIST_NAMES = {
  name: 'list_account_names',
  text: 'SELECT id, name FROM account ORDER BY created_at, id LIMIT $1',
};

/** Lists the names of up to `limit` accounts, oldest first. */
export async function listAccountNames(
  database: Database,
  limit: number,
): Promise<Pick<Account, 'id' | 'name'>[]> {
  return (await database.query<{ id: string; name: string }>(LIST_NAMES, [limit])).rows;
}

/** Finds an account. @param id a UUID. */
export async function findAccount(queries: Queries, id: string): Promise<Account | undefined> {
  return (await queries.query<Account>(FIND_ACCOUNT, [id])).rows[0];
}

/** The settings to change; undefined settings keep their value. */
export type AccountChange = Partial<
  Pick<Account, 'publicKeyMay' | 'tellsAuthorized' | 'allowedOrigins' | 'displayName'>
>;

/** Changes the settings of an account. Existing payments are not affected. */
export async function changeAccount(queries: Queries, id: string, change: AccountChange): Promise<void> {
  const { publicKeyMay = null, tellsAuthorized = null, allowedOrigins = null, displayName = null } = change;
  await queries.query(CHANGE_ACCOUNT, [id, publicKeyMay, tellsAuthorized, allowedOrigins, displayName]);
}

const LIST_SECRETS = {
  name: 'list_secrets',
  text: `
    SELECT id, created_at AS "createdAt", revoked_at AS "revokedAt"
    FROM secret_key WHERE account_id = $1 ORDER BY created_at, id`,
};
const LIST_PUBLIC_KEYS = {
  name: 'list_public_keys',
  text: `
    SELECT public_key AS id, created_at AS "createdAt", revoked_at AS "revokedAt"
    FROM public_key WHERE account_id = $1 ORDER BY created_at, public_key`,
};
const REVOKE_SECRET = {
  name: 'revoke_secret',
  text: 'UPDATE secret_key SET revoked_at = now() WHERE id = $1 AND revoked_at IS NULL RETURNING account_id',
};
const REVOKE_PUBLIC_KEY = {
  name: 'revoke_public_key',
  text: 'UPDATE public_key SET revoked_at = now() WHERE public_key = $1 AND revoked_at IS NULL RETURNING account_id',
};

/** A key as shown to the operator: a public key by its value, a secret by its id. */
export type KeyListing = { readonly id: string; readonly createdAt: Date; readonly revokedAt: Date | null };

/** Lists an account's keys, oldest first. */
export async function listKeys(
  queries: Queries,
  accountId: string,
): Promise<{ publicKeys: KeyListing[]; secrets: KeyListing[] }> {
  const publicKeys = await queries.query<KeyListing>(LIST_PUBLIC_KEYS, [accountId]);
  const secrets = await queries.query<KeyListing>(LIST_SECRETS, [accountId]);
  return { publicKeys: publicKeys.rows, secrets: secrets.rows };
}

const COUNT_SANDBOX_KEYS = {
  name: 'count_sandbox_keys',
  text: `
    SELECT ((SELECT count(*) FROM public_key p JOIN account a ON a.id = p.account_id
        WHERE a.sandbox AND p.revoked_at IS NULL)
      + (SELECT count(*) FROM secret_key s JOIN account a ON a.id = s.account_id
        WHERE a.sandbox AND s.revoked_at IS NULL))::integer AS keys`,
};

/** Counts the valid keys of the sandbox's accounts. */
export async function countSandboxKeys(queries: Queries): Promise<number> {
  return (await queries.query<{ keys: number }>(COUNT_SANDBOX_KEYS)).rows[0]?.keys ?? 0;
}

/** Revokes a key. @returns its account; undefined if the key does not exist or was already revoked. */
export async function revokeKey(
  queries: Queries,
  kind: 'public' | 'secret',
  id: string,
): Promise<string | undefined> {
  const statement = kind === 'public' ? REVOKE_PUBLIC_KEY : REVOKE_SECRET;
  return (await queries.query<{ account_id: string }>(statement, [id])).rows[0]?.account_id;
}
