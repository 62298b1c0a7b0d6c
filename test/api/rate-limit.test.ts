import { describe, expect, it } from 'vitest';
import { createRateLimit } from '#src/api/rate-limit.ts';
import { ServiceError } from '#src/service-error.ts';

let nowMs = 0;

function rateLimit(perSecond: number, burst: number, addressSharePercent = 100) {
  nowMs = 1_000;
  const take = createRateLimit({ perSecond, burst, addressSharePercent, nowMs: () => nowMs });
  /** Takes a token. @returns 0 if there was one, otherwise the seconds until there is one. */
  return (accountId = 'one', secretPresented = true, address = '192.0.2.1'): number => {
    try {
      take({ accountId, secretPresented }, () => address);
      return 0;
    } catch (error) {
      if (!(error instanceof ServiceError) || error.reason !== 'RATE_LIMITED') throw error;
      return error.retryAfterS ?? Number.NaN;
    }
  };
}

const times = (count: number, take: () => number) => Array.from({ length: count }, () => take());

describe('rate limits', () => {
  it('a burst of calls is allowed up to the limit, and later calls are refused', () => {
    const take = rateLimit(10, 3);
    expect(times(5, take)).toEqual([0, 0, 0, 1, 1]);
  });

  it('the configured rate is allowed on average, and a long pause allows no larger burst', () => {
    const take = rateLimit(10, 3);
    times(3, take);
    let allowed = 0;
    for (let i = 0; i < 1_000; i++) {
      nowMs += 10;
      if (take() === 0) allowed += 1;
    }
    expect(allowed).toBe(100);
    nowMs += 3_600_000;
    expect(times(5, take)).toEqual([0, 0, 0, 1, 1]);
  });

  it('a refusal reports the seconds until the next token, and a token is available after that time', () => {
    const take = rateLimit(0.2, 1);
    take();
    nowMs += 1_500;
    expect(take()).toBe(4);
    nowMs += 3_400;
    expect(take()).toBe(1);
    nowMs += 100;
    expect(take()).toBe(0);
  });

  it('each account has a separate rate limit', () => {
    const take = rateLimit(1, 1);
    expect([take('one'), take('one'), take('two'), take('two')]).toEqual([0, 1, 0, 1]);
  });

  it('callers with the public key alone have a separate rate limit and cannot use up the account’s', () => {
    const take = rateLimit(1, 1);
    expect([take('one', false), take('one', false), take('one'), take('one')]).toEqual([0, 1, 0, 1]);
  });

  it('one address cannot use up an account’s limit for callers with the public key alone', () => {
    const take = rateLimit(10, 8, 50);
    const from = (address: string) => () => take('one', false, address);
    expect(times(5, from('192.0.2.1'))).toEqual([0, 0, 0, 0, 1]);
    expect(times(5, from('192.0.2.2'))).toEqual([0, 0, 0, 0, 1]);
    // Refused calls take no token of the account.
    nowMs += 100;
    expect(from('192.0.2.3')()).toBe(0);
  });

  it('the addresses of an IPv6 network share one limit, and a secret key has no limit for an address', () => {
    const take = rateLimit(10, 8, 50);
    const taken = [1, 2, 3, 4, 5].map((host) => take('one', false, `2001:db8::${host}`));
    expect(taken).toEqual([0, 0, 0, 0, 1]);
    expect(times(9, () => take('one', true, '192.0.2.1'))).toEqual([...Array(8).fill(0), 1]);
  });

  it('accounts that stop calling are forgotten, but an account that was limited is not', () => {
    const take = rateLimit(1, 2);
    for (let i = 0; i < 9_998; i++) take(`quiet ${i}`);
    nowMs += 5_000;
    expect([take('busy'), take('busy'), take('busy')]).toEqual([0, 0, 1]);
    // This call removes idle accounts.
    take('new');
    expect(take('busy')).toBe(1);
  });
});
