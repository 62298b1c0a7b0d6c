import { BlockList, isIP } from 'node:net';

// IANA's special-purpose registry: networks that are not globally reachable or map to other addresses,
// and one address of a cloud.
const IPV4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Azure's virtual public IP: every virtual machine reaches its own host there. IANA's registry does not have it.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];
/** All allocated global IPv6 addresses. Excludes loopback, ULA, link-local, multicast, IPv4-mapped and NAT64. */
const IPV6_GLOBAL = ['2000::', 3] as const;
/**
 * Exceptions within that range: IETF networks including Teredo, documentation, and 6to4, which embeds an IPv4 address.
 */
const IPV6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

const special = new BlockList();
for (const [network, prefix] of IPV4) special.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of IPV6) special.addSubnet(network, prefix, 'ipv6');
const global6 = new BlockList();
global6.addSubnet(...IPV6_GLOBAL, 'ipv6');

/** Returns true for an IP address on the public Internet; false for any other string. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !special.check(address, 'ipv4');
    case 6:
      // A scope (fe80::1%eth0) is never global.
      return !address.includes('%') && global6.check(address, 'ipv6') && !special.check(address, 'ipv6');
    default:
      return false;
  }
}

/** Addresses at which clouds give a machine its credentials and settings. */
const METADATA: readonly (readonly [string, number, 'ipv4' | 'ipv6'])[] = [
  ['100.100.100.200', 32, 'ipv4'],
  ['168.63.129.16', 32, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['192.0.0.192', 32, 'ipv4'],
  ['fd00:ec2::', 32, 'ipv6'],
  ['fd20:ce::254', 128, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
];

const metadata = new BlockList();
for (const row of METADATA) metadata.addSubnet(...row);

/** Returns true for an address at which a cloud describes the machine, which nothing else uses. */
export function isMetadataAddress(address: string): boolean {
  const [unscoped = ''] = address.split('%');
  const version = isIP(unscoped);
  return version !== 0 && metadata.check(unscoped, version === 4 ? 'ipv4' : 'ipv6');
}
