import type { Catalogue, ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import { type Credentials, resolveSecrets } from '#src/catalogue/credentials.ts';
import {
  NO_OBSERVER,
  type OpenCatalogueOptions,
  type OpenedCatalogue,
  openCatalogue,
  type VersionedCatalogue,
} from '#src/catalogue/open-catalogue.ts';
import { openConnection } from '#src/catalogue/open-connection.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { type Loop, repeat } from '#src/repeat.ts';
import { ServiceError } from '#src/service-error.ts';
import type { InFlight } from './in-flight.ts';

/** Holds the catalogue in force. */
export type CatalogueHolder = {
  /**
   * Puts the first catalogue in force.
   *
   * @param variables values of `$NAME` in the settings of this and every later catalogue.
   * @throws CatalogueError.
   */
  open(catalogue: VersionedCatalogue, variables: OpenCatalogueOptions['variables']): void;
  /**
   * Puts another catalogue in force. Connections that it no longer uses close once the work in flight has ended.
   *
   * @throws CatalogueError, in which case the previous catalogue stays in force.
   */
  replace(catalogue: VersionedCatalogue, inFlight: InFlight): void;
  /**
   * Opens a catalogue beside the one in force and closes it again. What its connections can do stays known.
   *
   * @throws CatalogueError if it cannot take the place of the one in force.
   */
  tryOpen(catalogue: Catalogue, credentials: Credentials): Promise<Pick<OpenedCatalogue, 'connections'>>;
  /** Opens a single connection, which the caller closes. @throws CatalogueError. */
  openOne(definition: ConnectionConfig, credentials: Credentials): ProviderConnection;
  /** Returns true if the environment has a variable that a secret may refer to. */
  readonly isInEnvironment: (name: string) => boolean;
  readonly isOpen: () => boolean;
  /** @throws ServiceError SERVICE_UNAVAILABLE before the first catalogue is open. */
  readonly opened: () => OpenedCatalogue;
  /** Connections that can look up an outcome; none before the first catalogue is open. */
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  /** Health of the connections that have a circuit breaker. */
  readonly health: () => OpenedCatalogue['health'];
  /** Closes every connection, including those of earlier catalogues. */
  close(): Promise<void>;
};

/** Pause between two probes of the connections with an open circuit. */
const PROBE_EVERY_MS = 500;

/** Creates a holder. No connection is open until `open` is called. */
export function createCatalogueHolder(options: Omit<OpenCatalogueOptions, 'variables'>): CatalogueHolder {
  let current: OpenedCatalogue | undefined;
  let variables: OpenCatalogueOptions['variables'] = {};
  let probing: Loop | undefined;
  let closing: Promise<unknown> = Promise.resolve();

  const health = () => current?.health ?? new Map();
  return {
    open(catalogue, values) {
      variables = values;
      current = openCatalogue(catalogue, { ...options, variables });
      // Probed here, so that no payment has to discover a provider's recovery.
      const probe = () => {
        for (const { probeIfDue } of health().values()) probeIfDue();
      };
      probing = repeat(probe, { intervalMs: PROBE_EVERY_MS });
    },
    replace(catalogue, inFlight) {
      const before = current;
      if (!before) throw new Error('no catalogue is open yet');
      const after = openCatalogue(catalogue, { ...options, variables }, before);
      current = after;
      const gone = inFlight.settled().then(() => before.close(after));
      closing = Promise.allSettled([closing, gone]);
    },
    async tryOpen(catalogue, credentials) {
      const before = current;
      const tried = openCatalogue(
        { catalogue, version: 0, credentials },
        { ...options, variables, observer: NO_OBSERVER },
        before,
      );
      await tried.close(before);
      return tried;
    },
    openOne(definition, credentials) {
      const secrets = resolveSecrets(definition, options.environment, credentials);
      return openConnection(definition, secrets, { ...options, variables });
    },
    isInEnvironment: (name) => options.environment(name) !== undefined,
    isOpen: () => current !== undefined,
    opened: () => current ?? notOpen(),
    connections: () => current?.reachable ?? new Map(),
    health,
    async close() {
      await probing?.stop();
      await closing;
      await current?.close();
    },
  };
}

function notOpen(): never {
  throw new ServiceError('SERVICE_UNAVAILABLE', 'the service is starting; nothing was sent; retry later', {
    retryAfterS: 1,
  });
}
