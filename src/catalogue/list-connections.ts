import { create, getOption } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { Catalogue, ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import { sensitive } from '#gen/payments/v1/json_options_pb.js';
import {
  type Connection,
  type ConnectionSecret,
  ConnectionSecretSchema,
} from '#gen/payments/v1/operator_service_pb.js';
import type { Connector } from '#src/connectors/port/connector.ts';
import { describeConnection, type ExplainedCatalogue } from '#src/payments/route/explain-route.ts';
import { countOpenAttempts } from '#src/store/engine/checks.ts';
import type { Database } from '#src/store/engine/database.ts';
import type { SecretEntry } from '#src/store/tables/connection-secrets.ts';

/** Dependencies of the list of connections. */
export type ListedDeps = {
  readonly database: Database;
  readonly connectors: readonly Connector[];
  /** Returns true if the environment has a variable. */
  readonly isInEnvironment: (name: string) => boolean;
  /** Lists the stored secrets; none if the catalogue comes from a file. */
  readonly readSecretEntries: () => Promise<readonly SecretEntry[]>;
};

/** The maximum to which open outcomes are counted. */
const MAX_OPEN = 10_000;

/** Describes the connections of a catalogue, with their open outcomes and the sources of their secrets. */
export async function listConnections(
  { catalogue, signals, health }: ExplainedCatalogue & { readonly catalogue: Catalogue },
  deps: ListedDeps,
): Promise<Connection[]> {
  const [attempts, entries] = await Promise.all([
    countOpenAttempts(deps.database, MAX_OPEN),
    deps.readSecretEntries(),
  ]);
  const open = new Map<string, number>();
  for (const { connectionId, open: more } of attempts) {
    open.set(connectionId, (open.get(connectionId) ?? 0) + more);
  }
  return catalogue.connections.map((definition) => ({
    ...describeConnection(definition, signals, health),
    openOutcomes: open.get(definition.id) ?? 0,
    secrets: secretsOf(definition, entries, deps),
  }));
}

function secretsOf(
  { id, connector, secretsFromEnvironment }: ConnectionConfig,
  entries: readonly SecretEntry[],
  { connectors, isInEnvironment }: ListedDeps,
): ConnectionSecret[] {
  const { settings } = connectors.find(({ name }) => name === connector) ?? {};
  const names = (settings?.schema.fields ?? []).filter((field) => getOption(field, sensitive));
  return names.map(({ name }) => {
    const stored = entries.find((one) => one.connectionId === id && one.name === name);
    const variable = secretsFromEnvironment[name];
    const isSet = variable !== undefined && isInEnvironment(variable);
    return create(
      ConnectionSecretSchema,
      stored ? { name, ...storedSecret(stored) } : { name, source: isSet ? 'ENVIRONMENT' : 'MISSING' },
    );
  });
}

function storedSecret({ setAt, actor, previousUntil }: SecretEntry) {
  return {
    source: 'STORED',
    setAt: timestampFromDate(setAt),
    actor,
    ...(previousUntil && { previousUntil: timestampFromDate(previousUntil) }),
  };
}
