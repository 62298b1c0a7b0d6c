import type { Database } from '#src/store/engine/database.ts';
import { type Step, sweep } from '#src/store/engine/sweep.ts';
import { endUnusedMethods } from '#src/store/tables/unused-methods.ts';
import { emitMethodEvent } from './emit-method-event.ts';

/** Options for a run that unenrolls unused methods. */
export type EndOptions = {
  /** Number of days after which a method that no payment has used is due. */
  readonly days: number;
  readonly dryRun: boolean;
  /** Called after each step. */
  readonly onStep: (step: Step) => void;
};

/**
 * Unenrolls stored methods that no payment has used for a long time; webhooks get the event. May run alongside a
 * running service or another such run; the next run completes an interrupted one.
 *
 * @returns the number of methods that were due.
 */
export function endUnused(database: Database, { days, dryRun, onStep }: EndOptions): Promise<number> {
  const ended = dryRun ? undefined : emitMethodEvent;
  return sweep((after) => endUnusedMethods(database, days, ended, after), { dryRun, onStep });
}
