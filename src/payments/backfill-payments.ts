import { setTimeout as sleep } from 'node:timers/promises';
import { repeat } from '#src/repeat.ts';
import { BEFORE_ALL_PAYMENTS, type FoundBy, fillInPayments, type PaymentName } from '#src/store/backfill.ts';
import type { Database } from '#src/store/database.ts';
import { cardLastFourOf, decodeRecord } from './stored-record.ts';

/** Options of the backfill. */
export type BackfillOptions = {
  /** Pause between two searches for rows; while a release serves that does not write the columns, it adds new ones. */
  readonly intervalMs?: number;
  readonly onError: (error: unknown) => void;
};

const INTERVAL_MS = 30_000;
/** Rows per commit, and the shortest pause after it. The pause is as long as the batch took: payments come first. */
const BATCH = 100;
const PAUSE_MS = 20;

/**
 * Fills in, batch by batch and in the background, the columns by which payments are found and which early releases did
 * not write: the merchant's order id and the card's last four digits. Any number of replicas may run it at once.
 *
 * @returns a function that stops it after the current batch.
 */
export function startBackfill(
  database: Database,
  { intervalMs = INTERVAL_MS, onError }: BackfillOptions,
): () => Promise<void> {
  return repeat((stop) => fillIn(database, stop), { intervalMs, onError });
}

/** Runs batch after batch until nothing is left. */
async function fillIn(database: Database, stop: AbortSignal): Promise<void> {
  for (let last: PaymentName | undefined = BEFORE_ALL_PAYMENTS; last && !stop.aborted; ) {
    const begunMs = performance.now();
    last = await fillInPayments(database, foundBy, last, BATCH);
    const pauseMs = Math.max(PAUSE_MS, performance.now() - begunMs);
    if (last) await sleep(pauseMs, undefined, { signal: stop }).catch(() => {});
  }
}

function foundBy(stored: Uint8Array): FoundBy {
  const record = decodeRecord(stored);
  return { merchantOrderId: record.merchantOrderId, cardLastFour: cardLastFourOf(record) };
}
