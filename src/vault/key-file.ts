import { hkdfSync, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { renameDurably } from '#src/rename-durably.ts';

/** Keys of an installation: the vault's encryption keys, and the key for hashing fingerprints and requests. */
export type InstallationKeys = {
  readonly vaultKeys: ReadonlyMap<string, Uint8Array>;
  readonly hashKey: Uint8Array;
};

const KEY_BYTES = 32;

/**
 * Returns the keys of an embedded database from the `keys.json` next to it (mode 0600), which the first start creates.
 * With another database, the operator configures keys instead.
 */
function embeddedKeys(dataDir: string): InstallationKeys {
  const file = join(dataDir, 'keys.json');
  const stored = readStored(file) ?? createStored(file);
  return {
    vaultKeys: new Map(stored.vault.map(({ id, key }) => [id, Buffer.from(key, 'base64')])),
    hashKey: Buffer.from(stored.hash, 'base64'),
  };
}

/** Returns the configured keys; any others come from the embedded database's key file. */
export function installationKeys(
  configured: { readonly [Key in keyof InstallationKeys]: InstallationKeys[Key] | undefined },
  dataDir: string | undefined,
): InstallationKeys {
  const { vaultKeys, hashKey } = configured;
  if (vaultKeys && hashKey) return { vaultKeys, hashKey };
  const embedded = embeddedKeys(dataDir ?? '');
  return { vaultKeys: vaultKeys ?? embedded.vaultKeys, hashKey: hashKey ?? embedded.hashKey };
}

type StoredKeys = {
  readonly vault: readonly { readonly id: string; readonly key: string }[];
  readonly hash: string;
};

function readStored(file: string): StoredKeys | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as StoredKeys;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${file} cannot be read`);
  }
}

function createStored(file: string): StoredKeys {
  const key = () => randomBytes(KEY_BYTES).toString('base64');
  const stored: StoredKeys = { vault: [{ id: 'embedded-1', key: key() }], hash: key() };
  // Written whole or not at all, since a partial key file would make every stored card unreadable.
  writeFileSync(`${file}.new`, JSON.stringify(stored), { mode: 0o600, flush: true });
  renameDurably(`${file}.new`, file);
  return stored;
}

/** Keys derived from the installation's hash key. */
export type HashKeys = {
  readonly requestHashKey: Uint8Array;
  readonly fingerprintKey: Uint8Array;
  /** Keys for the hashes by which a payer's payments are found. */
  readonly payerEmailKey: Uint8Array;
  readonly payerDocumentKey: Uint8Array;
  /** Key that authenticates page tokens. */
  readonly pageTokenKey: Uint8Array;
  /** Key for digests of the credentials that identify a connection's account. */
  readonly identityKey: Uint8Array;
  /** API key of the mounted sandbox provider, unless the environment sets one. It is the same after every start. */
  readonly sandboxApiKey: string;
};

/** Derives a separate key per purpose, so that a hash made with one reveals nothing about another (HKDF, RFC 5869). */
export function hashKeys(key: Uint8Array): HashKeys {
  const derive = (purpose: string) => new Uint8Array(hkdfSync('sha256', key, '', purpose, 32));
  return {
    requestHashKey: derive('request hash'),
    fingerprintKey: derive('card fingerprint'),
    payerEmailKey: derive('payer-search/email/1'),
    payerDocumentKey: derive('payer-search/document/1'),
    pageTokenKey: derive('page token'),
    identityKey: derive('connection identity'),
    sandboxApiKey: Buffer.from(derive('sandbox api key')).toString('hex'),
  };
}

const HASH_KEY_NAME = 'hash key';
const VAULT_KEY_NAME = 'vault key ';

/**
 * Derives the values that identify an installation's keys. A key cannot be computed from its value (HKDF).
 *
 * @returns the check values by name.
 */
export function keyChecks({ vaultKeys, hashKey }: InstallationKeys): Map<string, Uint8Array> {
  const derive = (key: Uint8Array) => new Uint8Array(hkdfSync('sha256', key, '', 'check value', 32));
  const ofVault = [...vaultKeys].map(([id, key]) => [VAULT_KEY_NAME + id, derive(key)] as const);
  return new Map([[HASH_KEY_NAME, derive(hashKey)], ...ofVault]);
}

/** Returns the id of the vault key that a check value's name denotes; undefined for the hash key. */
export function vaultKeyIdOf(name: string): string | undefined {
  return name.startsWith(VAULT_KEY_NAME) ? name.slice(VAULT_KEY_NAME.length) : undefined;
}
