import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_MS = 20;
/** A busy machine makes every look slow, so it has this many however long they take. */
const LOOKS_WITHOUT_END = 600;
const WITHOUT_END_MS = 60_000;
/** Ends the wait for one outcome while new ones keep coming and ending. */
const LONGEST_MS = 900_000;

/**
 * Waits until no outcome is open. Gives up after a minute in which none has ended, so that the limit follows their
 * number, or later on a busy machine.
 *
 * @param open returns the ids of the open outcomes; undefined if they cannot be read now.
 * @returns false if it gave up.
 */
export async function drained(
  open: () => Promise<ReadonlySet<string> | undefined>,
  { nowMs = () => performance.now(), pause = () => sleep(LOOK_MS) } = {},
): Promise<boolean> {
  const startedMs = nowMs();
  let [before, sinceMs, looks]: [ReadonlySet<string>, number, number] = [new Set(), startedMs, 0];
  for (;;) {
    const current = await open();
    if (current?.size === 0) return true;
    looks += 1;
    if (current && !before.isSubsetOf(current)) [sinceMs, looks] = [nowMs(), 0];
    before = current ?? before;
    const isStill = looks >= LOOKS_WITHOUT_END && nowMs() - sinceMs >= WITHOUT_END_MS;
    if (isStill || nowMs() - startedMs >= LONGEST_MS) return false;
    await pause();
  }
}
