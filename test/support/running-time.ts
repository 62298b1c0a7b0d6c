const TICK_MS = 20;

/**
 * Acts after some time of this process's own: while it stands still or is slow, and with it a service that runs in it,
 * that time passes as slowly.
 *
 * @returns a function that calls it off.
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
