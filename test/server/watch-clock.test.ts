import { pino } from 'pino';
import { beforeEach, expect, it } from 'vitest';
import { createMetrics } from '#src/observe/metrics.ts';
import { observeClock } from '#src/observe/observe-clock.ts';
import { watchClock } from '#src/server/watch-clock.ts';
import type { Database } from '#src/store/engine/database.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { database, onOwnDatabase } from '../support/own-database.ts';
import { withClockAhead } from '../support/process-clock.ts';

onOwnDatabase({});
let lines: string[];
let metrics: ReturnType<typeof createMetrics>;
beforeEach(() => {
  lines = [];
  metrics = createMetrics();
});

/** Watches a process's clock for the given number of comparisons. */
async function watched(aheadMs: number, times = 1, query = database.query): Promise<void> {
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => lines.push(line) });
  const { compared, failed } = observeClock(metrics, log);
  const done = Promise.withResolvers<void>();
  let left = times;
  const then =
    <T>(observe: (seen: T) => void) =>
    (seen: T) => {
      observe(seen);
      left -= 1;
      if (left === 0) done.resolve();
    };
  const clock = { compared: then(compared), failed: then(failed) };
  await withClockAhead(aheadMs, async () => {
    const loop = watchClock({ database: { ...database, query }, clock }, { intervalMs: 10 });
    await done.promise;
    await loop.stop();
  });
}

const difference = async () => (await metrics.clockDifference.get()).values[0]?.value ?? Number.NaN;

it('a clock that agrees with the database’s raises no alarm', async () => {
  await watched(0, 2);
  expect(lines).toEqual([]);
  expect(await difference()).toBeLessThan(30);
});

it.each([
  ['ahead', 90_000, 90],
  ['behind', -90_000, -90],
])('a clock that is more than a minute %s raises an alarm', async (_where, aheadMs, ahead_s) => {
  await watched(aheadMs);
  const msg = "this machine's clock and the database's are more than a minute apart";
  expect(lines.map((line) => JSON.parse(line))[0]).toMatchObject({
    level: 40,
    ahead_s: expect.closeTo(ahead_s, -1),
    msg,
  });
  expect(await difference()).toBeGreaterThan(60);
});

it('an unavailable database does not end the watch', async () => {
  let isAway = true;
  const query: Database['query'] = async (...statement) => {
    if (!isAway) return database.query(...statement);
    isAway = false;
    throw new DatabaseUnavailableError(new Error('refused'));
  };
  await watched(90_000, 2, query);
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual([
    expect.stringContaining('the comparison will be retried'),
    expect.stringContaining('more than a minute apart'),
  ]);
});
