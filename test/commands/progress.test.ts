import { expect, it } from 'vitest';
import { createProgress, howFar } from '#src/commands/progress.ts';

const CLEAR = '\r\u001b[K';

/** Makes a progress display whose clock the test sets, and collects its output. */
function progressOn(stream: { isTTY?: boolean; columns?: number }, plainPauseMs?: number) {
  const written: string[] = [];
  const clock = { ms: 0 };
  const write = (text: unknown) => written.push(String(text)) > 0;
  const progress = createProgress(
    { ...stream, write },
    { nowMs: () => clock.ms, ...(plainPauseMs !== undefined && { plainPauseMs }) },
  );
  return { progress, written, clock };
}

it('on a terminal, progress overwrites one line, cut to its width, and permanent lines stay above it', () => {
  const { progress, written, clock } = progressOn({ isTTY: true, columns: 10 });
  progress.state('first and long');
  clock.ms = 49;
  progress.state('too soon');
  progress.line('stays');
  clock.ms = 50;
  progress.state('second');
  progress.end();
  expect(written).toEqual([`${CLEAR}first and`, `${CLEAR}stays\n`, `${CLEAR}second`, CLEAR]);
});

it('without a terminal, progress is a plain line every ten seconds, and quick work prints none', () => {
  const { progress, written, clock } = progressOn({});
  for (const ms of [0, 9_999, 10_000, 15_000, 20_000]) {
    clock.ms = ms;
    progress.state(`at ${ms}`);
  }
  progress.line('stays');
  progress.end();
  expect(written).toEqual(['at 10000\n', 'at 20000\n', 'stays\n']);
});

it('without a terminal, progress can be limited to permanent lines', () => {
  const { progress, written, clock } = progressOn({}, Number.POSITIVE_INFINITY);
  clock.ms = 1e9;
  progress.state('never');
  expect(written).toEqual([]);
});

it('progress shows how much is done, and estimates the remaining time once it has enough data', () => {
  expect(howFar(0, 0, 5_000)).toBe('0 of 0');
  expect(howFar(0, 300, 5_000)).toBe('0 of 300 (0 %)');
  expect(howFar(100, 300, 1_999)).toBe('100 of 300 (33 %)');
  expect(howFar(100, 300, 2_000)).toBe('100 of 300 (33 %), about 4 s left');
  expect(howFar(1, 61, 3_000)).toBe('1 of 61 (1 %), about 3 min left');
  expect(howFar(300, 300, 5_000)).toBe('300 of 300 (100 %)');
});
