import type { Share } from '#src/slots.ts';
import type { Credentials } from './authenticate.ts';

/** Limits on the share of the slots that one account or one client address may hold. */
export type ShareLimits = {
  /** Maximum percentage of the slots for a kind of call that one account may hold. */
  readonly accountSharePercent: number;
  /** Maximum percentage of the slots for calls without a verified secret that one address may hold. */
  readonly addressSharePercent: number;
};

/**
 * Share for calls without a verified secret. Anybody can make them, since public keys are in web pages; the other half
 * is reserved for merchants' servers.
 */
const PUBLIC_FRACTION = 0.5;

/**
 * Returns the shares that a call counts against.
 *
 * @param credentials undefined while the caller is unknown.
 * @param address called only without a verified secret, since a merchant's servers legitimately share few addresses.
 */
export function sharesOf(
  credentials: Credentials | undefined,
  address: () => string,
  limits: ShareLimits,
): readonly Share[] {
  const ofAccount = limits.accountSharePercent / 100;
  if (credentials?.secretPresented) return [{ group: credentials.accountId, fraction: ofAccount }];
  const from = addressGroup(address());
  const ofAddress = limits.addressSharePercent / 100;
  const shares = [
    { group: 'public', fraction: PUBLIC_FRACTION },
    { group: `public ${from}`, fraction: PUBLIC_FRACTION * ofAddress },
  ];
  if (!credentials) return shares;
  const { accountId } = credentials;
  return [
    ...shares,
    { group: `public ${accountId}`, fraction: PUBLIC_FRACTION * ofAccount },
    // A client with one public key must crowd out neither the account's other payers nor other clients at its address.
    { group: `public ${accountId} ${from}`, fraction: PUBLIC_FRACTION * ofAccount * ofAddress },
  ];
}

const IPV6_GROUPS = 8;

/**
 * Returns the client to which an IP address belongs: the IPv4 address itself, or the /64 network of an IPv6 subscriber.
 */
export function addressGroup(address: string): string {
  if (address.startsWith('::ffff:')) return address.slice('::ffff:'.length);
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const rest = tail ? tail.split(':').length : 0;
  while (tail !== undefined && groups.length + rest < IPV6_GROUPS) groups.push('0');
  return `${groups.slice(0, IPV6_GROUPS / 2).join(':')}::/64`;
}
