import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs `work` repeatedly until it is stopped, even after a failure. The interval is jittered, so that replicas do not
 * run it together.
 */
export async function repeat(
  work: () => Promise<void>,
  options: {
    readonly intervalMs: number;
    /** Resolves when the pause is to end early; called after each run. */
    readonly sooner?: (() => Promise<void>) | undefined;
    readonly signal: AbortSignal;
    readonly onError: (error: unknown) => void;
  },
): Promise<void> {
  const { intervalMs, sooner, signal, onError } = options;
  while (!signal.aborted) {
    await work().catch(onError);
    const waited = new AbortController();
    const pause = sleep(intervalMs * (0.75 + Math.random() / 2), undefined, {
      signal: AbortSignal.any([signal, waited.signal]),
    }).catch(() => {});
    await (sooner ? Promise.race([pause, sooner()]) : pause);
    waited.abort();
  }
}
