import { create, type JsonValue } from '@bufbuild/protobuf';
import { type Catalogue, CatalogueSchema, type ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import { isOwnAddress } from '#src/connectors/kit/account-report.ts';
import type { Connector } from '#src/connectors/port/connector.ts';
import { type FieldError, invalidParameters, ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { countOwedAt, MOST_OWED, type OwedAt, readRefundTerm } from '#src/store/tables/catalogue-versions.ts';
import { isUrlOf } from '#src/variables.ts';

/**
 * Days for which a retired connection is kept, so that its payments can be refunded. It covers the terms in which
 * providers refund payments without asking, and in which most disputes begin.
 */
const REFUND_TERM_DAYS = 180;

/**
 * Checks that nobody still needs the connections that a change removes. The mounted sandbox's own connections, where no
 * money moves, can always be removed.
 *
 * @throws ServiceError CONNECTION_IN_USE that names the first one, and the reason.
 */
export async function requireUnused(database: Database, before: Catalogue, after: Catalogue): Promise<void> {
  const kept = new Set(after.connections.map(({ id }) => id));
  for (const { id, retired, settings } of before.connections) {
    if (kept.has(id) || addressesIn(settings ?? {}).includes(SANDBOX)) continue;
    if (!retired) throw inUse(id, 'takes payments', 'retire it');
    const owed = describeOwed(await countOwedAt(database, id));
    if (owed !== '') throw inUse(id, `has ${owed}`, 'keep it as retired until nothing is open');
    const until = await readRefundTerm(database, id, REFUND_TERM_DAYS);
    if (until) throw inUse(id, 'has payments', `keep it as retired until ${until.toISOString()} for refunds`);
  }
}

function inUse(id: string, why: string, advice: string): ServiceError {
  return new ServiceError('CONNECTION_IN_USE', `connection ${id} ${why}; nothing was published; ${advice}`);
}

/** Describes open work at a connection; "" if there is none. */
export function describeOwed({ due, disputes, wallets }: OwedAt): string {
  const kinds = [
    [due, 'transactions to be checked'],
    [disputes, 'open disputes'],
    [wallets, 'enrolled wallets'],
  ] as const;
  return kinds
    .filter(([count]) => count > 0)
    .map(([count, what]) => `${count >= MOST_OWED ? `${MOST_OWED} or more` : count} ${what}`)
    .join(', ');
}

/**
 * Checks that a change names no variable of the environment that its connection does not already have in force: whoever
 * may edit the catalogue could otherwise send any secret of the service to an address of their own.
 *
 * @throws ServiceError INVALID_PARAMETERS.
 */
export function requireKnownSecrets(before: Catalogue, after: Catalogue): void {
  const faults = compareConnections(before, after, (now, then) => {
    const known = then?.connector === now.connector ? then.secretsFromEnvironment : {};
    const entries = Object.entries(now.secretsFromEnvironment);
    const isKnown = entries.every(
      ([name, variable]) => Object.hasOwn(known, name) && known[name] === variable,
    );
    return isKnown ? undefined : SECRETS_REFUSED;
  });
  if (faults.length > 0) throw invalidParameters(faults);
}

/** The addresses that settings may name in a change through the API. */
export type AddressRules = {
  /** Their own hosts are allowed, over HTTPS. */
  readonly connectors: readonly Connector[];
  /** As in CONNECTION_HOSTS. */
  readonly connectionHosts: readonly string[];
};

/**
 * Checks that a change names no address that its connection does not already have in force, unless it is its provider's
 * own or the configuration allows its host: an address gets the provider's secrets.
 *
 * @throws ServiceError INVALID_PARAMETERS.
 */
export function requireKnownAddresses(
  before: Catalogue,
  after: Catalogue,
  { connectors, connectionHosts }: AddressRules,
): void {
  const faults = compareConnections(before, after, (now, then) => {
    const known = then?.connector === now.connector ? addressesOf(then) : [];
    const hosts = connectors.find(({ name }) => name === now.connector)?.hosts;
    const isKnown = (address: string) =>
      known.includes(address) ||
      connectionHosts.includes(URL.parse(address)?.host ?? '') ||
      (hosts !== undefined && isOwnAddress(hosts, address));
    return addressesOf(now).every(isKnown) ? undefined : ADDRESS_REFUSED;
  });
  if (faults.length > 0) throw invalidParameters(faults);
}

/** Checks a connection as its publication would. @throws ServiceError that names fields of `connection`. */
export function requireSafeConnection(
  rules: AddressRules,
  definition: ConnectionConfig,
  before: ConnectionConfig | undefined,
): void {
  const only = (connections: ConnectionConfig[]) => create(CatalogueSchema, { connections });
  const [now, then] = [only([definition]), only(before ? [before] : [])];
  try {
    requireKnownSecrets(then, now);
    requireKnownAddresses(then, now, rules);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw invalidParameters(
      error.fields.map((fault) => ({ ...fault, field: fault.field.replace('connections[0]', 'connection') })),
    );
  }
}

const SECRETS_REFUSED = {
  name: 'secrets_from_environment',
  message: 'must be as in force; publish it with: npm run catalogue -- publish --secrets-from-environment',
};
const ADDRESS_REFUSED = {
  name: 'settings',
  message: 'names an address that is not its provider’s own, and whose host CONNECTION_HOSTS does not list',
};

type Refusal = { readonly name: string; readonly message: string };

function compareConnections(
  before: Catalogue,
  after: Catalogue,
  check: (now: ConnectionConfig, then: ConnectionConfig | undefined) => Refusal | undefined,
): FieldError[] {
  const known = new Map(before.connections.map((one) => [one.id, one]));
  return after.connections.flatMap((now, i) => {
    const refusal = check(now, known.get(now.id));
    if (!refusal) return [];
    return [{ field: `connections[${i}].${refusal.name}`, code: 'NOT_ALLOWED', message: refusal.message }];
  });
}

/** The address of the mounted sandbox, which is always allowed. */
const SANDBOX = '$SANDBOX_URL';

/** Returns the texts in a connection's settings that are addresses, or become one when a variable is replaced. */
export function addressesOf(connection: ConnectionConfig): string[] {
  return addressesIn(connection.settings ?? {}).filter((address) => address !== SANDBOX);
}

function addressesIn(value: JsonValue): string[] {
  if (typeof value === 'string')
    return isUrlOf(value, ['http:', 'https:']) || /\$[A-Z_]/.test(value) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(addressesIn);
}
