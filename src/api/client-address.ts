import { type BlockList, isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/** Returns the address of the client that made a request. */
export type ClientAddress = (request: FastifyRequest) => string;

/**
 * Makes the function from which admission, sign-in, the audit log and the log all learn a client's address: the peer's,
 * or, if the peer is a trusted proxy, the rightmost address of X-Forwarded-For that is no trusted proxy's. Each proxy
 * appends the address of its own peer, so anything further left may be the client's invention.
 */
export function createClientAddress(trustedProxies: BlockList): ClientAddress {
  const isTrusted = (address: string) => {
    const version = isIP(address);
    return version !== 0 && trustedProxies.check(address, version === 6 ? 'ipv6' : 'ipv4');
  };
  return (request) => {
    // A connection that has gone has no peer any more.
    let address: string = request.ip ?? '';
    const hops = String(request.headers['x-forwarded-for'] ?? '').split(',');
    while (isTrusted(address)) {
      // What is no address names nobody: then the proxy that passed it on is the last one known.
      const next = addressOf(hops.pop() ?? '');
      if (next === undefined) break;
      address = next;
    }
    return address;
  };
}

/** Reads an element of X-Forwarded-For: an address, to which some proxies append the port. */
function addressOf(hop: string): string | undefined {
  const address = hop
    .trim()
    .replace(/^\[(.+)\](?::\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1');
  return isIP(address) !== 0 && !address.includes('%') ? address : undefined;
}
