import { vi } from 'vitest';

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
