/** Delayed jobs of this process. */
export type Timers = {
  /** Runs a job after a delay. A job over the limit, or after `close`, is dropped. */
  after(delayMs: number, job: () => Promise<unknown>): void;
  /** Drops the jobs that have not started, and waits for the others. */
  close(): Promise<void>;
};

/** Longest delay of a timer. A change that is due later is applied when its entry is next read. */
const MAX_DELAY_MS = 24 * 60 * 60_000;
const MAX_JOBS = 20_000;
/** Delay from which a job counts as long. Long jobs have a lower limit, to leave room for the others. */
const LONG_DELAY_MS = 60_000;
const MAX_LONG_JOBS = 10_000;

/** Creates the timers. @param failed receives the errors of jobs. */
export function createTimers(failed: (error: Error) => void): Timers {
  const waiting = new Set<NodeJS.Timeout>();
  const running = new Set<Promise<unknown>>();
  let isClosed = false;

  function after(delayMs: number, job: () => Promise<unknown>): void {
    const maxJobs = delayMs > LONG_DELAY_MS ? MAX_LONG_JOBS : MAX_JOBS;
    if (isClosed || waiting.size + running.size >= maxJobs || delayMs > MAX_DELAY_MS) return;
    const timer = setTimeout(() => {
      waiting.delete(timer);
      const run = job()
        .catch(failed)
        .finally(() => running.delete(run));
      running.add(run);
    }, delayMs);
    timer.unref();
    waiting.add(timer);
  }

  async function close(): Promise<void> {
    isClosed = true;
    for (const timer of waiting) clearTimeout(timer);
    waiting.clear();
    await Promise.all(running);
  }

  return { after, close };
}
