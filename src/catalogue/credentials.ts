import type { ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import { Secret } from '#src/secret.ts';
import type { Queries } from '#src/store/engine/database.ts';
import {
  type ConnectionAccount,
  readConnectionAccounts,
  readSealedSecrets,
  type SealedSecret,
  type SecretName,
} from '#src/store/tables/connection-secrets.ts';
import type { CardVault } from '#src/vault/card-vault.ts';
import { CatalogueError } from './catalogue-error.ts';

/** The database's part of what connections open with. */
export type Credentials = {
  /** Stored secrets by the connection's id, then by name. */
  readonly secrets: ReadonlyMap<string, ReadonlyMap<string, StoredSecret>>;
  /** The accounts for which connections stand, by the connection's id. */
  readonly accounts: ReadonlyMap<string, ConnectionAccount>;
};

/** A stored secret, opened. */
export type StoredSecret = {
  /** Another one for each value. */
  readonly id: string;
  /** undefined: it is sealed under a key that the vault lacks, or damaged. */
  readonly value: Secret | undefined;
  /** The value that it replaced, and until when that one is accepted, by the process's monotonic clock. */
  readonly previous?: {
    readonly id: string;
    readonly value: Secret | undefined;
    readonly untilMs: number;
  };
};

/** The credentials of a catalogue from a file, whose secrets are in the environment. */
export const NO_CREDENTIALS: Credentials = { secrets: new Map(), accounts: new Map() };

/** Reads the credentials of all connections. */
export type ReadCredentials = () => Promise<Credentials>;

/** Creates a reader of credentials, which opens each stored value once. */
export function createCredentialsReader(queries: Queries, vault: Pick<CardVault, 'open'>): ReadCredentials {
  let known = new Map<string, Secret | undefined>();

  async function open(sealed: SealedSecret): Promise<Secret | undefined> {
    if (known.has(sealed.id)) return known.get(sealed.id);
    try {
      return await vault.open(sealed.sealed, boundTo(sealed));
    } catch {
      return undefined;
    }
  }

  return async () => {
    // Before the accounts, which are stored together with the secrets that they go with.
    const rows = await readSealedSecrets(queries);
    const accounts = await readConnectionAccounts(queries);
    known = new Map(await Promise.all(rows.map(async (row) => [row.id, await open(row)] as const)));
    return {
      secrets: byConnection(rows, known, performance.now()),
      accounts: new Map(accounts.map((account) => [account.connectionId, account])),
    };
  };
}

function byConnection(
  rows: readonly SealedSecret[],
  values: ReadonlyMap<string, Secret | undefined>,
  nowMs: number,
): Credentials['secrets'] {
  const secrets = new Map<string, Map<string, StoredSecret>>();
  // Present values first, to which the previous ones are added.
  for (const { id, connectionId, name, isPrevious, leftMs } of rows.toSorted(presentFirst)) {
    const own = secrets.get(connectionId) ?? new Map<string, StoredSecret>();
    secrets.set(connectionId, own);
    const value = values.get(id);
    const present = own.get(name);
    if (!isPrevious) own.set(name, { id, value });
    else if (present) own.set(name, { ...present, previous: { id, value, untilMs: nowMs + (leftMs ?? 0) } });
  }
  return secrets;
}

const presentFirst = (one: SealedSecret, other: SealedSecret) =>
  Number(one.isPrevious) - Number(other.isPrevious);

/** Returns the text that a stored secret is bound to, so that it does not open as another connection's. */
export function boundTo({ connectionId, name }: SecretName): string {
  return `${connectionId} ${name}`;
}

/** The secrets with which a connection opens. */
export type ResolvedSecrets = {
  readonly values: Readonly<Record<string, Secret>>;
  /** Replaced values that are still accepted, until a time of the process's monotonic clock. */
  readonly previous: readonly { readonly name: string; readonly value: Secret; readonly untilMs: number }[];
  /** Differs if a stored value differs. */
  readonly key: string;
};

/**
 * Finds a connection's secrets. A stored value is used instead of the environment's.
 *
 * @throws CatalogueError SECRET_MISSING.
 */
export function resolveSecrets(
  { id, secretsFromEnvironment }: ConnectionConfig,
  environment: (name: string) => string | undefined,
  { secrets }: Credentials,
): ResolvedSecrets {
  const stored = secrets.get(id) ?? new Map<string, StoredSecret>();
  const missing = (why: string) => new CatalogueError(`connection ${id}: ${why}`, 'SECRET_MISSING', id);
  const values: Record<string, Secret> = {};
  for (const [name, variable] of Object.entries(secretsFromEnvironment)) {
    if (stored.has(name)) continue;
    const value = environment(variable);
    if (value === undefined) throw missing(`the environment variable ${variable} is not set`);
    values[name] = new Secret(value);
  }
  const previous: ResolvedSecrets['previous'][number][] = [];
  for (const [name, secret] of stored) {
    if (!secret.value) throw missing(`the stored secret ${name} cannot be opened with VAULT_KEYS`);
    values[name] = secret.value;
    const { value, untilMs = 0 } = secret.previous ?? {};
    if (value) previous.push({ name, value, untilMs });
  }
  const ids = [...stored].map(([name, secret]) => `${name} ${secret.id} ${secret.previous?.id}`);
  return { values, previous, key: ids.sort().join('\n') };
}

/** Returns true if an identity is one of an account's. */
export function isOfAccount({ identity, laterIdentities }: ConnectionAccount, other: string): boolean {
  return identity === other || laterIdentities.includes(other);
}

/** Returns credentials in which a connection has another secret. */
export function withSecret(
  credentials: Credentials,
  connectionId: string,
  name: string,
  value: Secret,
): Credentials {
  const own = new Map(credentials.secrets.get(connectionId)).set(name, { id: '', value });
  return { ...credentials, secrets: new Map(credentials.secrets).set(connectionId, own) };
}

/** Returns credentials in which a connection's secret is not stored. */
export function withoutSecret(credentials: Credentials, connectionId: string, name: string): Credentials {
  const own = new Map(credentials.secrets.get(connectionId));
  own.delete(name);
  return { ...credentials, secrets: new Map(credentials.secrets).set(connectionId, own) };
}
