import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { LOG_SERIALIZERS } from '#src/api/error-handler.ts';
import { createCredentialsReader } from '#src/catalogue/credentials.ts';
import { followCatalogue } from '#src/catalogue/follow-catalogue.ts';
import { parseCatalogue, readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { readCatalogueInForce, seedCatalogue } from '#src/catalogue/seed-catalogue.ts';
import { type Config, readConfig } from '#src/config.ts';
import { createLog } from '#src/observe/log-writer.ts';
import { createBinTable } from '#src/payments/method/bin-table.ts';
import { addSandboxFixtures } from '#src/server/sandbox-fixtures.ts';
import { createServer } from '#src/server/server.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { hashKeys, type InstallationKeys } from '#src/vault/key-file.ts';
import { createTestDatabase, openTestDatabase } from './database.ts';

/** A whole service on a real socket and a real database, with the sandbox's fixtures. */
export type TestServer = {
  readonly url: string;
  readonly databaseUrl: string;
  readonly keys: InstallationKeys;
  /** Every line that the service logged, as in a log file. */
  readonly logLines: readonly string[];
  /** Puts another catalogue, given as text, into force. */
  replaceCatalogue(text: string): void;
  close(): Promise<void>;
};

/**
 * Starts the service.
 *
 * @param options.catalogue the text of a catalogue that replaces the sandbox's.
 */
export async function startTestServer(
  options: {
    config?: Partial<Config>;
    catalogue?: string;
    keys?: InstallationKeys;
    databaseUrl?: string;
    /** The clock of the circuit breakers. */
    nowMs?: () => number;
    /** Runs the catalogue in the database and follows it, under this name; otherwise the database only has it. */
    replica?: string;
  } = {},
): Promise<TestServer> {
  const owned = options.databaseUrl ? undefined : await createTestDatabase();
  const databaseUrl = options.databaseUrl ?? owned?.url ?? '';
  const config: Config = {
    // With a long lease, no payment counts as delayed on a busy machine.
    ...readConfig({
      PORT: '0',
      IN_PROGRESS_WAIT_MS: '2000',
      DRAIN_TIMEOUT_MS: '5000',
      LEASE_MARGIN_MS: '60000',
    }),
    ...options.config,
  };
  const keys = options.keys ?? {
    vaultKeys: new Map([['test-1', randomBytes(32)]]),
    hashKey: randomBytes(32),
  };
  const logLines: string[] = [];
  const log = createLog(
    { level: 'trace', serializers: LOG_SERIALIZERS, base: null },
    { write: (line: string) => logLines.push(line) },
  );
  const catalogue = options.catalogue
    ? parseCatalogue(options.catalogue, 'catalogue')
    : readCatalogue(join(import.meta.dirname, '../../config/sandbox-catalogue.yaml'));
  const database = openTestDatabase(databaseUrl, 8, log);
  await addSandboxFixtures(database, {
    vault: cardVault(keys.vaultKeys),
    fingerprintKey: hashKeys(keys.hashKey).fingerprintKey,
    bins: createBinTable(catalogue.bins),
  });
  await seedCatalogue(database, catalogue, catalogue, 'test');
  const { replica } = options;
  const readCredentials = createCredentialsReader(database, cardVault(keys.vaultKeys));
  const stored = replica ? await readCatalogueInForce(database, readCredentials) : undefined;
  const server = await createServer({
    config,
    catalogue: stored ?? { catalogue, version: 0 },
    keys,
    database,
    databaseUrl,
    log,
    nowMs: options.nowMs,
  });
  const url = await server.listen();
  const { replaceCatalogue: replace, reloaded } = server;
  const following =
    replica &&
    stored &&
    followCatalogue({ database, replica, started: stored, readCredentials, replace, reloaded });
  return {
    url,
    databaseUrl,
    keys,
    logLines,
    replaceCatalogue: (text) =>
      server.replaceCatalogue({ catalogue: parseCatalogue(text, 'catalogue'), version: 0 }),
    async close() {
      if (following) await following.stop();
      await server.close();
      await database.close();
      await owned?.drop();
    },
  };
}
