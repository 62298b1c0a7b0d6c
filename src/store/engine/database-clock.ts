import type { Database } from './database.ts';
import { onlyRow } from './rows.ts';

/** The difference between the process's clock and the database's. */
export type ClockDifference = {
  /** Time that the process's clock is ahead; negative if it is behind. */
  readonly aheadMs: number;
  /** Possible error of `aheadMs`: half the round trip. */
  readonly uncertainMs: number;
};

const READ_CLOCK = {
  name: 'read_clock',
  text: 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS "nowMs"',
};

/** Compares the process's clock with the database's, which decides how old a transaction is and when it is due. */
export async function compareClocks(database: Database): Promise<ClockDifference> {
  const [startedMs, startedAtMs] = [performance.now(), Date.now()];
  const { nowMs } = onlyRow(await database.query<{ nowMs: number }>(READ_CLOCK));
  const uncertainMs = (performance.now() - startedMs) / 2;
  return { aheadMs: startedAtMs + uncertainMs - nowMs, uncertainMs };
}
