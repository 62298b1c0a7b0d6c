import type { WriteStream } from 'node:tty';
import { describeMutant, type Mutant } from './mutant.ts';
import type { Result } from './results.ts';

/** Tells how far a run is: on a terminal in one line that is written over, elsewhere in a line for each mutant. */
export type Progress = {
  /** What is run now; on a terminal only. */
  state(text: string): void;
  done(count: string, mutant: Mutant, result: Result): void;
  /** A line that stays. */
  line(text: string): void;
};

const CLEAR_LINE = '\r\u001b[K';

/** Writes progress to a stream. */
export function createProgress(
  stream: Pick<WriteStream, 'write'> & { readonly isTTY?: boolean; readonly columns?: number },
): Progress {
  const isTerminal = stream.isTTY === true;
  const line = (text: string) => void stream.write(`${isTerminal ? CLEAR_LINE : ''}${text}\n`);
  return {
    line,
    state(text) {
      if (isTerminal) stream.write(CLEAR_LINE + text.slice(0, (stream.columns ?? 80) - 1));
    },
    done(count, mutant, { verdict, by, ms }) {
      if (verdict === 'survived') line(`SURVIVED ${mutant.id} ${describeMutant(mutant)}`);
      else if (!isTerminal) {
        const noticed = by ? ` by ${by.file}` : '';
        line(
          `${count} ${verdict} ${mutant.id} ${describeMutant(mutant)}${noticed}, ${(ms / 1000).toFixed(1)} s`,
        );
      }
    },
  };
}
