/** Largest fraction of the slots that a group, such as one account's calls, may have when one of it takes a slot. */
export type Share = { readonly group: unknown; readonly fraction: number };

/** Releases a slot. Only the first call does anything. */
export type Release = () => void;

/** A limited number of slots, one for each call, and each group's share of them. Without room, a call is refused. */
export type Slots = {
  /** Returns true if a call of these groups could take a slot. */
  hasRoom(shares?: readonly Share[]): boolean;
  /** Takes a slot. @returns undefined, without taking one, if all are in use or a group has reached its share. */
  take(shares?: readonly Share[]): Release | undefined;
  /** Takes a slot even if there is no room, for a call that must not be refused. */
  occupy(shares?: readonly Share[]): Release;
  count(): number;
};

/** So that rounding makes no fraction, such as 29 of 100, smaller. */
const ROUNDING = 1e-9;

/** Creates `max` free slots. Every group may have at least one. */
export function createSlots(max: number): Slots {
  const usedBy = new Map<unknown, number>();
  let used = 0;

  function hasRoom(shares: readonly Share[] = []): boolean {
    if (used >= max) return false;
    for (const { group, fraction } of shares) {
      if ((usedBy.get(group) ?? 0) >= Math.max(1, Math.floor(max * fraction + ROUNDING))) return false;
    }
    return true;
  }

  function occupy(shares: readonly Share[] = []): Release {
    used++;
    for (const { group } of shares) usedBy.set(group, (usedBy.get(group) ?? 0) + 1);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      used--;
      for (const { group } of shares) {
        const left = (usedBy.get(group) ?? 0) - 1;
        if (left > 0) usedBy.set(group, left);
        else usedBy.delete(group);
      }
    };
  }

  return {
    hasRoom,
    take: (shares) => (hasRoom(shares) ? occupy(shares) : undefined),
    occupy,
    count: () => used,
  };
}

/** Slots for which calls queue. */
export type Queue = {
  /** Takes a slot, in order of arrival. @returns undefined if none was free for `waitMs`. */
  enter(waitMs: number): Promise<Release | undefined>;
};

/** Creates the queue for `max` slots. */
export function createQueue(max: number): Queue {
  const slots = createSlots(max);
  const waiting = new Set<(release: Release) => void>();

  /** Returns a function that gives a slot to the next in the queue. */
  function passOn(release: Release): Release {
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const [next] = waiting;
      if (next) next(release);
      else release();
    };
  }

  return {
    async enter(waitMs) {
      const free = slots.take();
      if (free) return passOn(free);
      const { promise, resolve } = Promise.withResolvers<Release | undefined>();
      const leave = (release?: Release) => {
        waiting.delete(leave);
        clearTimeout(late);
        resolve(release && passOn(release));
      };
      const late = setTimeout(leave, waitMs);
      waiting.add(leave);
      return promise;
    },
  };
}
