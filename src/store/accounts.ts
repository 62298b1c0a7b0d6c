import type { Database, Queries } from './database.ts';

/** An account, as found by its public key. */
export type AccountKeys = {
  readonly accountId: string;
  /** true: every call must present the secret. */
  readonly secretAlways: boolean;
  /** true: authorizations are reported as such, not as the interface reports them. */
  readonly tellsAuthorized: boolean;
  /** Origins whose pages may call with the public key alone. */
  readonly allowedOrigins: readonly string[];
  /** SHA-256 of each secret that is not revoked. */
  readonly secretHashes: readonly Uint8Array[];
};

const FIND_KEYS = {
  name: 'find_account_keys',
  text: `
    SELECT a.id AS "accountId", a.secret_always AS "secretAlways", a.tells_authorized AS "tellsAuthorized",
      a.allowed_origins AS "allowedOrigins",
      array(SELECT s.secret_hash FROM secret_key s WHERE s.account_id = a.id AND s.revoked_at IS NULL) AS "secretHashes"
    FROM public_key p JOIN account a ON a.id = p.account_id
    WHERE p.public_key = $1 AND p.revoked_at IS NULL`,
};

/** Finds the account of a public key, with the hashes of its secrets; undefined for an unknown or revoked key. */
export async function findAccountKeys(
  database: Database,
  publicKey: string,
): Promise<AccountKeys | undefined> {
  return (await database.query<AccountKeys>(FIND_KEYS, [publicKey])).rows[0];
}

const INSERT_ACCOUNT = {
  name: 'insert_account',
  text: 'INSERT INTO account (id, name, secret_always, tells_authorized) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING',
};
const INSERT_PUBLIC_KEY = {
  name: 'insert_public_key',
  text: 'INSERT INTO public_key (public_key, account_id) VALUES ($1, $2) ON CONFLICT (public_key) DO NOTHING',
};
const INSERT_SECRET_KEY = {
  name: 'insert_secret_key',
  text: 'INSERT INTO secret_key (id, account_id, secret_hash) VALUES ($1, $2, $3) ON CONFLICT (account_id, id) DO NOTHING',
};

/** Adds an account; an existing one stays as it is. */
export async function insertAccount(
  queries: Queries,
  account: { id: string; name: string; secretAlways: boolean; tellsAuthorized?: boolean },
): Promise<void> {
  const { id, name, secretAlways, tellsAuthorized = false } = account;
  await queries.query(INSERT_ACCOUNT, [id, name, secretAlways, tellsAuthorized]);
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

const CREATE_ACCOUNT = {
  name: 'create_account',
  text: `
    WITH created AS (INSERT INTO account (id, name, secret_always) VALUES ($1, $2, $3) RETURNING id),
      public AS (INSERT INTO public_key (public_key, account_id) SELECT $4, id FROM created)
    INSERT INTO secret_key (id, account_id, secret_hash) SELECT $5, id, $6 FROM created`,
};

/** Adds an account with its first keys, or nothing at all. */
export async function createAccount(
  queries: Queries,
  account: { id: string; name: string; secretAlways: boolean },
  keys: { publicKey: string; secretId: string; secretHash: Uint8Array },
): Promise<void> {
  const { id, name, secretAlways } = account;
  await queries.query(CREATE_ACCOUNT, [
    id,
    name,
    secretAlways,
    keys.publicKey,
    keys.secretId,
    keys.secretHash,
  ]);
}

const COLUMNS = `id, name, secret_always AS "secretAlways", tells_authorized AS "tellsAuthorized",
  allowed_origins AS "allowedOrigins", display_name AS "displayName", created_at AS "createdAt"`;
const LIST_ACCOUNTS = {
  name: 'list_accounts',
  text: `SELECT ${COLUMNS} FROM account ORDER BY created_at, id`,
};
const FIND_ACCOUNT = {
  name: 'find_account',
  text: `SELECT ${COLUMNS} FROM account WHERE id = $1`,
};
const SET_SECRET_ALWAYS = {
  name: 'set_secret_always',
  text: 'UPDATE account SET secret_always = $2 WHERE id = $1',
};

const SET_TELLS_AUTHORIZED = {
  name: 'set_tells_authorized',
  text: 'UPDATE account SET tells_authorized = $2 WHERE id = $1',
};

const SET_ALLOWED_ORIGINS = {
  name: 'set_allowed_origins',
  text: 'UPDATE account SET allowed_origins = $2 WHERE id = $1',
};
const SET_DISPLAY_NAME = {
  name: 'set_display_name',
  text: 'UPDATE account SET display_name = $2 WHERE id = $1',
};

/** An account as the operator sees it. */
export type Account = {
  readonly id: string;
  readonly name: string;
  readonly secretAlways: boolean;
  readonly tellsAuthorized: boolean;
  readonly allowedOrigins: readonly string[];
  /** Name under which payers know the merchant; '' for none. */
  readonly displayName: string;
  readonly createdAt: Date;
};

/** Lists every account, oldest first. */
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

/** Sets whether every call must present the secret. */
export async function setSecretAlways(queries: Queries, id: string, secretAlways: boolean): Promise<void> {
  await queries.query(SET_SECRET_ALWAYS, [id, secretAlways]);
}

/** Sets how authorizations are reported: as such, or as the interface does. Existing payments do not change. */
export async function setTellsAuthorized(
  queries: Queries,
  id: string,
  tellsAuthorized: boolean,
): Promise<void> {
  await queries.query(SET_TELLS_AUTHORIZED, [id, tellsAuthorized]);
}

/** Sets the origins whose pages may call with the public key alone. */
export async function setAllowedOrigins(
  queries: Queries,
  id: string,
  origins: readonly string[],
): Promise<void> {
  await queries.query(SET_ALLOWED_ORIGINS, [id, origins]);
}

/** Sets the name under which payers know the merchant. @param name '' for none. */
export async function setDisplayName(queries: Queries, id: string, name: string): Promise<void> {
  await queries.query(SET_DISPLAY_NAME, [id, name]);
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

/** A key as the operator sees it: a public key by its text, a secret by its id. */
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

/** Revokes a key. @returns its account; undefined if there is no such key, or it was revoked before. */
export async function revokeKey(
  queries: Queries,
  kind: 'public' | 'secret',
  id: string,
): Promise<string | undefined> {
  const statement = kind === 'public' ? REVOKE_PUBLIC_KEY : REVOKE_SECRET;
  return (await queries.query<{ account_id: string }>(statement, [id])).rows[0]?.account_id;
}
