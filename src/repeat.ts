import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Work that runs repeatedly until `stop` is aborted. It resolves to true to run again after the shortest pause.
 *
 * @param isEarly true if the run was asked for before the interval ended. The interval goes on regardless.
 */
export type Repeated = (stop: AbortSignal, isEarly: boolean) => Promise<unknown>;

/**
 * Shortest pause between two runs of the same background work, whoever asks for the next one. A mistake about what is
 * due then costs a little CPU time, instead of a core.
 */
export const SHORTEST_PAUSE_MS = 20;

/**
 * Starts to run work repeatedly in the background, even after a failure. The pauses are jittered, so that replicas do
 * not run it at the same time.
 *
 * @param options.sooner called after each run. Its promise ends the pause early, but not before the shortest pause.
 * @returns a function that stops the work, and resolves once the current run has ended.
 */
export function repeat(
  work: Repeated,
  options: {
    readonly intervalMs: number;
    readonly sooner?: (() => Promise<unknown> | undefined) | undefined;
    readonly onError: (error: unknown) => void;
  },
): () => Promise<void> {
  const { intervalMs, sooner, onError } = options;
  const stop = new AbortController();
  const { signal } = stop;
  let nextMs = 0;
  async function run(): Promise<void> {
    while (!signal.aborted) {
      const isEarly = performance.now() < nextMs;
      const result = await work(signal, isEarly).catch(onError);
      if (!isEarly) nextMs = performance.now() + intervalMs * (0.75 + Math.random() / 2);
      const waited = new AbortController();
      const pause = (ms: number) =>
        sleep(ms, undefined, { signal: AbortSignal.any([signal, waited.signal]) }).catch(() => {});
      await pause(SHORTEST_PAUSE_MS);
      if (result === true) continue;
      const rest = pause(Math.max(0, nextMs - performance.now()));
      const early = sooner?.();
      await (early ? Promise.race([rest, early]) : rest);
      waited.abort();
    }
  }
  const running = run();
  return () => {
    stop.abort();
    return running;
  };
}
