import { equals, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import {
  type Catalogue,
  type CircuitBreaker,
  type ConnectionConfig,
  ConnectionConfigSchema,
} from '#gen/payments/v1/catalogue_pb.js';
import type { CircuitState } from '#src/connectors/guards/circuit.ts';
import { type ConnectionHealth, guardConnection } from '#src/connectors/guards/circuit-breaker.ts';
import { defaultCallLimit, limitCalls } from '#src/connectors/guards/limit-calls.ts';
import { redactOutcomes } from '#src/connectors/guards/redact-outcomes.ts';
import type { Connector, ProviderConnection } from '#src/connectors/port/connector.ts';
import { createBinTable } from '#src/payments/method/bin-table.ts';
import type { LiveCatalogue } from '#src/payments/route/live-catalogue.ts';
import type { ApprovalRates } from '#src/routing/approval-rates.ts';
import type { Signals } from '#src/routing/order-targets.ts';
import { createRouter } from '#src/routing/router.ts';
import { Secret } from '#src/secret.ts';
import { CatalogueError } from './catalogue-error.ts';

/** Options for opening a catalogue. */
export type OpenCatalogueOptions = {
  readonly connectors: readonly Connector[];
  /** Reads an environment variable that a connection's secret refers to. */
  readonly environment: (name: string) => string | undefined;
  /** URL of the forward proxy through which to reach the providers. */
  readonly proxyUrl?: string | undefined;
  /** Values of `$NAME` in settings: the URL of the mounted sandbox. */
  readonly variables: Readonly<Record<string, string>>;
  /** Key for digests of the credentials that identify a connection's account. */
  readonly identityKey: Uint8Array;
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
  /** Closes the connections that `successor` does not use, once their calls have ended. */
  close(successor?: OpenedCatalogue): Promise<void>;
};

/** A catalogue with its version; 0 for a catalogue from a file. */
export type VersionedCatalogue = { readonly catalogue: Catalogue; readonly version: number };

/**
 * Prepares a catalogue for payments and opens its connections.
 *
 * @param predecessor the catalogue whose connections are taken over, with their health, if they have the same
 * definition.
 * @throws CatalogueError that names the connection and the setting at fault, or an id that now points to a different
 * account; in that case, everything that was opened is closed again.
 */
export function openCatalogue(
  { catalogue, version }: VersionedCatalogue,
  options: OpenCatalogueOptions,
  predecessor?: OpenedCatalogue,
): OpenedCatalogue {
  const { rates, observer } = options;
  const connections = new Map<string, ProviderConnection>();
  const health = new Map<string, ConnectionHealth>();
  const signals: Signals = {
    isAvailable: (id) =>
      (health.get(id)?.isAvailable() ?? true) && (connections.get(id)?.slots?.hasRoom() ?? true),
    approvalRate: (id, facts) => rates.rate(id, facts).rate,
  };

  function open(definition: ConnectionConfig): void {
    const { id } = definition;
    const kept = takeOver(definition, predecessor);
    const connection = kept ?? withTerms(openConnection(definition, options), definition, options);
    connections.set(id, connection);
    const before = predecessor?.reachable.get(id);
    if (before && before.identity !== connection.identity) {
      throw new CatalogueError(
        `connection ${id}: now points to a different account (another URL, another account, or another credential that identifies the account); give that account another connection id`,
        'CONNECTION_REPOINTED',
        id,
      );
    }
    const known = kept && predecessor?.health.get(id);
    if (known) health.set(id, known);
    const settings = !kept && breakerSettings(definition.circuitBreaker);
    if (!settings) return;
    const guarded = guardConnection(connection, settings, {
      changed: (state) => observer.circuitChanged(id, state),
      probeFailed: (problem) => observer.probeFailed(id, problem),
      ...(options.nowMs && { nowMs: options.nowMs }),
    });
    connections.set(id, guarded);
    health.set(id, guarded.health);
  }

  try {
    for (const definition of catalogue.connections) {
      if (!isWithoutSecret(definition, options)) open(definition);
    }
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
      learn: (id, facts, outcome) => rates.learn(id, facts, outcome),
      close: (successor) => closeAll(reachable, successor?.reachable),
    };
  } catch (error) {
    closeAll(connections, predecessor?.connections).catch(() => {});
    if (error instanceof CatalogueError) error.version = version;
    throw error;
  }
}

/**
 * Reports whether a connection stays closed: it is retired, and a secret of it is gone. An undo must work in an incident,
 * and what such a connection still owes is reported like that of a connection that was removed.
 */
function isWithoutSecret(
  { retired, secretsFromEnvironment }: ConnectionConfig,
  { environment }: OpenCatalogueOptions,
): boolean {
  return retired && Object.values(secretsFromEnvironment).some((name) => environment(name) === undefined);
}

function takeOver(
  definition: ConnectionConfig,
  predecessor: OpenedCatalogue | undefined,
): ProviderConnection | undefined {
  const before = predecessor?.catalogue.connections.find(({ id }) => id === definition.id);
  return before && equals(ConnectionConfigSchema, before, definition)
    ? predecessor?.connections.get(definition.id)
    : undefined;
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
  return limitCalls({ ...connection, capabilities: terms }, limit);
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

function openConnection(connection: ConnectionConfig, options: OpenCatalogueOptions): ProviderConnection {
  const named = `connection ${connection.id}`;
  const connector = options.connectors.find(({ name }) => name === connection.connector);
  if (!connector) throw new CatalogueError(`${named}: there is no connector "${connection.connector}"`);
  const settings = substitute(connection.settings ?? {}, options.variables);
  if (Object.values(settings).includes('$SANDBOX_URL')) {
    const advice = 'publish a catalogue of your own (npm run catalogue), or set CATALOGUE_FILE to one';
    throw new CatalogueError(`${named}: belongs to the mounted sandbox, and SANDBOX is off; ${advice}`);
  }
  const secrets: Record<string, Secret> = {};
  for (const [name, variable] of Object.entries(connection.secretsFromEnvironment)) {
    const value = options.environment(variable);
    if (value === undefined)
      throw new CatalogueError(
        `${named}: the environment variable ${variable} is not set`,
        'SECRET_MISSING',
        connection.id,
      );
    secrets[name] = new Secret(value);
  }
  try {
    const proxy = options.proxyUrl === undefined ? undefined : new Secret(options.proxyUrl);
    const context = { providerId: connection.providerId, secrets, proxy };
    const opened = redactOutcomes(connector.connect(settings, context));
    return { ...opened, identity: wholeIdentity(opened, options) };
  } catch (error) {
    throw new CatalogueError(`${named}: ${(error as Error).message}`, 'CATALOGUE_INVALID', connection.id);
  }
}

/**
 * Returns a connection's identity as stored with its attempts. The values of variables are replaced by their names: the
 * mounted sandbox gets a new port at each start, but is still the same provider.
 */
function wholeIdentity(
  { identity, accountNamedBy }: ProviderConnection,
  { variables, identityKey }: OpenCatalogueOptions,
): string {
  const named = Object.entries(variables).reduce(
    (text, [name, value]) => text.replaceAll(value, () => `$${name}`),
    identity,
  );
  return accountNamedBy ? `${named} ${accountNamedBy.digest(identityKey)}` : named;
}

function substitute(settings: JsonObject, variables: Readonly<Record<string, string>>): JsonObject {
  const replace = (value: JsonValue): JsonValue =>
    typeof value === 'string'
      ? value.replace(/\$([A-Z_]+)/g, (whole, name) => variables[name] ?? whole)
      : value;
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, replace(value)]));
}
