/** A token bucket: `burst` tokens after a pause, and one more every `everyMs`. */
export type Bucket = { readonly name: string; readonly burst: number; readonly everyMs: number };

/** Tokens taken, which `giveBack` returns to their buckets; or the time until every bucket has one again. */
export type Tokens =
  | { readonly waitMs: 0; readonly giveBack: () => void }
  | { readonly waitMs: number; readonly giveBack?: never };

/** Number of buckets at which full ones are dropped from memory. */
const MANY_BUCKETS = 10_000;
/** Maximum number of buckets in memory; beyond it, the one unused for longest counts as full. */
const MAX_BUCKETS = 100_000;

/**
 * Creates token buckets, initially full. A bucket is stored as the time at which it will be full again (GCRA, ITU-T
 * I.371).
 *
 * @param nowMs reads a monotonic clock.
 * @returns a function that takes a token from each of several buckets, or none.
 */
export function createTokenBuckets(
  nowMs: () => number = () => performance.now(),
): (buckets: readonly Bucket[]) => Tokens {
  const fullAtMs = new Map<string, number>();
  let manyBuckets = MANY_BUCKETS;

  function store(name: string, fullAt: number): void {
    // Moves it behind the others.
    fullAtMs.delete(name);
    const [oldest] = fullAtMs.keys();
    if (fullAtMs.size >= MAX_BUCKETS && oldest !== undefined) fullAtMs.delete(oldest);
    fullAtMs.set(name, fullAt);
  }

  function forgetFull(now: number): void {
    for (const [name, fullAt] of fullAtMs) if (fullAt <= now) fullAtMs.delete(name);
    // Twice the remaining number, so that full scans are rare.
    manyBuckets = Math.max(MANY_BUCKETS, 2 * fullAtMs.size);
  }

  return (buckets) => {
    const now = nowMs();
    if (fullAtMs.size >= manyBuckets) forgetFull(now);
    const after = buckets.map(({ name, burst, everyMs }) => {
      const fullAt = Math.max(fullAtMs.get(name) ?? now, now) + everyMs;
      return { name, everyMs, fullAt, waitMs: fullAt - burst * everyMs - now };
    });
    const waitMs = Math.max(...after.map((bucket) => bucket.waitMs));
    if (waitMs > 0) return { waitMs };
    for (const { name, fullAt } of after) store(name, fullAt);
    const giveBack = () => {
      for (const { name, everyMs } of after) store(name, (fullAtMs.get(name) ?? now) - everyMs);
    };
    return { waitMs: 0, giveBack };
  };
}
