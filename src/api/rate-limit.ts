import { ServiceError } from '#src/service-error.ts';
import type { Credentials } from './authenticate.ts';

/** Rate at which one account may call. */
export type RateLimitOptions = {
  readonly perSecond: number;
  /** Number of calls that it may make in a burst after a pause. */
  readonly burst: number;
  /** Milliseconds of a clock that never goes back. */
  readonly nowMs?: () => number;
};

/** Number of accounts kept in memory before idle ones are dropped. */
const MANY_ACCOUNTS = 10_000;

/**
 * Makes the rate limit of the accounts of one replica: with several, each allows as much. Callers with the public key
 * alone have a limit of their own, since anybody may read that key in a web page: they cannot use up the account's. Each
 * is a token bucket, kept as the moment at which it will be full again (GCRA, ITU-T I.371).
 *
 * @returns takes a token of a caller's account. It throws ServiceError RATE_LIMITED, which says after how many seconds there is one.
 */
export function createRateLimit(options: RateLimitOptions): (caller: Credentials) => void {
  const { perSecond, burst, nowMs = () => performance.now() } = options;
  const tokenMs = 1_000 / perSecond;
  const fullAtMs = new Map<string, number>();
  let manyAccounts = MANY_ACCOUNTS;

  function forgetFull(now: number): void {
    for (const [bucket, full] of fullAtMs) if (full <= now) fullAtMs.delete(bucket);
    // Twice what is left, so that a full scan is rare.
    manyAccounts = Math.max(MANY_ACCOUNTS, 2 * fullAtMs.size);
  }

  return ({ accountId, secretPresented }) => {
    const bucket = secretPresented ? accountId : `${accountId} public`;
    const now = nowMs();
    if (fullAtMs.size >= manyAccounts) forgetFull(now);
    const fullAt = Math.max(fullAtMs.get(bucket) ?? now, now);
    const waitMs = fullAt + tokenMs - burst * tokenMs - now;
    if (waitMs > 0) {
      throw new ServiceError('RATE_LIMITED', 'the account calls too often; nothing was sent; retry later', {
        retryAfterS: Math.ceil(waitMs / 1_000),
      });
    }
    fullAtMs.set(bucket, fullAt + tokenMs);
  };
}
