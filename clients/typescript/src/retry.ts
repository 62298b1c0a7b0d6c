/** Options for repeating a call. */
export type RetryOptions = {
  /** Number of retries after the first try; 4 when absent. */
  readonly retries?: number;
  /** Pause before the first retry; 250 when absent. Each later pause is twice as long. All are shortened at random. */
  readonly firstPauseMs?: number;
};

const LONGEST_PAUSE_MS = 20_000;

/**
 * Calls until it succeeds, an error is final, or the retries are used up.
 *
 * @param pauseOf decides whether to retry after an error: returns the minimum seconds to wait (0 for no minimum), or
 *   undefined for no retry.
 * @throws the last error.
 */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  pauseOf: (error: unknown) => number | undefined,
  { retries = 4, firstPauseMs = 250 }: RetryOptions,
  signal?: AbortSignal,
): Promise<T> {
  for (let tried = 0; ; tried++) {
    try {
      return await attempt();
    } catch (error) {
      const atLeastS = pauseOf(error);
      if (atLeastS === undefined || tried >= retries || signal?.aborted) throw error;
      const backoffMs = Math.random() * firstPauseMs * 2 ** tried;
      await pause(Math.min(Math.max(atLeastS * 1000, backoffMs), LONGEST_PAUSE_MS), signal);
    }
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}
