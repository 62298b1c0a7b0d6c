import { ServiceError } from '#src/service-error.ts';
import type { Credentials } from './authenticate.ts';
import { addressGroup } from './shares.ts';

/** Limit on the rate of one account's calls. */
export type RateLimitOptions = {
  readonly perSecond: number;
  /** Number of calls that an account may make in a burst after a pause. */
  readonly burst: number;
  /** Maximum percentage of an account's limit for callers with only the public key that one client address may use. */
  readonly addressSharePercent: number;
  /** Reads a monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
};

/**
 * Takes a token for a caller.
 *
 * @param address returns the client's address.
 * @throws ServiceError RATE_LIMITED with the seconds until the next token.
 */
export type LimitRate = (caller: Credentials, address: () => string) => void;

/** Number of buckets at which full ones are dropped from memory. */
const MANY_BUCKETS = 10_000;

/**
 * Creates the rate limit for accounts in one replica; every replica has its own. Callers with only the public key,
 * which anybody can read in a web page, share a separate limit, so they cannot use up the account's, and one address
 * can use only a share of that, so it cannot turn away the account's other payers. Each limit is a token bucket, stored
 * as the time at which it will be full again (GCRA, ITU-T I.371).
 */
export function createRateLimit(options: RateLimitOptions): LimitRate {
  const { perSecond, burst, nowMs = () => performance.now() } = options;
  const share = options.addressSharePercent / 100;
  const whole = { tokenMs: 1_000 / perSecond, burst };
  const part = { tokenMs: whole.tokenMs / share, burst: Math.max(1, burst * share) };
  const fullAtMs = new Map<string, number>();
  let manyBuckets = MANY_BUCKETS;

  function forgetFull(now: number): void {
    for (const [bucket, full] of fullAtMs) if (full <= now) fullAtMs.delete(bucket);
    // Twice the remaining number, so that full scans are rare.
    manyBuckets = Math.max(MANY_BUCKETS, 2 * fullAtMs.size);
  }

  return ({ accountId, secretPresented }, address) => {
    const buckets = secretPresented
      ? [{ ...whole, name: accountId }]
      : [
          { ...whole, name: `${accountId} public` },
          { ...part, name: `${accountId} public ${addressGroup(address())}` },
        ];
    const now = nowMs();
    if (fullAtMs.size >= manyBuckets) forgetFull(now);
    const after = buckets.map(({ name, tokenMs, burst }) => {
      const fullAt = Math.max(fullAtMs.get(name) ?? now, now) + tokenMs;
      return { name, fullAt, waitMs: fullAt - burst * tokenMs - now };
    });
    const waitMs = Math.max(...after.map((bucket) => bucket.waitMs));
    if (waitMs > 0) {
      throw new ServiceError(
        'RATE_LIMITED',
        'the account makes too many calls; nothing was sent; retry later',
        { retryAfterS: Math.ceil(waitMs / 1_000) },
      );
    }
    for (const { name, fullAt } of after) fullAtMs.set(name, fullAt);
  };
}
