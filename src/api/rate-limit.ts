import { ServiceError } from '#src/service-error.ts';
import type { Credentials } from './authenticate.ts';

/** Limit on the rate of one account's calls. */
export type RateLimitOptions = {
  readonly perSecond: number;
  /** Number of calls that an account may make in a burst after a pause. */
  readonly burst: number;
  /** Reads a monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
};

/** Number of accounts at which idle accounts are dropped from memory. */
const MANY_ACCOUNTS = 10_000;

/**
 * Creates the rate limit for accounts in one replica; every replica has its own. Callers with only the public key,
 * which anybody can read in a web page, share a separate limit, so they cannot use up the account's. Each limit is a
 * token bucket, stored as the time at which it will be full again (GCRA, ITU-T I.371).
 *
 * @returns a function that takes a token for a caller, or throws ServiceError RATE_LIMITED with the seconds until the
 * next token.
 */
export function createRateLimit(options: RateLimitOptions): (caller: Credentials) => void {
  const { perSecond, burst, nowMs = () => performance.now() } = options;
  const tokenMs = 1_000 / perSecond;
  const fullAtMs = new Map<string, number>();
  let manyAccounts = MANY_ACCOUNTS;

  function forgetFull(now: number): void {
    for (const [bucket, full] of fullAtMs) if (full <= now) fullAtMs.delete(bucket);
    // Twice the remaining number, so that full scans are rare.
    manyAccounts = Math.max(MANY_ACCOUNTS, 2 * fullAtMs.size);
  }

  return ({ accountId, secretPresented }) => {
    const bucket = secretPresented ? accountId : `${accountId} public`;
    const now = nowMs();
    if (fullAtMs.size >= manyAccounts) forgetFull(now);
    const fullAt = Math.max(fullAtMs.get(bucket) ?? now, now);
    const waitMs = fullAt + tokenMs - burst * tokenMs - now;
    if (waitMs > 0) {
      throw new ServiceError(
        'RATE_LIMITED',
        'the account makes too many calls; nothing was sent; retry later',
        {
          retryAfterS: Math.ceil(waitMs / 1_000),
        },
      );
    }
    fullAtMs.set(bucket, fullAt + tokenMs);
  };
}
