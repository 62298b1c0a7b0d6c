import { addressGroup } from '#src/api/shares.ts';

/** The record of failed sign-ins. */
export type FailedSignIns = {
  /** Counts a failed sign-in. Resolves once it is written; rejects if the write fails. */
  add(address: string): Promise<void>;
};

/** Limit on the client addresses that one process records individually per minute. The others are counted together. */
const MAX_ADDRESSES = 100;
const OTHERS = 'other addresses';
const MINUTE_MS = 60_000;

/**
 * Creates the record of failed sign-ins, grouped by client address. It writes one group at a time and batches attempts
 * made during a write, so that a flood of wrong keys costs little more than a single key.
 *
 * @param write adds the attempts of an address (for IPv6, of a network) to this minute's count.
 */
export function createFailedSignIns(
  write: (from: string, tries: number) => Promise<void>,
  nowMs: () => number = () => performance.now(),
): FailedSignIns {
  const waiting = new Map<string, { tries: number; readonly written: Promise<void> }>();
  const named = new Set<string>();
  let minute = 0;
  let last: Promise<void> = Promise.resolve();

  function groupOf(address: string): string {
    const now = Math.floor(nowMs() / MINUTE_MS);
    if (now !== minute) named.clear();
    minute = now;
    const group = addressGroup(address);
    if (!named.has(group) && named.size >= MAX_ADDRESSES) return OTHERS;
    named.add(group);
    return group;
  }

  return {
    add(address) {
      const from = groupOf(address);
      const known = waiting.get(from);
      if (known) {
        known.tries += 1;
        return known.written;
      }
      const writeWaiting = () => {
        const { tries = 0 } = waiting.get(from) ?? {};
        waiting.delete(from);
        return write(from, tries);
      };
      const written = last.then(writeWaiting, writeWaiting);
      last = written;
      waiting.set(from, { tries: 1, written });
      return written;
    },
  };
}
