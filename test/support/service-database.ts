import { randomBytes } from 'node:crypto';
import { createBinTable } from '#src/payments/method/bin-table.ts';
import { addSandboxFixtures } from '#src/server/sandbox-fixtures.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { hashKeys } from '#src/vault/key-file.ts';
import { createTestDatabase, openTestDatabase } from './database.ts';

/** A test's own database for services in separate processes. */
export type ServiceDatabase = {
  readonly url: string;
  /** The environment for a service that uses it, with the keys of its objects. */
  readonly environment: Readonly<Record<string, string>>;
  drop(): Promise<void>;
};

/** Creates a database with the sandbox's accounts and objects, on which services can start more than once. */
export async function createServiceDatabase(): Promise<ServiceDatabase> {
  const { url, drop } = await createTestDatabase();
  const [vaultKey, hashKey] = [randomBytes(32), randomBytes(32)];
  const database = openTestDatabase(url, 1);
  await addSandboxFixtures(database, {
    vault: cardVault(new Map([['one', vaultKey]])),
    fingerprintKey: hashKeys(hashKey).fingerprintKey,
    bins: createBinTable([]),
  });
  await database.close();
  const environment = {
    DATABASE_URL: url,
    ALLOW_UNSAFE_DATABASE: 'on',
    VAULT_KEYS: `one:${vaultKey.toString('base64')}`,
    HASH_KEY: hashKey.toString('base64'),
  };
  return { url, environment, drop };
}
