import { setTimeout as sleep } from 'node:timers/promises';
import { type Loop, repeat } from '#src/repeat.ts';
import type { Database } from '#src/store/engine/database.ts';
import { listAccounts } from '#src/store/tables/accounts.ts';
import { isNightDone, markNight, writeTotals } from '#src/store/tables/payment-totals.ts';

const INTERVAL_MS = 5 * 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Payments change for weeks: refunds, disputes, late outcomes. */
const NIGHTLY_DAYS = 35;
/** Hours that one statement reads. */
const STEP_MS = 6 * HOUR_MS;
/** Pause after a step that wrote, since payments have priority. */
const PAUSE_MS = 20;

/**
 * Starts to write the hourly totals of payments: of the last two hours every five minutes, and of the last 35 days once a
 * day, at its beginning (UTC). Any number of replicas may do so at once: they write the same.
 */
export function startTotals(
  database: Database,
  { onError }: { readonly onError: (error: unknown) => void },
): Loop {
  let mayBeNight = false;
  const write = (stop: AbortSignal) => {
    const work = writeRecentTotals(database, new Date(), { stop, mayBeNight });
    // A service that has just started has other work.
    mayBeNight = true;
    return work;
  };
  return repeat(write, { intervalMs: INTERVAL_MS, onError });
}

/** Writes the totals of the last two hours, and once a day those of the last 35 days. */
export async function writeRecentTotals(
  database: Database,
  now: Date,
  { stop, mayBeNight = true }: { readonly stop?: AbortSignal; readonly mayBeNight?: boolean } = {},
): Promise<void> {
  const end = ceil(now.getTime() + 1, HOUR_MS);
  const day = new Date(ceil(now.getTime() + 1, DAY_MS) - DAY_MS);
  const isNight = mayBeNight && !(await isNightDone(database, day));
  const begin = isNight ? end - NIGHTLY_DAYS * DAY_MS : end - 3 * HOUR_MS;
  for (const { id } of await listAccounts(database)) {
    for (let from = begin; from < end; from += STEP_MS) {
      if (stop?.aborted) return;
      const before = new Date(Math.min(from + STEP_MS, end));
      if ((await writeTotals(database, id, new Date(from), before)) > 0) await sleep(PAUSE_MS);
    }
  }
  if (isNight) await markNight(database, day);
}

function ceil(ms: number, unit: number): number {
  return Math.ceil(ms / unit) * unit;
}
