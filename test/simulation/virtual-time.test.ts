import { expect, it } from 'vitest';
import { inVirtualTime } from '#src/simulation/virtual-time.ts';

it('virtual time leaps from one awaited moment to the next, in order', async () => {
  const seen: [string, number][] = [];
  await inVirtualTime(1_000, async (time) => {
    const sleep = async (name: string, atMs: number) => {
      await time.until(atMs);
      seen.push([name, time.now()]);
    };
    await Promise.all([
      sleep('late', 3_600_000),
      sleep('soon', 2_000),
      sleep('soon, too', 2_000),
      sleep('past', 0),
    ]);
  });
  expect(seen).toEqual([
    ['past', 1_000],
    ['soon', 2_000],
    ['soon, too', 2_000],
    ['late', 3_600_000],
  ]);
});

it('virtual time ends when its work fails, or waits for something that will never happen', async () => {
  const failing = inVirtualTime(0, async (time) => {
    await time.until(5);
    throw new Error('failed');
  });
  await expect(failing).rejects.toThrow('failed');
  await expect(inVirtualTime(0, () => new Promise(() => {}))).rejects.toThrow('will never happen');
});
