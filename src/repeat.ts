import { setTimeout as sleep } from 'node:timers/promises';

/** Work that runs repeatedly until `stop` is aborted. It resolves to true to run again at once. */
export type Repeated = (stop: AbortSignal) => Promise<unknown>;

/**
 * Starts to run work repeatedly in the background, even after a failure. The pauses are jittered, so that replicas do
 * not run it at the same time.
 *
 * @param options.sooner called after each run. Its promise ends the pause early.
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
  async function run(): Promise<void> {
    while (!signal.aborted) {
      const result = await work(signal).catch(onError);
      if (result === true) continue;
      const waited = new AbortController();
      const pause = sleep(intervalMs * (0.75 + Math.random() / 2), undefined, {
        signal: AbortSignal.any([signal, waited.signal]),
      }).catch(() => {});
      const early = sooner?.();
      await (early ? Promise.race([pause, early]) : pause);
      waited.abort();
    }
  }
  const running = run();
  return () => {
    stop.abort();
    return running;
  };
}
