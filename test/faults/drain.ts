import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_MS = 20;
/** A busy machine makes every look slow, so it has this many however long they take. */
const LOOKS_WITHOUT_END = 600;
const WITHOUT_END_MS = 60_000;
/** Ends the wait for one outcome while new ones keep coming and ending. */
const LONGEST_MS = 900_000;

/** The open outcomes, by id: true if a check is due and nobody makes it. */
type Open = ReadonlyMap<string, boolean>;

/**
 * Waits until no outcome is open. Gives up after a minute in which a check was due and no outcome has ended, so that the
 * limit follows their number and the pauses between their checks, or later on a busy machine.
 *
 * @param open returns the open outcomes by id; undefined if they cannot be read now.
 * @returns false if it gave up.
 */
export async function drained(
  open: () => Promise<Open | undefined>,
  { nowMs = () => performance.now(), pause = () => sleep(LOOK_MS) } = {},
): Promise<boolean> {
  const startedMs = nowMs();
  let [before, sinceMs, looks]: [Open, number, number] = [new Map(), startedMs, 0];
  for (;;) {
    const current = await open();
    if (current?.size === 0) return true;
    looks += 1;
    if (current && isMoving(before, current)) [sinceMs, looks] = [nowMs(), 0];
    before = current ?? before;
    const isStill = looks >= LOOKS_WITHOUT_END && nowMs() - sinceMs >= WITHOUT_END_MS;
    if (isStill || nowMs() - startedMs >= LONGEST_MS) return false;
    await pause();
  }
}

/** Returns true if an outcome has ended, or none is overdue: each waits for its next check, or is being checked. */
function isMoving(before: Open, current: Open): boolean {
  return [...before.keys()].some((id) => !current.has(id)) || ![...current.values()].includes(true);
}
