/** Jobs that are to be done later, by this process. */
export type Timers = {
  /** Does a job after a while. A job that is one too many, or comes after `close`, is dropped. */
  after(delayMs: number, job: () => Promise<unknown>): void;
  /** Drops what has not begun, and waits for what has. */
  close(): Promise<void>;
};

/** Longest time ahead for a timer; what is further away is left to whoever looks then. */
const MAX_DELAY_MS = 24 * 60 * 60_000;
const MAX_JOBS = 20_000;
/** Jobs that wait for longer leave room for the others. */
const LONG_DELAY_MS = 60_000;
const MAX_LONG_JOBS = 10_000;

/** Makes a keeper of timers. `failed` is told of jobs that throw. */
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
