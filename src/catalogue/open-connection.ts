import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import { redactOutcomes } from '#src/connectors/guards/redact-outcomes.ts';
import type {
  ConnectContext,
  Connector,
  ProviderConnection,
  ReadNotification,
} from '#src/connectors/port/connector.ts';
import { SecretMissingError } from '#src/connectors/port/secret-missing.ts';
import { Secret } from '#src/secret.ts';
import { CatalogueError } from './catalogue-error.ts';
import type { ResolvedSecrets } from './credentials.ts';

/** Options for opening a connection. */
export type OpenConnectionOptions = {
  readonly connectors: readonly Connector[];
  /** URL of the forward proxy through which to reach the providers. */
  readonly proxyUrl?: string | undefined;
  /** Values of `$NAME` in settings: the URL of the mounted sandbox. */
  readonly variables: Readonly<Record<string, string>>;
  /** Key for digests of the credentials that identify a connection's account. */
  readonly identityKey: Uint8Array;
};

/**
 * Opens a connection with its secrets. Its `identity` is that of these secrets.
 *
 * @throws CatalogueError that names the connection, and the setting or secret at fault.
 */
export function openConnection(
  definition: ConnectionConfig,
  { values, previous }: Pick<ResolvedSecrets, 'values' | 'previous'>,
  options: OpenConnectionOptions,
): ProviderConnection {
  const named = `connection ${definition.id}`;
  const connector = options.connectors.find(({ name }) => name === definition.connector);
  if (!connector) throw new CatalogueError(`${named}: there is no connector "${definition.connector}"`);
  const settings = substitute(definition.settings ?? {}, options.variables);
  requireSandbox(definition, options);
  const proxy = options.proxyUrl === undefined ? undefined : new Secret(options.proxyUrl);
  const connect = (secrets: ConnectContext['secrets']) =>
    connector.connect(settings, { providerId: definition.providerId, secrets, proxy });
  try {
    const opened = connect(values);
    const earlier = previous
      .filter(({ name }) => connector.notificationSecrets.includes(name))
      .map(({ name, value, untilMs }) => ({ untilMs, as: connect({ ...values, [name]: value }) }));
    const redacted = redactOutcomes(acceptEarlier(opened, earlier));
    return { ...redacted, identity: wholeIdentity(opened, options) };
  } catch (error) {
    const kind = error instanceof SecretMissingError ? 'SECRET_MISSING' : 'CATALOGUE_INVALID';
    throw new CatalogueError(`${named}: ${(error as Error).message}`, kind, definition.id);
  }
}

/** Checks that the sandbox is mounted if the connection belongs to it. @throws CatalogueError. */
export function requireSandbox(
  { id, settings }: ConnectionConfig,
  { variables }: Pick<OpenConnectionOptions, 'variables'>,
): void {
  const isOfSandbox = Object.values(settings ?? {}).includes('$SANDBOX_URL');
  if (!isOfSandbox || variables.SANDBOX_URL !== undefined) return;
  const advice = 'publish a catalogue of your own (npm run catalogue), or set CATALOGUE_FILE to one';
  throw new CatalogueError(`connection ${id}: belongs to the mounted sandbox, and SANDBOX is off; ${advice}`);
}

type Earlier = { readonly untilMs: number; readonly as: ProviderConnection };

/** Returns a connection that also accepts notifications that are signed with the replaced secrets. */
function acceptEarlier(connection: ProviderConnection, earlier: readonly Earlier[]): ProviderConnection {
  const { readNotification: read } = connection;
  if (!read || earlier.length === 0) return connection;
  const readNotification: ReadNotification = async (notification, nowMs) => {
    const reading = await read(notification, nowMs);
    if (reading.kind !== 'forged') return reading;
    for (const { untilMs, as } of earlier) {
      // A stored notification was accepted in time.
      const isInTime = notification.from === undefined || performance.now() <= untilMs;
      const other = isInTime ? await as.readNotification?.(notification, nowMs) : undefined;
      if (other && other.kind !== 'forged') return other;
    }
    return reading;
  };
  const close = async () => {
    await Promise.all([connection, ...earlier.map(({ as }) => as)].map((one) => one.close()));
  };
  return { ...connection, readNotification, close };
}

/**
 * Returns a connection's identity as stored with its attempts. The values of variables are replaced by their names: the
 * mounted sandbox gets a new port at each start, but is still the same provider.
 */
function wholeIdentity(
  { identity, accountNamedBy }: ProviderConnection,
  { variables, identityKey }: OpenConnectionOptions,
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
