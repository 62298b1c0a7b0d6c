import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import { isMetadataAddress, isPublicAddress } from '#src/public-address.ts';
import { fieldRefusal } from '#src/service-error.ts';
import { type AddressRules, addressesOf } from './require-safe-change.ts';

const NOT_PUBLIC = 'names an address that is not public; nothing was sent';
const RESOLVE_TIMEOUT_MS = 5_000;

/** The addresses that a connection may reach before it is in force. */
export type ReachRules = AddressRules & {
  /** Returns the addresses of a host's name; none if it has none. By default the system's. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
};

/**
 * Checks that no address of a connection leads to a cloud's description of this machine; and that the provider's own names
 * lead to public addresses, since whoever answers for a name could otherwise read what is listening here. A name that
 * cannot be resolved here may be resolved by the proxy.
 *
 * @param before the connection in force with its id, whose addresses may be private; undefined if there is none.
 * @throws ServiceError INVALID_PARAMETERS for the field `connection.settings`.
 */
export async function requirePublicAddresses(
  { connectors, connectionHosts, resolve = resolveHere }: ReachRules,
  definition: ConnectionConfig,
  before: ConnectionConfig | undefined,
): Promise<void> {
  const { defaults } = connectors.find(({ name }) => name === definition.connector)?.settings ?? {};
  const calledBy = (one: ConnectionConfig) =>
    addressesOf({ ...one, settings: { ...defaults, ...one.settings } });
  const known = before?.connector === definition.connector ? calledBy(before) : [];
  for (const address of calledBy(definition)) {
    const { host = '', hostname = '' } = URL.parse(address) ?? {};
    const mayBePrivate = connectionHosts.includes(host) || known.includes(address);
    const name = hostname.replace(/^\[|\]$/g, '');
    const found = isIP(name) === 0 ? await resolve(name) : [name];
    const isAllowed = (ip: string) => !isMetadataAddress(ip) && (mayBePrivate || isPublicAddress(ip));
    if (found.every(isAllowed)) continue;
    throw fieldRefusal('INVALID_PARAMETERS', 'connection.settings', 'NOT_ALLOWED', NOT_PUBLIC);
  }
}

/** Resolves a name, within a time after which a connection could not be opened either. */
async function resolveHere(host: string): Promise<readonly string[]> {
  const late = Promise.withResolvers<readonly string[]>();
  const timer = setTimeout(() => late.resolve([]), RESOLVE_TIMEOUT_MS);
  const found = lookup(host, { all: true }).then(
    (addresses) => addresses.map(({ address }) => address),
    () => [],
  );
  try {
    return await Promise.race([found, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
