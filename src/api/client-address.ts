import { type BlockList, isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/** Returns the address of the client that made a request. */
export type ClientAddress = (request: FastifyRequest) => string;

/**
 * Makes the function that gives admission, sign-in, the audit log and the log a client's address: the peer's or, if
 * the peer is a trusted proxy, the rightmost address in X-Forwarded-For that belongs to no trusted proxy. Each proxy
 * appends its peer's address, so the client may have invented any address further left.
 */
export function createClientAddress(trustedProxies: BlockList): ClientAddress {
  const isTrusted = (address: string) => {
    const version = isIP(address);
    return version !== 0 && trustedProxies.check(address, version === 6 ? 'ipv6' : 'ipv4');
  };
  return (request) => {
    // A closed connection has no peer.
    let address: string = request.ip ?? '';
    const hops = String(request.headers['x-forwarded-for'] ?? '').split(',');
    while (isTrusted(address)) {
      // An invalid address identifies nobody: the proxy that passed it on is the last known client.
      const next = addressOf(hops.pop() ?? '');
      if (next === undefined) break;
      address = next;
    }
    return address;
  };
}

/** Reads an element of X-Forwarded-For: an address, which may include the port. */
function addressOf(hop: string): string | undefined {
  const address = hop
    .trim()
    .replace(/^\[(.+)\](?::\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1');
  return isIP(address) !== 0 && !address.includes('%') ? address : undefined;
}
