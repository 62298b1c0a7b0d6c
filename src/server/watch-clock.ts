import { type Loop, repeat } from '#src/repeat.ts';
import type { Database } from '#src/store/engine/database.ts';
import { type ClockDifference, compareClocks } from '#src/store/engine/database-clock.ts';

/** Dependencies for monitoring the process's clock. */
export type ClockDeps = {
  readonly database: Database;
  readonly clock: {
    compared(difference: ClockDifference): void;
    failed(error: unknown): void;
  };
};

const COMPARED_EVERY_MS = 180_000;

/**
 * Compares the process's clock with the database's at once, and then every few minutes. Decisions use the database's
 * clock; signatures, times in records and times sent to providers use the process's clock.
 */
export function watchClock(
  { database, clock }: ClockDeps,
  { intervalMs = COMPARED_EVERY_MS }: { readonly intervalMs?: number } = {},
): Loop {
  const compare = async () => clock.compared(await compareClocks(database));
  return repeat(compare, { intervalMs, onError: clock.failed });
}
