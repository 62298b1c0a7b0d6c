import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { AGAIN, type Repeated, repeat, SHORTEST_PAUSE_MS } from '#src/repeat.ts';

/** Repeats work for a while. @returns the number of runs that the shortest pause allows, and the actual number. */
async function runs(work: Repeated, isWoken = false) {
  let count = 0;
  const counted: Repeated = (stop, isEarly) => {
    count += 1;
    if (isWoken) setImmediate(() => loop.wake());
    return work(stop, isEarly);
  };
  const startedMs = performance.now();
  const loop = repeat(counted, { intervalMs: isWoken ? 600_000 : 0, onError: () => {} });
  await sleep(SHORTEST_PAUSE_MS * 10);
  await loop.stop();
  return { most: Math.ceil((performance.now() - startedMs) / (SHORTEST_PAUSE_MS - 1)), count };
}

it('work that always asks to run again pauses between its runs', async () => {
  const { most, count } = await runs(async () => AGAIN);
  expect(count).toBeGreaterThan(1);
  expect(count).toBeLessThanOrEqual(most);
});

it('work that is always woken early, or always fails, pauses between its runs', async () => {
  const woken = await runs(async () => {}, true);
  expect(woken.count).toBeGreaterThan(1);
  expect(woken.count).toBeLessThanOrEqual(woken.most);
  const failing = await runs(() => Promise.reject(new Error('broken')));
  expect(failing.count).toBeLessThanOrEqual(failing.most);
});

it('work that is woken while it rests runs again without waiting for its interval', async () => {
  const again = Promise.withResolvers<void>();
  let count = 0;
  const work = async () => {
    count += 1;
    if (count === 2) again.resolve();
  };
  const loop = repeat(work, { intervalMs: 600_000 });
  loop.wake();
  await again.promise;
  await loop.stop();
});

it('work that is woken while it runs runs again', async () => {
  const again = Promise.withResolvers<void>();
  let count = 0;
  const work = async () => {
    count += 1;
    if (count === 1) loop.wake();
    else again.resolve();
  };
  const loop = repeat(async () => sleep(1).then(work), { intervalMs: 600_000 });
  await again.promise;
  await loop.stop();
});

it('work that asks to run again after months rests for its interval only, and does not run all the time', async () => {
  let count = 0;
  const work = () => {
    count += 1;
    return { againInMs: 90 * 86_400_000 };
  };
  const loop = repeat(work, { intervalMs: 600_000 });
  await sleep(SHORTEST_PAUSE_MS * 5);
  await loop.stop();
  expect(count).toBe(1);
});

it('work whose first run comes later does not run before its interval has ended', async () => {
  const counts = { soon: 0, late: 0 };
  const start = (name: 'soon' | 'late', intervalMs: number) =>
    repeat(() => void counts[name]++, { intervalMs, isFirstLater: true });
  const loops = [start('soon', 50), start('late', 600_000)];
  await expect.poll(() => counts.soon).toBeGreaterThan(0);
  expect(counts.late).toBe(0);
  await Promise.all(loops.map((loop) => loop.stop()));
});

it('work that is woken all the time still gets its regular runs, and knows them from early ones', async () => {
  const runs: boolean[] = [];
  const work: Repeated = (_stop, isEarly) => {
    runs.push(isEarly);
    return AGAIN;
  };
  const startedMs = performance.now();
  const loop = repeat(work, { intervalMs: 200 });
  await expect.poll(() => runs.filter((isEarly) => !isEarly).length).toBe(4);
  expect(performance.now() - startedMs).toBeGreaterThan(3 * 0.75 * 200);
  await loop.stop();
  expect(runs.filter((isEarly) => isEarly).length).toBeGreaterThan(3);
});

it('work that nobody wakes runs once in each interval, never early', async () => {
  const runs: boolean[] = [];
  const loop = repeat((_stop, isEarly) => void runs.push(isEarly), { intervalMs: 30.5, jitter: 0 });
  await expect.poll(() => runs.length, { timeout: 5_000 }).toBeGreaterThan(10);
  await loop.stop();
  expect(runs.filter((isEarly) => isEarly)).toEqual([]);
});

it('works whose intervals differ begin together, at multiples of a quarter of a second', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const begins: number[] = [];
  const work = () => void begins.push(performance.now());
  const loops = [250, 500, 1_000, 3_000].map((intervalMs) =>
    repeat(work, { intervalMs, isFirstLater: true }),
  );
  await vi.advanceTimersByTimeAsync(9_999);
  expect(begins.length).toBeGreaterThan(40);
  expect(begins.filter((atMs) => atMs % 250 > 2)).toEqual([]);
  await Promise.all(loops.map((loop) => loop.stop()));
  vi.useRealTimers();
});
