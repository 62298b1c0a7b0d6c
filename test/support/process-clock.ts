import { afterEach, beforeEach, vi } from 'vitest';

/**
 * Runs work while the process's clock is ahead of all other clocks by the given milliseconds, or behind if they are
 * negative.
 */
export async function withClockAhead<T>(aheadMs: number, work: () => T | Promise<T>): Promise<T> {
  const now = Date.now;
  const spy = vi.spyOn(Date, 'now').mockImplementation(() => now() + aheadMs);
  try {
    return await work();
  } finally {
    spy.mockRestore();
  }
}

/** Milliseconds by which the process's running time is ahead, as if the process had stood still. */
export const clock = { aheadMs: 0 };

/** Lets a file's tests move `clock`, which starts at 0 before each test. Afterwards, all mocks are restored. */
export function onMovedClock(): void {
  beforeEach(() => {
    clock.aheadMs = 0;
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + clock.aheadMs);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
}
