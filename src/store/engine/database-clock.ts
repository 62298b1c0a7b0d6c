import type { Database } from './database.ts';
import { onlyRow } from './rows.ts';

/** The difference between the clocks of the process and the database. */
export type ClockDifference = {
  /** Milliseconds that the process's clock is ahead; negative if it is behind. */
  readonly aheadMs: number;
  /** Maximum error of `aheadMs`: half the round trip. */
  readonly uncertainMs: number;
};

const READ_CLOCK = {
  name: 'read_clock',
  text: 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS "nowMs"',
};

/** Compares the process's clock with the database's, which determines the age of transactions and when they are due. */
export async function compareClocks(database: Database): Promise<ClockDifference> {
  const [startedMs, startedAtMs] = [performance.now(), Date.now()];
  const { nowMs } = onlyRow(await database.query<{ nowMs: number }>(READ_CLOCK));
  const uncertainMs = (performance.now() - startedMs) / 2;
  return { aheadMs: startedAtMs + uncertainMs - nowMs, uncertainMs };
}
