import { addressGroup } from '#src/api/shares.ts';

/** Limits the number of wrong keys. */
export type SignInLimit = {
  /** Returns the seconds until a client address may try another key; 0 if it may try now. */
  waitS(address: string): number;
  /** Counts a wrong key. */
  failed(address: string): void;
};

/** Number of wrong keys that one address may try before it has to wait. */
const TRIES = 5;
const NEW_TRY_MS = 20_000;
const MAX_ADDRESSES = 10_000;

/**
 * Creates the limit on wrong operator keys, per client address. A correct key is always accepted, so that nobody can
 * lock others out. A key has 128 random bits and cannot be guessed; the limit only keeps the log readable.
 */
export function createSignInLimit(nowMs: () => number = () => performance.now()): SignInLimit {
  /** The time at which each address has all its attempts again. */
  const fullAtMs = new Map<string, number>();
  return {
    waitS(address) {
      const now = nowMs();
      const fullAt = fullAtMs.get(addressGroup(address)) ?? now;
      return Math.max(0, Math.ceil((fullAt - now - (TRIES - 1) * NEW_TRY_MS) / 1000));
    },
    failed(address) {
      const now = nowMs();
      const network = addressGroup(address);
      const fullAt = Math.max(fullAtMs.get(network) ?? now, now) + NEW_TRY_MS;
      fullAtMs.delete(network);
      if (fullAtMs.size >= MAX_ADDRESSES) {
        for (const [known, at] of fullAtMs) if (at <= now) fullAtMs.delete(known);
        const [oldest] = fullAtMs.keys();
        if (fullAtMs.size >= MAX_ADDRESSES && oldest !== undefined) fullAtMs.delete(oldest);
      }
      fullAtMs.set(network, fullAt);
    },
  };
}
