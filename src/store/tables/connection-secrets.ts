import { type Database, type Queries, queriesOf, type Run } from '../engine/database.ts';
import { firstRow } from '../engine/rows.ts';
import { type AuditedAction, recordAction } from './audit-log.ts';

/** Names a secret: its connection, and its name in the connector's message. */
export type SecretName = { readonly connectionId: string; readonly name: string };

/** A stored secret, sealed. */
export type SealedSecret = SecretName & {
  /** Another one for each value. */
  readonly id: string;
  /** The value that the present one replaced. */
  readonly isPrevious: boolean;
  readonly sealed: string;
  /** Milliseconds for which a previous value is still accepted; undefined for a present one. */
  readonly leftMs: number | undefined;
};

const READ = {
  name: 'read_connection_secrets',
  text: `
    SELECT id, connection_id AS "connectionId", name, is_previous AS "isPrevious", sealed,
      CASE WHEN is_previous THEN (extract(epoch FROM ends_at - now()) * 1000)::float8 END AS "leftMs"
    FROM connection_secret`,
};

/** Reads every stored secret. */
export async function readSealedSecrets(queries: Queries): Promise<SealedSecret[]> {
  return (await queries.query<SealedSecret>(READ)).rows;
}

/** A stored secret as operators see it. */
export type SecretEntry = SecretName & {
  readonly setAt: Date;
  readonly actor: string;
  /** Until when the previous value verifies notifications; null if there is none. */
  readonly previousUntil: Date | null;
};

const LIST = {
  name: 'list_connection_secrets',
  text: `
    SELECT s.connection_id AS "connectionId", s.name, s.set_at AS "setAt", s.actor, p.ends_at AS "previousUntil"
    FROM connection_secret s
      LEFT JOIN connection_secret p
        ON p.connection_id = s.connection_id AND p.name = s.name AND p.is_previous AND p.ends_at > now()
    WHERE NOT s.is_previous ORDER BY s.connection_id, s.name`,
};

/** Lists the stored secrets without their values. */
export async function listSecretEntries(queries: Queries): Promise<SecretEntry[]> {
  return (await queries.query<SecretEntry>(LIST)).rows;
}

/** The account at a provider for which a connection's id stands. */
export type ConnectionAccount = {
  readonly connectionId: string;
  /** The first identity, which its transactions have. */
  readonly identity: string;
  /** Identities of later credentials for the same account. */
  readonly laterIdentities: readonly string[];
  /** As the provider names the account; null if it was never asked. */
  readonly providerAccount: string | null;
};

const READ_ACCOUNTS = {
  name: 'read_connection_accounts',
  text: `
    SELECT connection_id AS "connectionId", identity, later_identities AS "laterIdentities",
      provider_account AS "providerAccount"
    FROM connection_account`,
};

/** Reads the accounts of all connections that were ever published. */
export async function readConnectionAccounts(queries: Queries): Promise<ConnectionAccount[]> {
  return (await queries.query<ConnectionAccount>(READ_ACCOUNTS)).rows;
}

/** A change of a secret, with what is known of its connection's account. */
export type SecretChange = SecretName & {
  /** The head's revision when the change was checked. */
  readonly revision: bigint;
  readonly audited: AuditedAction;
};

/** A secret to store. */
export type NewSecret = SecretChange & {
  readonly id: string;
  readonly sealed: string;
  readonly actor: string;
  /** Seconds for which the value that it replaces still verifies notifications; 0 deletes that value. */
  readonly keepPreviousS: number;
  /** The connection is in force. */
  readonly isInForce: boolean;
  /** The same value is stored already, and stays. */
  readonly isKept: boolean;
  /** The account to store; undefined as long as none is known. */
  readonly account: ConnectionAccount | undefined;
};

const LOCK_REVISION = 'SELECT revision FROM catalogue_head FOR UPDATE';
const RAISE_REVISION = 'UPDATE catalogue_head SET revision = revision + 1';
const FORGET_PREVIOUS =
  'DELETE FROM connection_secret WHERE connection_id = $1 AND name = $2 AND (is_previous OR $3::integer = 0)';
const MAKE_PREVIOUS = `
  UPDATE connection_secret SET is_previous = true, ends_at = now() + make_interval(secs => $3)
  WHERE connection_id = $1 AND name = $2`;
const INSERT = `
  INSERT INTO connection_secret (connection_id, name, id, sealed, actor, ends_at)
  VALUES ($1, $2, $3, $4, $5, CASE WHEN NOT $6 THEN now() END)`;
const SAVE_ACCOUNT = `
  INSERT INTO connection_account (connection_id, identity, later_identities, provider_account) VALUES ($1, $2, $3, $4)
  ON CONFLICT (connection_id) DO UPDATE
  SET later_identities = excluded.later_identities, provider_account = excluded.provider_account`;

/**
 * Stores a secret with its audit entry, and raises the head's revision.
 *
 * @returns false if the revision is another one, in which case nothing is stored.
 */
export function storeSecret(database: Database, secret: NewSecret): Promise<boolean> {
  const { connectionId, name, id, sealed, actor, keepPreviousS, isInForce, isKept, account } = secret;
  return changeSecrets(database, secret, async (run) => {
    if (!isKept) {
      await run(FORGET_PREVIOUS, [connectionId, name, keepPreviousS]);
      await run(MAKE_PREVIOUS, [connectionId, name, keepPreviousS]);
      await run(INSERT, [connectionId, name, id, sealed, actor, isInForce]);
    }
    if (!account) return;
    const { identity, laterIdentities, providerAccount } = account;
    await run(SAVE_ACCOUNT, [connectionId, identity, laterIdentities, providerAccount]);
  });
}

const DELETE = 'DELETE FROM connection_secret WHERE connection_id = $1 AND name = $2';

/** Deletes a secret and the value that it replaced, as `storeSecret` stores one. */
export function deleteSecret(database: Database, change: SecretChange): Promise<boolean> {
  return changeSecrets(database, change, async (run) => {
    await run(DELETE, [change.connectionId, change.name]);
  });
}

function changeSecrets(
  database: Database,
  { revision, audited }: SecretChange,
  work: (run: Run) => Promise<void>,
): Promise<boolean> {
  return database.transaction(async (run) => {
    const head = firstRow(await run<{ revision: bigint }>(LOCK_REVISION));
    if (head?.revision !== revision) return false;
    await work(run);
    await run(RAISE_REVISION);
    await recordAction(queriesOf(run), audited);
    return true;
  });
}

// The first identity stays. A secret that was prepared for a connection is needed once the connection is published.
const ADD_ACCOUNTS = `
  INSERT INTO connection_account (connection_id, identity) SELECT * FROM unnest($1::text[], $2::text[])
  ON CONFLICT (connection_id) DO NOTHING`;
const NEED_SECRETS = `
  UPDATE connection_secret SET ends_at = NULL
  WHERE connection_id = ANY($1) AND NOT is_previous AND ends_at IS NOT NULL`;

/** Notes that connections are published, with their identities by id. */
export async function notePublished(run: Run, identities: ReadonlyMap<string, string>): Promise<void> {
  const ids = [...identities.keys()];
  await run(ADD_ACCOUNTS, [ids, [...identities.values()]]);
  await run(NEED_SECRETS, [ids]);
}
