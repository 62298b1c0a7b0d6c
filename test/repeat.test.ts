import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type Repeated, repeat, SHORTEST_PAUSE_MS } from '#src/repeat.ts';

/** Repeats work for a while. @returns the number of runs that the shortest pause allows, and the actual number. */
async function runs(work: Repeated, sooner?: () => Promise<unknown>) {
  let count = 0;
  const counted: Repeated = (stop, isEarly) => {
    count += 1;
    return work(stop, isEarly);
  };
  const startedMs = performance.now();
  const stop = repeat(counted, { intervalMs: 0, sooner, onError: () => {} });
  await sleep(SHORTEST_PAUSE_MS * 10);
  await stop();
  return { most: Math.ceil((performance.now() - startedMs) / (SHORTEST_PAUSE_MS - 1)), count };
}

it('work that always asks to run again pauses between its runs', async () => {
  const { most, count } = await runs(async () => true);
  expect(count).toBeGreaterThan(1);
  expect(count).toBeLessThanOrEqual(most);
});

it('work that is always woken early, or always fails, pauses between its runs', async () => {
  const woken = await runs(
    async () => false,
    () => Promise.resolve(),
  );
  expect(woken.count).toBeLessThanOrEqual(woken.most);
  const failing = await runs(() => Promise.reject(new Error('broken')));
  expect(failing.count).toBeLessThanOrEqual(failing.most);
});

it('work that is woken while it rests runs again without waiting for its interval', async () => {
  const woken = Promise.withResolvers<void>();
  const again = Promise.withResolvers<void>();
  let count = 0;
  const work = async () => {
    count += 1;
    if (count === 2) again.resolve();
  };
  const stop = repeat(work, { intervalMs: 600_000, sooner: () => woken.promise, onError: () => {} });
  woken.resolve();
  await again.promise;
  await stop();
});

it('work that is woken all the time still gets its regular runs, and knows them from early ones', async () => {
  const runs: boolean[] = [];
  const work: Repeated = async (_stop, isEarly) => void runs.push(isEarly);
  const startedMs = performance.now();
  const stop = repeat(work, { intervalMs: 200, sooner: () => Promise.resolve(), onError: () => {} });
  await expect.poll(() => runs.filter((isEarly) => !isEarly).length).toBe(4);
  expect(performance.now() - startedMs).toBeGreaterThan(3 * 0.75 * 200);
  await stop();
  expect(runs.filter((isEarly) => isEarly).length).toBeGreaterThan(3);
});
