import { isIPv6 } from 'node:net';

/** Limits wrong keys. */
export type SignInLimit = {
  /** @returns seconds until another key may be tried from an address; 0 for now. */
  waitS(address: string): number;
  /** Counts a wrong key. */
  failed(address: string): void;
};

/** Wrong keys from one address in a row before it waits, and how fast it gets new tries. */
const TRIES = 5;
const NEW_TRY_MS = 20_000;
const MOST_ADDRESSES = 10_000;

/**
 * Makes the limit on wrong operator keys, for each client address apart: nobody can lock another out. A key has 128 random
 * bits, so the limit keeps the log readable rather than the key safe.
 */
export function createSignInLimit(nowMs: () => number = () => performance.now()): SignInLimit {
  /** When an address has all its tries back. */
  const fullAtMs = new Map<string, number>();
  return {
    waitS(address) {
      const now = nowMs();
      const fullAt = fullAtMs.get(networkOf(address)) ?? now;
      return Math.max(0, Math.ceil((fullAt - now - (TRIES - 1) * NEW_TRY_MS) / 1000));
    },
    failed(address) {
      const now = nowMs();
      const network = networkOf(address);
      const fullAt = Math.max(fullAtMs.get(network) ?? now, now) + NEW_TRY_MS;
      fullAtMs.delete(network);
      if (fullAtMs.size >= MOST_ADDRESSES) {
        for (const [known, at] of fullAtMs) if (at <= now) fullAtMs.delete(known);
        const [oldest] = fullAtMs.keys();
        if (fullAtMs.size >= MOST_ADDRESSES && oldest !== undefined) fullAtMs.delete(oldest);
      }
      fullAtMs.set(network, fullAt);
    },
  };
}

/** One host has 2^64 IPv6 addresses: they count as one. */
function networkOf(address: string): string {
  return isIPv6(address) ? address.split(':').slice(0, 4).join(':') : address;
}
