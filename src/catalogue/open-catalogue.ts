import { equals } from '@bufbuild/protobuf';
import {
  type Catalogue,
  type CircuitBreaker,
  type ConnectionConfig,
  ConnectionConfigSchema,
} from '#gen/payments/v1/catalogue_pb.js';
import type { BreakerSettings, CircuitState } from '#src/connectors/guards/circuit.ts';
import {
  type ConnectionHealth,
  type GuardedConnection,
  guardConnection,
} from '#src/connectors/guards/circuit-breaker.ts';
import { defaultCallLimit, limitCalls } from '#src/connectors/guards/limit-calls.ts';
import { measureLatency } from '#src/connectors/guards/measure-latency.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { createBinTable } from '#src/payments/method/bin-table.ts';
import type { LiveCatalogue } from '#src/payments/route/live-catalogue.ts';
import type { ApprovalRates } from '#src/routing/approval-rates.ts';
import type { Signals } from '#src/routing/order-targets.ts';
import { createRouter } from '#src/routing/router.ts';
import { CatalogueError } from './catalogue-error.ts';
import {
  type Credentials,
  isOfAccount,
  NO_CREDENTIALS,
  type ResolvedSecrets,
  resolveSecrets,
} from './credentials.ts';
import { type OpenConnectionOptions, openConnection, requireSandbox } from './open-connection.ts';

/** Options for opening a catalogue. */
export type OpenCatalogueOptions = OpenConnectionOptions & {
  /** Reads an environment variable that a connection's secret refers to. */
  readonly environment: (name: string) => string | undefined;
  /** Approval rates of connections, which outlive a catalogue. */
  readonly rates: ApprovalRates;
  readonly observer: CatalogueObserver;
  /** Limit on the calls that the process has in flight. It determines the default limit of a connection. */
  readonly maxInFlight: number;
  /** Monotonic clock of the circuit breakers, in milliseconds; by default the process's own. */
  readonly nowMs?: (() => number) | undefined;
};

/** Receives the events of an open catalogue, for metrics and logs. */
export type CatalogueObserver = {
  conditionFailed(routeId: number, error: unknown): void;
  circuitChanged(connectionId: string, state: CircuitState): void;
  /** Called when a background probe fails, once for each problem until the circuit closes. */
  probeFailed(connectionId: string, problem: string): void;
  /** Called when a connection was removed from the catalogue. It is kept for checks until the process restarts. */
  connectionRetired(connectionId: string): void;
};

/** An observer for a catalogue that is opened only to see that it can be. */
export const NO_OBSERVER: CatalogueObserver = {
  conditionFailed() {},
  circuitChanged() {},
  probeFailed() {},
  connectionRetired() {},
};

/** A catalogue with its connections open. */
export type OpenedCatalogue = LiveCatalogue & {
  readonly catalogue: Catalogue;
  /**
   * Connections that can look up an outcome: those in force, and earlier connections, whose payments may have open
   * outcomes.
   */
  readonly reachable: ReadonlyMap<string, ProviderConnection>;
  /** The connections' health by id, for connections with a circuit breaker. */
  readonly health: ReadonlyMap<string, ConnectionHealth>;
  /** The keys of the connections' secrets by id (`ResolvedSecrets`). */
  readonly secretKeys: ReadonlyMap<string, string>;
  /** Closes the connections that `successor` does not use, once their calls have ended. */
  close(successor?: OpenedCatalogue): Promise<void>;
};

/** A catalogue with its version; 0 for a catalogue from a file. */
export type VersionedCatalogue = {
  readonly catalogue: Catalogue;
  readonly version: number;
  /** Absent for a file. */
  readonly credentials?: Credentials;
};

/**
 * Prepares a catalogue for payments and opens its connections. A retired connection without its secrets stays closed: an
 * undo must work in an incident, and what the connection still owes is reported like that of a removed one.
 *
 * @param predecessor the catalogue whose connections are taken over, with their health, if they have the same
 * definition (whatever the agreed fees) and secrets. A connection of which only the secrets differ keeps its health.
 * @throws CatalogueError that names the connection and the setting at fault, or an id that now points to a different
 * account; in that case, everything that was opened is closed again.
 */
