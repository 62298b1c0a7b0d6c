/** Largest fraction of the slots that a group of calls, such as one account's, may hold. */
export type Share = { readonly group: string; readonly fraction: number };

/** A limited number of slots, one for each call, and each group's share of them. */
export type Slots = {
  /** Returns true if a call of these groups could take a slot. */
  hasRoom(shares: readonly Share[]): boolean;
  /** Takes a slot. @returns false, without taking one, if all are in use or a group has reached its share. */
  take(shares: readonly Share[]): boolean;
  /** Takes a temporarily released slot again, even if there is no room now. */
  retake(shares: readonly Share[]): void;
  /** Releases a slot that was taken with the same shares. */
  release(shares: readonly Share[]): void;
  count(): number;
};

/** Creates `max` free slots. Every group may hold at least one. */
export function createSlots(max: number): Slots {
  const heldBy = new Map<string, number>();
  let used = 0;

  function hasRoom(shares: readonly Share[]): boolean {
    if (used >= max) return false;
    for (const { group, fraction } of shares) {
      if ((heldBy.get(group) ?? 0) >= Math.max(1, Math.floor(max * fraction))) return false;
    }
    return true;
  }

  function retake(shares: readonly Share[]): void {
    used++;
    for (const { group } of shares) heldBy.set(group, (heldBy.get(group) ?? 0) + 1);
  }

  return {
    hasRoom,
    take(shares) {
      const isTaken = hasRoom(shares);
      if (isTaken) retake(shares);
      return isTaken;
    },
    retake,
    release(shares) {
      used--;
      for (const { group } of shares) {
        const left = (heldBy.get(group) ?? 0) - 1;
        if (left > 0) heldBy.set(group, left);
        else heldBy.delete(group);
      }
    },
    count: () => used,
  };
}
