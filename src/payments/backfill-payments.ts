import { setTimeout as sleep } from 'node:timers/promises';
import { BEFORE_ALL_PAYMENTS, fillInOrders, type PaymentName } from '#src/store/backfill.ts';
import type { Database } from '#src/store/database.ts';
import { decodeRecord } from './stored-record.ts';

/** Options of the backfill. */
export type BackfillOptions = {
  /** Pause between two searches for rows; while the release before still serves, there are new ones. */
  readonly intervalMs?: number;
  readonly onError: (error: unknown) => void;
};

const INTERVAL_MS = 30_000;
/** Rows a commit, and the pause after it: payments come first. */
const BATCH = 200;
const PAUSE_MS = 20;

/**
 * Fills in, batch by batch and in the background, what the release before this one did not write: the order of its
 * payments, by which they are listed. Any number of replicas may do it together.
 *
 * @returns stops it, after the batch under way.
 */
export function startBackfill(
  database: Database,
  { intervalMs = INTERVAL_MS, onError }: BackfillOptions,
): () => Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {});

  async function fillIn(): Promise<void> {
    let last: PaymentName | undefined = BEFORE_ALL_PAYMENTS;
    while (last && !signal.aborted) {
      last = await fillInOrders(database, orderOf, last, BATCH);
      if (last) await pause(PAUSE_MS);
    }
  }
  async function run(): Promise<void> {
    while (!signal.aborted) {
      await fillIn().catch(onError);
      await pause(intervalMs);
    }
  }
  const running = run();
  return () => {
    stop.abort();
    return running;
  };
}

function orderOf(record: Uint8Array): string {
  return decodeRecord(record).merchantOrderId;
}
