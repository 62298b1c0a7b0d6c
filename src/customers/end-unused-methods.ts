import type { Database } from '#src/store/engine/database.ts';
import { type Step, sweep } from '#src/store/engine/sweep.ts';
import { endUnusedMethods } from '#src/store/tables/unused-methods.ts';
import { emitMethodEvent } from './emit-method-event.ts';

/** Options of a sweep through the stored methods. */
export type EndOptions = {
  /** A method is due once no payment has used it for this many days. */
  readonly days: number;
  readonly dryRun: boolean;
  /** Called after each step. */
  readonly onStep: (step: Step) => void;
};

/**
 * Ends stored methods that no payment has used for a long time, as if they were unenrolled: webhooks get the event.
 * It is safe to run beside a running service or another such run, and the next run completes an interrupted one.
 *
 * @returns the number of methods that were due.
 */
export function endUnused(database: Database, { days, dryRun, onStep }: EndOptions): Promise<number> {
  const ended = dryRun ? undefined : emitMethodEvent;
  return sweep((after) => endUnusedMethods(database, days, ended, after), { dryRun, onStep });
}
