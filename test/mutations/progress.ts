import { createProgress, type Progress, type ProgressStream } from '#src/commands/progress.ts';
import { describeMutant, type Mutant } from './mutant.ts';
import type { Result } from './results.ts';

/** Tells how far a run is: on a terminal in one line that is written over, elsewhere in a line for each mutant. */
export type MutationProgress = Progress & {
  done(count: string, mutant: Mutant, result: Result): void;
};

/** Writes progress to a stream. */
export function createMutationProgress(stream: ProgressStream): MutationProgress {
  const progress = createProgress(stream, { plainPauseMs: Number.POSITIVE_INFINITY });
  return {
    ...progress,
    done(count, mutant, { verdict, by, ms }) {
      if (verdict === 'survived') progress.line(`SURVIVED ${mutant.id} ${describeMutant(mutant)}`);
      else if (!stream.isTTY) {
        const noticed = by ? ` by ${by.file}` : '';
        progress.line(
          `${count} ${verdict} ${mutant.id} ${describeMutant(mutant)}${noticed}, ${(ms / 1000).toFixed(1)} s`,
        );
      }
    },
  };
}
