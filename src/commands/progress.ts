import type { WriteStream } from 'node:tty';

/** Shows the progress of long work. */
export type Progress = {
  /**
   * Shows the current state: on a terminal in a single line that is overwritten, elsewhere in occasional plain lines.
   */
  state(text: string): void;
  /** Writes a permanent line. */
  line(text: string): void;
  /** Clears the overwritten line. */
  end(): void;
};

/** The stream to which progress is written: process.stderr, or a stand-in. */
export type ProgressStream = Pick<WriteStream, 'write'> & {
  readonly isTTY?: boolean;
  readonly columns?: number;
};

const CLEAR_LINE = '\r\u001b[K';
const DEFAULT_COLUMNS = 80;
const TERMINAL_PAUSE_MS = 50;
const PLAIN_PAUSE_MS = 10_000;

/**
 * Writes progress to a stream.
 *
 * @param options.plainPauseMs pause between two lines of `state` if the stream is not a terminal; Infinity writes no
 * lines.
 * @param options.nowMs a monotonic clock, in milliseconds.
 */
export function createProgress(
  stream: ProgressStream,
  options: { readonly plainPauseMs?: number; readonly nowMs?: () => number } = {},
): Progress {
  const { plainPauseMs = PLAIN_PAUSE_MS, nowMs = () => performance.now() } = options;
  const isTerminal = stream.isTTY === true;
  // A terminal shows the first state at once; elsewhere, only long work shows its state.
  let shownMs = isTerminal ? Number.NEGATIVE_INFINITY : nowMs();
  return {
    state(text) {
      if (nowMs() - shownMs < (isTerminal ? TERMINAL_PAUSE_MS : plainPauseMs)) return;
      shownMs = nowMs();
      if (!isTerminal) stream.write(`${text}\n`);
      else stream.write(CLEAR_LINE + text.slice(0, (stream.columns ?? DEFAULT_COLUMNS) - 1));
    },
    line: (text) => void stream.write(`${isTerminal ? CLEAR_LINE : ''}${text}\n`),
    end() {
      if (isTerminal) stream.write(CLEAR_LINE);
    },
  };
}

const MIN_ELAPSED_MS = 2_000;

/** Describes progress, such as `1200 of 3000 (40 %), about 90 s left`. The remaining time is extrapolated. */
export function howFar(done: number, total: number, elapsedMs: number): string {
  if (total === 0) return '0 of 0';
  const share = `${done} of ${total} (${Math.floor((100 * done) / total)} %)`;
  if (done === 0 || done >= total || elapsedMs < MIN_ELAPSED_MS) return share;
  const leftS = Math.ceil((elapsedMs * (total - done)) / done / 1000);
  return `${share}, about ${leftS < 120 ? `${leftS} s` : `${Math.round(leftS / 60)} min`} left`;
}
