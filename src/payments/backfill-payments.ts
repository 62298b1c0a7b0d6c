import { setTimeout as sleep } from 'node:timers/promises';
import { NIL_UUID } from '#src/store/account-rows.ts';
import {
  adoptTransactions,
  BEFORE_ALL_PAYMENTS,
  type FoundBy,
  fillInPayments,
  type PaymentName,
} from '#src/store/backfill.ts';
import type { Database } from '#src/store/database.ts';
import { cardLastFourOf, decodeRecord } from './stored-record.ts';

/** Options of the backfill. */
export type BackfillOptions = {
  /** Pause between two searches for rows; while the previous release still serves, it writes new ones. */
  readonly intervalMs?: number;
  readonly onError: (error: unknown) => void;
};

const INTERVAL_MS = 30_000;
/** Rows per commit, and the shortest pause after it. The pause is as long as the batch took: payments come first. */
const BATCH = 100;
const PAUSE_MS = 20;

/**
 * Fills in, batch by batch and in the background, columns that the previous release did not write: the merchant's
 * order id and the card's last four digits of its payments, by which they are found, and the account of its
 * transactions. Any number of replicas may run it at once.
 *
 * @returns a function that stops it after the current batch.
 */
export function startBackfill(
  database: Database,
  { intervalMs = INTERVAL_MS, onError }: BackfillOptions,
): () => Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {});

  /** Runs batch after batch until nothing is left. */
  async function goThrough<Name>(first: Name, batch: (after: Name) => Promise<Name | undefined>) {
    for (let last: Name | undefined = first; last !== undefined && !signal.aborted; ) {
      const begunMs = performance.now();
      last = await batch(last);
      if (last !== undefined) await pause(Math.max(PAUSE_MS, performance.now() - begunMs));
    }
  }
  const fillIn = (after: PaymentName) => fillInPayments(database, foundBy, after, BATCH);
  const adopt = (after: string) => adoptTransactions(database, after, BATCH);

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await goThrough(BEFORE_ALL_PAYMENTS, fillIn).catch(onError);
      await goThrough(NIL_UUID, adopt).catch(onError);
      await pause(intervalMs);
    }
  }
  const running = run();
  return () => {
    stop.abort();
    return running;
  };
}

function foundBy(stored: Uint8Array): FoundBy {
  const record = decodeRecord(stored);
  return { merchantOrderId: record.merchantOrderId, cardLastFour: cardLastFourOf(record) };
}
