/** A clock that stands still while anybody has something to do. */
export type VirtualTime = {
  /** In ms since 1970. */
  now(): number;
  /** Waits until then; those who wait for the same moment go on in the order in which they came. */
  until(atMs: number): Promise<void>;
};

/**
 * Runs work that waits by a clock of its own, which leaps from one awaited moment to the next: a day takes as long as
 * what happens in it. Everything that tells or awaits the time must do so by that clock; timers and sockets do not.
 *
 * @throws what `work` throws, or Error when it waits for something that will never happen.
 */
export async function inVirtualTime<T>(startMs: number, work: (time: VirtualTime) => Promise<T>): Promise<T> {
  /** The soonest last. */
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
    // Its turn comes when no promise has anything left to do: all that could go on has gone on. (So has setImmediate's,
    // which takes the event loop round and four times as long.)
    await new Promise((wake) => process.nextTick(wake));
    if (isDone) return await result;
    const next = sleepers.pop();
    if (!next) throw new Error('all wait for something that will never happen');
    nowMs = Math.max(nowMs, next.atMs);
    next.wake();
  }
}
