import { repeat } from '#src/repeat.ts';
import type { Database } from '#src/store/database.ts';
import { MAX_TOKENS_SWEPT, sweepTokens } from '#src/store/one-time-tokens.ts';
import { MAX_KEYS_DELETED, sweepReplayedCalls } from '#src/store/replayed-calls.ts';

const INTERVAL_MS = 30_000;
const KEYS_LIVE_DAYS = 30;

/**
 * Deletes expired one-time tokens with their ciphertext, and idempotency keys after 30 days. Any number of replicas
 * may run it at once; the next sweep deletes what a killed one did not.
 *
 * @returns a function that stops it after the current batch.
 */
export function startTokenSweep(
  database: Database,
  { onError }: { onError: (error: unknown) => void },
): () => Promise<void> {
  const sweep = async (stop: AbortSignal) => {
    while (!stop.aborted && (await sweepTokens(database)) === MAX_TOKENS_SWEPT);
    while (!stop.aborted && (await sweepReplayedCalls(database, KEYS_LIVE_DAYS)) === MAX_KEYS_DELETED);
  };
  return repeat(sweep, { intervalMs: INTERVAL_MS, onError });
}
