import { setTimeout } from 'node:timers/promises';
import type { Database } from '#src/store/engine/database.ts';
import { countLatestTransactions, MAX_LATEST_TRANSACTIONS } from '#src/store/tables/open-work.ts';

/** Reads what an export needs next, and rests afterwards while payments are under way. */
export type Pace = <Rows>(read: () => Rows | Promise<Rows>) => Promise<Rows>;

/** Interval at which the transactions are counted. */
const COUNT_EVERY_MS = 250;
/**
 * Beside payments, an export rests this many times as long as it read, at most MAX_REST_MS, so that it takes less than a
 * tenth of the processors from them: reads take longer while there are many, and so do the rests.
 */
const RESTS = 12;
const MAX_REST_MS = 1_000;

/** Returns the pace of an export: full speed as long as there are fewer than 20 new transactions a second. */
export function createPace(database: Database): Pace {
  let countedMs = Number.NEGATIVE_INFINITY;
  let isBusy = false;
  return async (read) => {
    if (performance.now() - countedMs >= COUNT_EVERY_MS) {
      isBusy = (await countLatestTransactions(database)) >= MAX_LATEST_TRANSACTIONS;
      countedMs = performance.now();
    }
    const begunMs = performance.now();
    const rows = await read();
    if (isBusy) await setTimeout(Math.min(RESTS * (performance.now() - begunMs), MAX_REST_MS));
    return rows;
  };
}
