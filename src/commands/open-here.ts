import type { Catalogue } from '#gen/payments/v1/catalogue_pb.js';
import { CatalogueError } from '#src/catalogue/catalogue-error.ts';
import {
  createCredentialsReader,
  NO_CREDENTIALS,
  type ReadCredentials,
  resolveSecrets,
} from '#src/catalogue/credentials.ts';
import {
  NO_OBSERVER,
  type OpenCatalogueOptions,
  type OpenedCatalogue,
  openCatalogue,
  type VersionedCatalogue,
} from '#src/catalogue/open-catalogue.ts';
import { openConnection } from '#src/catalogue/open-connection.ts';
import type { Config } from '#src/config.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { createApprovalRates } from '#src/routing/approval-rates.ts';
import type { Database } from '#src/store/engine/database.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { hashKeys, installationKeys } from '#src/vault/key-file.ts';

/**
 * Opens a catalogue in a command's process, with the service's environment. It calls no provider.
 *
 * @throws CatalogueError.
 */
export function openHere(
  config: HereConfig,
  catalogue: VersionedCatalogue,
  predecessor?: OpenedCatalogue,
): OpenedCatalogue {
  return openCatalogue(catalogue, optionsHere(config), predecessor);
}

/**
 * Opens each connection of a catalogue that can be opened with the environment's secrets, and closes it: what it can do stays
 * known.
 */
export async function openableHere(
  config: HereConfig,
  { connections }: Catalogue,
): Promise<OpenedCatalogue['connections']> {
  const options = optionsHere(config);
  const opened = new Map<string, ProviderConnection>();
  for (const definition of connections) {
    try {
      const secrets = resolveSecrets(definition, options.environment, NO_CREDENTIALS);
      opened.set(definition.id, openConnection(definition, secrets, options));
    } catch (error) {
      if (!(error instanceof CatalogueError)) throw error;
    }
  }
  await Promise.all([...opened.values()].map((connection) => connection.close()));
  return opened;
}

/** Returns a reader of the stored credentials, with the vault's keys of this machine. */
export function credentialsHere(
  database: Database,
  config: Pick<Config, 'vaultKeys' | 'hashKey'>,
  dataDir: string | undefined,
): ReadCredentials {
  return createCredentialsReader(database, cardVault(installationKeys(config, dataDir).vaultKeys));
}

/** The part of the service's configuration that opens connections. */
export type HereConfig = Pick<
  Config,
  'environment' | 'sandbox' | 'maxInFlight' | 'providerProxyUrl' | 'hashKey'
>;

/** Returns the options for opening connections in a command's process. */
export function optionsHere(config: HereConfig): OpenCatalogueOptions {
  const { identityKey, sandboxApiKey } = hashKeys(config.hashKey ?? new Uint8Array());
  // The mounted sandbox is not called here. Its key is the service's own, since it identifies the sandbox's account.
  const ofSandbox: Readonly<Record<string, string>> = {
    SANDBOX_API_KEY: sandboxApiKey,
    SANDBOX_NOTIFICATION_SECRET: 'of-the-mounted-sandbox',
  };
  return {
    connectors: CONNECTORS,
    environment: (name: string) => config.environment(name) ?? (config.sandbox ? ofSandbox[name] : undefined),
    maxInFlight: config.maxInFlight,
    proxyUrl: config.providerProxyUrl,
    identityKey,
    variables: config.sandbox ? { SANDBOX_URL: 'http://127.0.0.1:1' } : {},
    rates: createApprovalRates(),
    observer: NO_OBSERVER,
  };
}
