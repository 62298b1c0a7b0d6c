import { describe, expect, it } from 'vitest';
import { createTokenBuckets } from '#src/token-buckets.ts';

const A = { name: 'a', burst: 2, everyMs: 1_000 };
const B = { name: 'b', burst: 2, everyMs: 1_000 };
const ALL = { name: 'all', burst: 3, everyMs: 100 };

describe('token buckets', () => {
  it('a bucket gives its burst at once, and then a token after each pause', () => {
    let nowMs = 5_000;
    const take = createTokenBuckets(() => nowMs);
    expect([take([A]).waitMs, take([A]).waitMs, take([A]).waitMs]).toEqual([0, 0, 1_000]);
    nowMs += 999;
    expect(take([A]).waitMs).toBe(1);
    nowMs += 1;
    expect([take([A]).waitMs, take([A]).waitMs]).toEqual([0, 1_000]);
  });

  it('a token is taken from every bucket or from none', () => {
    const take = createTokenBuckets(() => 5_000);
    const takes = [
      [A, ALL],
      [A, ALL],
      [A, ALL],
      [B, ALL],
      [B, ALL],
    ].map((buckets) => take(buckets).waitMs);
    expect(takes).toEqual([0, 0, 1_000, 0, 100]);
    expect(take([B]).waitMs).toBe(0);
  });

  it('tokens that are given back can be taken again', () => {
    const take = createTokenBuckets(() => 5_000);
    for (let i = 0; i < 100; i++) {
      const { waitMs, giveBack } = take([A, ALL]);
      expect(waitMs).toBe(0);
      giveBack?.();
    }
  });

  it('a bucket that is in use stays limited even after a flood of others', () => {
    const take = createTokenBuckets(() => 5_000);
    for (let i = 0; i < 150_000; i++) take([{ ...A, name: `flood ${i}` }]);
    expect([take([A]).waitMs, take([A]).waitMs, take([A]).waitMs]).toEqual([0, 0, 1_000]);
  });
});
