import {
  NO_OBSERVER,
  type OpenedCatalogue,
  openCatalogue,
  type VersionedCatalogue,
} from '#src/catalogue/open-catalogue.ts';
import type { Config } from '#src/config.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { createApprovalRates } from '#src/routing/approval-rates.ts';
import { hashKeys } from '#src/vault/key-file.ts';

/**
 * Opens a catalogue in a command's process, with the service's environment. It calls no provider.
 *
 * @throws CatalogueError.
 */
export function openHere(
  config: Pick<Config, 'environment' | 'sandbox' | 'maxInFlight' | 'providerProxyUrl' | 'hashKey'>,
  catalogue: VersionedCatalogue,
  predecessor?: OpenedCatalogue,
): OpenedCatalogue {
  const options = {
    connectors: CONNECTORS,
    // The service itself supplies the URL and keys of the mounted sandbox; they are not needed here.
    environment: (name: string) =>
      config.environment(name) ?? (config.sandbox ? SANDBOX_ENVIRONMENT[name] : undefined),
    maxInFlight: config.maxInFlight,
    proxyUrl: config.providerProxyUrl,
    identityKey: hashKeys(config.hashKey ?? new Uint8Array()).identityKey,
    variables: config.sandbox ? { SANDBOX_URL: 'http://127.0.0.1:1' } : {},
    rates: createApprovalRates(),
    observer: NO_OBSERVER,
  };
  return openCatalogue(catalogue, options, predecessor);
}

/** Placeholder settings for the mounted sandbox's connections, which are not called. */
const SANDBOX_ENVIRONMENT: Readonly<Record<string, string>> = {
  SANDBOX_API_KEY: 'of-the-mounted-sandbox',
  SANDBOX_NOTIFICATION_SECRET: 'of-the-mounted-sandbox',
};
