import type { Patience } from '../idempotency.ts';

const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 250;

/**
 * Waits until something holds, asking with growing pauses. @returns false if it does not hold in time.
 *
 * @param patience limit of the wait, which does not count as work.
 */
export async function waitUntil(holds: () => Promise<boolean>, patience: Patience): Promise<boolean> {
  const deadline = performance.now() + patience.waitMs;
  for (let pauseMs = FIRST_PAUSE_MS; !(await holds()); pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    if (performance.now() + pauseMs > deadline) return false;
    await patience.pause(pauseMs);
  }
  return true;
}
