import { ServiceError } from '#src/service-error.ts';
import { createTokenBuckets } from '#src/token-buckets.ts';
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

/**
 * Creates the rate limit for accounts in one replica; every replica has its own. Callers with only the public key,
 * which anybody can read in a web page, share a separate limit, so they cannot use up the account's, and one address
 * can use only a share of that, so it cannot turn away the account's other payers.
 */
export function createRateLimit(options: RateLimitOptions): LimitRate {
  const { perSecond, burst, nowMs } = options;
  const share = options.addressSharePercent / 100;
  const whole = { everyMs: 1_000 / perSecond, burst };
  const part = { everyMs: whole.everyMs / share, burst: Math.max(1, burst * share) };
  const take = createTokenBuckets(nowMs);

  return ({ accountId, secretPresented }, address) => {
    const buckets = secretPresented
      ? [{ ...whole, name: accountId }]
      : [
          { ...whole, name: `${accountId} public` },
          { ...part, name: `${accountId} public ${addressGroup(address())}` },
        ];
    const { waitMs } = take(buckets);
    if (waitMs === 0) return;
    throw new ServiceError(
      'RATE_LIMITED',
      'the account makes too many calls; nothing was sent; retry later',
      { retryAfterS: Math.ceil(waitMs / 1_000) },
    );
  };
}
