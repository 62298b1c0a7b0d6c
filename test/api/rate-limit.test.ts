import { describe, expect, it } from 'vitest';
import { createRateLimit } from '#src/api/rate-limit.ts';
import { ServiceError } from '#src/service-error.ts';

let nowMs = 0;

function rateLimit(perSecond: number, burst: number) {
  nowMs = 1_000;
  const take = createRateLimit({ perSecond, burst, nowMs: () => nowMs });
  /** 0 when there was a token, else after how many seconds there is one. */
  return (accountId = 'one', secretPresented = true): number => {
    try {
      take({ accountId, secretPresented });
      return 0;
    } catch (error) {
      if (!(error instanceof ServiceError) || error.reason !== 'RATE_LIMITED') throw error;
      return error.retryAfterS ?? Number.NaN;
    }
  };
}

const times = (count: number, take: () => number) => Array.from({ length: count }, () => take());

describe('createRateLimit', () => {
  it('allows a burst, then refuses', () => {
    const take = rateLimit(10, 3);
    expect(times(5, take)).toEqual([0, 0, 0, 1, 1]);
  });

  it('allows the rate on average, and no burst beyond the bucket after a long pause', () => {
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

  it('says after how many seconds there is a token, and keeps its word', () => {
    const take = rateLimit(0.2, 1);
    take();
    nowMs += 1_500;
    expect(take()).toBe(4);
    nowMs += 3_400;
    expect(take()).toBe(1);
    nowMs += 100;
    expect(take()).toBe(0);
  });

  it('is each account’s own', () => {
    const take = rateLimit(1, 1);
    expect([take('one'), take('one'), take('two'), take('two')]).toEqual([0, 1, 0, 1]);
  });

  it('is apart for callers with the public key alone, who cannot use up the account’s', () => {
    const take = rateLimit(1, 1);
    expect([take('one', false), take('one', false), take('one'), take('one')]).toEqual([0, 1, 0, 1]);
  });

  it('forgets accounts that do not call, and none that was limited', () => {
    const take = rateLimit(1, 2);
    for (let i = 0; i < 9_998; i++) take(`quiet ${i}`);
    nowMs += 5_000;
    expect([take('busy'), take('busy'), take('busy')]).toEqual([0, 0, 1]);
    // Looks through all of them.
    take('new');
    expect(take('busy')).toBe(1);
  });
});
