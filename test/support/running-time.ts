const TICK_MS = 20;

/**
 * Runs a function after some of this process's own running time: if the process, and with it a service that runs in it,
 * stalls or is slow, this time passes just as slowly.
 *
 * @returns a function that cancels it.
 */
export function afterRunning(ms: number, act: () => void): () => void {
  let ticks = Math.ceil(ms / TICK_MS);
  const timer = setInterval(() => {
    ticks -= 1;
    if (ticks > 0) return;
    clearInterval(timer);
    act();
  }, TICK_MS);
  return () => clearInterval(timer);
}
