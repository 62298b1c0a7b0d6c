/** Keeps the shortest of the recent durations. */
export type ShortestRecent = {
  add(durationMs: number): void;
  /** Returns the shortest duration of this period and the one before; undefined if there was none. */
  shortestMs(): number | undefined;
};

const PERIOD_MS = 10_000;

/** @param nowMs a monotonic clock; by default the process's own. */
export function createShortestRecent(nowMs: () => number = () => performance.now()): ShortestRecent {
  let endsAtMs = nowMs() + PERIOD_MS;
  let current = Number.POSITIVE_INFINITY;
  let before = Number.POSITIVE_INFINITY;

  function turn(): void {
    const lateMs = nowMs() - endsAtMs;
    if (lateMs < 0) return;
    before = lateMs < PERIOD_MS ? current : Number.POSITIVE_INFINITY;
    current = Number.POSITIVE_INFINITY;
    endsAtMs += PERIOD_MS * (1 + Math.floor(lateMs / PERIOD_MS));
  }

  return {
    add(durationMs) {
      turn();
      if (durationMs < current) current = durationMs;
    },
    shortestMs() {
      turn();
      const shortest = Math.min(current, before);
      return shortest === Number.POSITIVE_INFINITY ? undefined : shortest;
    },
  };
}
