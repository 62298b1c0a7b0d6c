/** A clock that stands still while any work is runnable. */
export type VirtualTime = {
  /** In ms since 1970. */
  now(): number;
  /** Waits until a time; those who wait for the same moment wake in the order in which they called. */
  until(atMs: number): Promise<void>;
};

/**
 * Runs work on a virtual clock, which leaps from one awaited moment to the next, so that a simulated day takes no longer
 * than its computation. The work must read and await time by this clock alone; timers and sockets do not follow it.
 *
 * @throws what `work` throws, or Error if it waits for something that will never happen.
 */
export async function inVirtualTime<T>(startMs: number, work: (time: VirtualTime) => Promise<T>): Promise<T> {
  /** Sleepers, the soonest last. */
  const sleepers: { readonly atMs: number; readonly wake: () => void }[] = [];
  let nowMs = startMs;
  const time: VirtualTime = {
    now: () => nowMs,
    until: (atMs) =>
      new Promise((wake) => {
        const index = sleepers.findIndex((sleeper) => sleeper.atMs <= atMs);
        sleepers.splice(index < 0 ? sleepers.length : index, 0, { atMs, wake });
      }),
  };
  let isDone = false;
  const done = () => {
    isDone = true;
  };
  const result = work(time);
  result.then(done, done);
  for (;;) {
    // nextTick runs once no promise is runnable any more, so all work that could continue has done so. (setImmediate would
    // do as well, but takes a turn of the event loop, which is four times as long.)
    await new Promise((wake) => process.nextTick(wake));
    if (isDone) return await result;
    const next = sleepers.pop();
    if (!next) throw new Error('all wait for something that will never happen');
    nowMs = Math.max(nowMs, next.atMs);
    next.wake();
  }
}