export function openCatalogue(
  { catalogue, version, credentials = NO_CREDENTIALS }: VersionedCatalogue,
  options: OpenCatalogueOptions,
  predecessor?: OpenedCatalogue,
): OpenedCatalogue {
  const { rates, observer } = options;
  const connections = new Map<string, ProviderConnection>();
  const health = new Map<string, ConnectionHealth>();
  const secretKeys = new Map<string, string>();
  const signals: Signals = {
    isAvailable: (id) =>
      (health.get(id)?.isAvailable() ?? true) && (connections.get(id)?.slots?.hasRoom() ?? true),
    approvalRate: (id, facts) => rates.rate(id, facts).rate,
  };
  const earlier = new Map(predecessor?.catalogue.connections.map((one) => [one.id, one]));

  function open(definition: ConnectionConfig): void {
    const { id } = definition;
    // The better reason than its secrets, which are missing too.
    requireSandbox(definition, options);
    const secrets = resolveSecrets(definition, options.environment, credentials);
    const before = earlier.get(id);
    const isDefinedAlike = before !== undefined && isOpenedAlike(before, definition);
    const isSame = isDefinedAlike && predecessor?.secretKeys.get(id) === secrets.key;
    const kept = isSame ? predecessor.connections.get(id) : undefined;
    const known = isDefinedAlike ? predecessor?.health.get(id) : undefined;
    const connection = kept ?? openAnew(definition, secrets);
    connections.set(id, connection);
    secretKeys.set(id, secrets.key);
    const settings = breakerSettings(definition.circuitBreaker);
    if (!settings) return;
    if (kept && known) {
      health.set(id, known);
      return;
    }
    const guarded = known?.renew(connection) ?? guard(connection, settings, id, options);
    connections.set(id, guarded);
    health.set(id, guarded.health);
  }

  function openAnew(definition: ConnectionConfig, secrets: ResolvedSecrets): ProviderConnection {
    const opened = withTerms(openConnection(definition, secrets, options), definition, options);
    const { id } = definition;
    try {
      return { ...opened, identity: identityOf(id, opened.identity, credentials, predecessor) };
    } catch (error) {
      opened.close().catch(() => {});
      throw error;
    }
  }

  try {
    openAll(catalogue, open);
    const router = createRouter(catalogue, signals, observer.conditionFailed);
    const reachable = new Map([...(predecessor?.reachable ?? []), ...connections]);
    for (const id of predecessor?.connections.keys() ?? []) {
      if (!connections.has(id)) observer.connectionRetired(id);
    }
    return {
      catalogue,
      version,
      types: new Map(catalogue.paymentMethodTypes.map((type) => [type.type, type])),
      router,
      bins: createBinTable(catalogue.bins),
      connections,
      reachable,
      signals,
      health,
      secretKeys,
      learn: (id, facts, outcome) => rates.learn(id, facts, outcome),
      close: (successor) => closeAll(reachable, successor?.reachable),
    };
  } catch (error) {
    closeAll(connections, predecessor?.connections).catch(() => {});
    if (error instanceof CatalogueError) error.version = version;
    throw error;
  }
}

/** Returns true if the connections of two definitions do the same. The agreed fees are read when reports are matched. */
function isOpenedAlike(one: ConnectionConfig, other: ConnectionConfig): boolean {
  return equals(ConnectionConfigSchema, { ...one, agreedFees: [] }, { ...other, agreedFees: [] });
}

/**
 * Opens every connection. A retired one whose secret is gone stays closed: what it still owes is reported like that of a
 * connection that was removed.
 *
 * @throws CatalogueError of the first connection that cannot be opened, with those of the others.
 */
function openAll({ connections }: Catalogue, open: (definition: ConnectionConfig) => void): void {
  const faults: CatalogueError[] = [];
  for (const definition of connections) {
    try {
      open(definition);
    } catch (error) {
      if (!(error instanceof CatalogueError)) throw error;
      if (!definition.retired || error.kind !== 'SECRET_MISSING') faults.push(error);
    }
  }
  const [first, ...others] = faults;
  if (first) throw Object.assign(first, { others });
}

/** Returns the identities of a catalogue's open connections by id. */
export function identitiesOf({
  connections,
}: Pick<OpenedCatalogue, 'connections'>): ReadonlyMap<string, string> {
  return new Map([...connections].map(([id, { identity }]) => [id, identity]));
}

/**
 * Returns the identity that a connection's transactions get: the first one of its account.
 *
 * @param own the identity of its present secrets.
 * @throws CatalogueError CONNECTION_REPOINTED if it is not an account's for which the id has stood. At a start, such a
 * connection is opened as another account, whose outcomes alone it looks up.
 */
function identityOf(
  id: string,
  own: string,
  { accounts }: Credentials,
  predecessor: OpenedCatalogue | undefined,
): string {
  const account = accounts.get(id);
  if (account && isOfAccount(account, own)) return account.identity;
  const before = predecessor?.reachable.get(id);
  const isAnother = account ? predecessor !== undefined : before !== undefined && before.identity !== own;
  if (!isAnother) return own;
  throw new CatalogueError(
    `connection ${id}: now points to a different account (another URL, another account, or another credential that identifies the account); give that account another connection id`,
    'CONNECTION_REPOINTED',
    id,
  );
}

function guard(
  connection: ProviderConnection,
  settings: BreakerSettings,
  id: string,
  { observer, nowMs }: OpenCatalogueOptions,
): GuardedConnection {
  return guardConnection(connection, settings, {
    changed: (state) => observer.circuitChanged(id, state),
    probeFailed: (problem) => observer.probeFailed(id, problem),
    ...(nowMs && { nowMs }),
  });
}

async function closeAll(
  connections: ReadonlyMap<string, ProviderConnection>,
  kept: ReadonlyMap<string, ProviderConnection> | undefined,
): Promise<void> {
  const keptOnes = new Set(kept?.values());
  const ended = [...connections.values()].filter((connection) => !keptOnes.has(connection));
  await Promise.all(ended.map((connection) => connection.close()));
}

/** Applies the operator's terms with the provider, which override the connector's own and the defaults. */
function withTerms(
  connection: ProviderConnection,
  definition: ConnectionConfig,
  { maxInFlight }: OpenCatalogueOptions,
): ProviderConnection {
  const { capabilities } = connection;
  const {
    authorizationValidDays = capabilities.authorizationValidDays,
    redirectValidMinutes = capabilities.redirectValidMinutes,
  } = definition;
  const terms = { ...capabilities, authorizationValidDays, redirectValidMinutes };
  const limit = definition.maxInFlight ?? defaultCallLimit(maxInFlight);
  return limitCalls(measureLatency({ ...connection, capabilities: terms }), limit);
}

/** Returns a breaker's settings; undefined if it is off. */
function breakerSettings(breaker: CircuitBreaker | undefined) {
  if (breaker?.off) return undefined;
  return {
    failureRate: (breaker?.failurePercent ?? 50) / 100,
    minCalls: breaker?.minCalls ?? 10,
    windowMs: (breaker?.windowS ?? 30) * 1000,
    openMs: (breaker?.openS ?? 15) * 1000,
  };
}
