import { setTimeout as sleep } from 'node:timers/promises';

/** Position of the last row that a sweep read, in a form specific to the sweep. */
export type Cursor = readonly string[];

/** Result of a step of a sweep. */
export type Step = {
  readonly lookedAt: number;
  /** Number of rows that were aged out, or would be in a dry run. */
  readonly due: number;
  /** Position after which the next step begins; undefined at the end. */
  readonly next: Cursor | undefined;
};

/** Time limit of a step. On an overloaded database the step fails, and the next run repeats it. */
export const STEP_TIMEOUT_MS = 30_000;
/** Pause after a step that wrote, since payments have priority. */
const PAUSE_MS = 20;

/**
 * Runs the steps of a sweep one after another until no rows are left.
 *
 * @param step runs the step after a position; undefined for the first.
 * @param options.onStep called after each step.
 * @param options.stop ends the sweep after the current step.
 * @returns the number of rows that were due.
 */
export async function sweep(
  step: (after: Cursor | undefined) => Promise<Step>,
  options: { readonly dryRun: boolean; readonly onStep?: (step: Step) => void; readonly stop?: AbortSignal },
): Promise<number> {
  const { dryRun, onStep, stop } = options;
  let due = 0;
  let next: Cursor | undefined;
  do {
    const last = await step(next);
    due += last.due;
    onStep?.(last);
    if (!dryRun && last.due > 0) await sleep(PAUSE_MS);
    next = last.next;
  } while (next && !stop?.aborted);
  return due;
}
