import { createCredentialsReader, type ReadCredentials } from '#src/catalogue/credentials.ts';
import {
  NO_OBSERVER,
  type OpenCatalogueOptions,
  type OpenedCatalogue,
  openCatalogue,
  type VersionedCatalogue,
} from '#src/catalogue/open-catalogue.ts';
import type { Config } from '#src/config.ts';
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
