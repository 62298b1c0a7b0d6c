import { type Loop, repeat } from '#src/repeat.ts';
import { AGED, type AgedRows, deleteAged } from '#src/store/engine/aged-rows.ts';
import type { Database } from '#src/store/engine/database.ts';
import { sweep } from '#src/store/engine/sweep.ts';
import { deleteStoppedFiles } from '#src/store/tables/settlement-files.ts';

const INTERVAL_MS = 30_000;

/**
 * Starts to delete aged rows periodically: expired one-time tokens with their ciphertext, and old sessions, responses,
 * deliveries and events. Any number of replicas may do so at once. If one is killed, the next run deletes the remaining
 * rows.
 */
export function startAgeOut(
  database: Database,
  { onError }: { readonly onError: (error: unknown) => void },
): Loop {
  return repeat((stop) => ageOut(database, stop), { intervalMs: INTERVAL_MS, onError });
}

/** Deletes all aged rows once, and what stopped imports of settlement reports have left. */
export async function ageOut(database: Database, stop?: AbortSignal): Promise<void> {
  for (const [name, aged] of Object.entries(AGED)) {
    if (!('serviceDays' in aged)) continue;
    const step = (after?: readonly string[]) =>
      deleteAged(database, name as AgedRows, aged.serviceDays, { dryRun: false, after });
    await sweep(step, { dryRun: false, ...(stop && { stop }) });
    if (stop?.aborted) return;
  }
  await deleteStoppedFiles(database);
}
