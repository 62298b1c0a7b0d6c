/**
 * Work that runs repeatedly until `stop` is aborted. A `Rest` in its result says when to run again; other results mean
 * nothing.
 *
 * @param isEarly true if the run was asked for before the interval ended. The interval goes on regardless.
 */
export type Repeated = (stop: AbortSignal, isEarly: boolean) => unknown;

/** The time until a work's next run, if that is before its interval ends. */
export type Rest = { readonly againInMs: number };

/** Asks for another run after the shortest pause, because more is due. */
export const AGAIN: Rest = { againInMs: 0 };

/** Work that runs repeatedly in the background. */
export type Loop = {
  /** Asks for another run as soon as the shortest pause after the current or last one is over. */
  wake(): void;
  /** Stops the work. Resolves once the current run has ended. */
  stop(): Promise<void>;
};

/**
 * Shortest pause between two runs of the same background work, whoever asks for the next one. A mistake about what is
 * due then costs a little CPU time, instead of a core.
 */
export const SHORTEST_PAUSE_MS = 20;

/** Fraction of the interval by which a pause varies, so that replicas do not run the same work at the same time. */
const JITTER = 0.25;

/** Works with longer intervals begin at multiples of this time, so together: an idle process wakes up less often. */
const GRID_MS = 250;

/** Longest timer, so that a work without an interval rests too. */
const LONGEST_REST_MS = 3_600_000;

/**
 * Starts to run work repeatedly in the background, even after a failure. It does not keep the process alive.
 *
 * @param options.intervalMs absent: the work runs once now, and then only when woken or when its result asks for it.
 * @param options.jitter fraction of the interval by which the pauses vary; 0 for work that concerns this process alone.
 * @param options.isFirstLater true: the first run is after the first interval, instead of now.
 * @param options.onError undefined for work that cannot fail: its failure is a bug, and ends the process.
 */
export function repeat(
  work: Repeated,
  options: {
    readonly intervalMs?: number;
    readonly jitter?: number;
    readonly isFirstLater?: boolean;
    readonly onError?: (error: unknown) => void;
  },
): Loop {
  const { intervalMs = Number.POSITIVE_INFINITY, jitter = JITTER, isFirstLater = false, onError } = options;
  const stop = new AbortController();
  const { signal } = stop;
  const isStopped = () => signal.aborted;
  let isWoken = false;
  let endPause = () => {};

  async function pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    // One more, since a timer may end a millisecond early, and another would follow.
    const timer = setTimeout(resolve, Math.min(Math.ceil(ms) + 1, LONGEST_REST_MS)).unref();
    endPause = resolve;
    await promise;
    clearTimeout(timer);
  }
  /** Rests until then, or until woken, but not before `earliestMs`. */
  async function rest(untilMs: number, earliestMs: number): Promise<void> {
    for (;;) {
      const leftMs = (isWoken ? earliestMs : Math.max(untilMs, earliestMs)) - performance.now();
      if (isStopped() || leftMs <= 0) return;
      await pause(leftMs);
    }
  }
  const nextMs = () => {
    const dueMs = performance.now() + intervalMs * (1 + jitter * (2 * Math.random() - 1));
    return intervalMs < GRID_MS ? dueMs : GRID_MS * Math.round(dueMs / GRID_MS);
  };

  async function run(): Promise<void> {
    let dueMs = isFirstLater ? nextMs() : performance.now();
    if (isFirstLater) await rest(dueMs, 0);
    while (!isStopped()) {
      isWoken = false;
      const isEarly = performance.now() < dueMs;
      const result = await Promise.try(work, signal, isEarly).catch(onError);
      const nowMs = performance.now();
      if (!isEarly) dueMs = nextMs();
      const againMs = isRest(result) ? nowMs + result.againInMs : dueMs;
      await rest(Math.min(againMs, dueMs), nowMs + SHORTEST_PAUSE_MS);
    }
  }
  const running = run();
  return {
    wake() {
      isWoken = true;
      endPause();
    },
    stop() {
      stop.abort();
      endPause();
      return running;
    },
  };
}

function isRest(result: unknown): result is Rest {
  return typeof result === 'object' && result !== null && 'againInMs' in result;
}
