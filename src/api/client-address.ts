import { type BlockList, isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/** Returns the address of the client that made a request. */
export type ClientAddress = (request: FastifyRequest) => string;

/**
 * Creates the function that determines a client's IP address for admission, sign-in, the audit log and the log: the
 * peer's address or, if the peer is a trusted proxy, the rightmost address in X-Forwarded-For that is not a trusted
 * proxy's. Each proxy appends its peer's address, so the client may have forged anything further left.
 */
export function createClientAddress(trustedProxies: BlockList): ClientAddress {
  const isTrusted = trusts(trustedProxies);
  return (request) => {
    // A closed connection has no peer.
    let address: string = request.ip ?? '';
    const hops = String(request.headers['x-forwarded-for'] ?? '').split(',');
    while (isTrusted(address)) {
      // An invalid address identifies no client, so the proxy that forwarded it counts as the client.
      const next = addressOf(hops.pop() ?? '');
      if (next === undefined) break;
      address = next;
    }
    return address;
  };
}

/** Returns a function that reports whether an address is a trusted proxy's. */
export function trusts(trustedProxies: BlockList): (address: string) => boolean {
  return (address) => {
    const version = isIP(address);
    return version !== 0 && trustedProxies.check(address, version === 6 ? 'ipv6' : 'ipv4');
  };
}

/** Parses an element of X-Forwarded-For: an address, optionally with a port. */
function addressOf(hop: string): string | undefined {
  const address = hop
    .trim()
    .replace(/^\[(.+)\](?::\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1');
  return isIP(address) !== 0 && !address.includes('%') ? address : undefined;
}
