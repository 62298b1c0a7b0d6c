import type { Database, Run } from '#src/store/engine/database.ts';
import {
  countSealed,
  forgetKey,
  InstallationKeysError,
  readKeyChecks,
  storeKeyChecks,
} from '#src/store/tables/installation-keys.ts';
import { sealedPrefix } from '#src/vault/card-vault.ts';
import { type InstallationKeys, keyChecks, vaultKeyIdOf } from '#src/vault/key-file.ts';

/** Time limit for counting the values sealed with a missing key: the count reads whole tables. */
const COUNT_TIMEOUT_MS = 600_000;

/**
 * Compares the keys with those of earlier starts, whose check values are in the database. A missing vault key is
 * forgotten once no stored value is sealed with it.
 *
 * @throws InstallationKeysError for a different hash key, a different key with a known id, or a missing vault key that
 * is still needed. In that case, the database is unchanged.
 */
export async function checkKeys(database: Database, keys: InstallationKeys): Promise<void> {
  await database.transaction(async (run) => {
    const own = keyChecks(keys);
    const { problems, unused } = await compare(run, own, await storeKeyChecks(run, own));
    if (problems.length > 0) throw new InstallationKeysError(problems.join('; '));
    for (const name of unused) await forgetKey(run, name);
  }, COUNT_TIMEOUT_MS);
}

/** Lists the problems that make `checkKeys` throw. Writes nothing. The schema must exist. */
export function findKeyProblems(database: Database, keys: InstallationKeys): Promise<string[]> {
  return database.transaction(async (run) => {
    const { problems } = await compare(run, keyChecks(keys), await readKeyChecks(run));
    return problems;
  }, COUNT_TIMEOUT_MS);
}

type Checks = ReadonlyMap<string, Uint8Array>;

/** @returns descriptions of the problems, and the names of known keys that are missing but no longer needed. */
async function compare(
  run: Run,
  own: Checks,
  known: Checks,
): Promise<{ problems: string[]; unused: string[] }> {
  const problems: string[] = [];
  const unused: string[] = [];
  for (const [name, check] of known) {
    const ownCheck = own.get(name);
    const keyId = vaultKeyIdOf(name);
    if (ownCheck) {
      if (!Buffer.from(check).equals(ownCheck))
        problems.push(keyId === undefined ? OTHER_HASH_KEY : otherKey(keyId));
    } else if (keyId !== undefined) {
      const count = await countSealed(run, sealedPrefix(keyId));
      if (count > 0n) problems.push(missingKey(keyId, count));
      else unused.push(name);
    }
  }
  return { problems, unused };
}

const OTHER_HASH_KEY =
  'HASH_KEY (with the embedded database: "hash" in keys.json) is not the key with which this database has been used: retries would count as different requests, and card fingerprints would change. Start with the previous key';

function otherKey(id: string): string {
  return `VAULT_KEYS has a different key under the id "${id}" than before: stored cards could not be decrypted. Start with the previous key, and give the new key a different id`;
}

function missingKey(id: string, count: bigint): string {
  return `VAULT_KEYS lacks the key "${id}", which ${count} stored cards and secrets need. Add it again, and run npm run vault:rotate before you retire it`;
}
