import { setTimeout } from 'node:timers/promises';
import { beforeEach, expect, it } from 'vitest';
import { createLookUpTurns, type LookUpTurns } from '#src/payments/check/look-up-turns.ts';

const EVERY_MS = 100;

/** Every look-up, in order: when it began, and by which evidence. */
let asked: { readonly atMs: number; readonly evidence: string }[];
let isOpen: boolean;
beforeEach(() => {
  [asked, isOpen] = [[], true];
});

/** Comes back; an answer takes so many milliseconds. */
function come(turns: LookUpTurns, { id = 'one', evidence = '', answerMs = 0 } = {}): Promise<void> {
  return turns.take(id, {
    ask: async () => {
      asked.push({ atMs: performance.now(), evidence });
      await setTimeout(answerMs);
    },
    isOpen: async () => isOpen,
    evidence,
  });
}

const gapsMs = () => asked.slice(1).map(({ atMs }, i) => atMs - (asked[i]?.atMs ?? 0));

it('callers who come after a look-up began share one that begins when the pause is over', async () => {
  const turns = createLookUpTurns(EVERY_MS);
  const first = come(turns);
  await Promise.all([come(turns), come(turns), come(turns)]);
  await first;
  expect(asked).toHaveLength(2);
  expect(gapsMs()[0]).toBeGreaterThanOrEqual(EVERY_MS - 1);
});

it('callers get the result of the look-up under way if it ends the matter, and no other is made', async () => {
  const turns = createLookUpTurns(10_000);
  const first = come(turns, { answerMs: 50 });
  isOpen = false;
  await Promise.all([come(turns), come(turns), first]);
  await come(turns);
  expect(asked).toHaveLength(1);
});

it('callers wait for no provider that is slow: the next look-up begins when the pause is over', async () => {
  const turns = createLookUpTurns(EVERY_MS);
  const answer = Promise.withResolvers<void>();
  const slow = turns.take('one', { ask: () => answer.promise, isOpen: async () => isOpen, evidence: '' });
  await come(turns);
  expect(asked).toHaveLength(1);
  answer.resolve();
  await slow;
});

it('callers have the look-up that they came for though the process stood still for many turns', async () => {
  const turns = createLookUpTurns(EVERY_MS);
  const first = come(turns, { evidence: 'a' });
  const second = come(turns, { evidence: 'b' });
  for (const until = performance.now() + 10 * EVERY_MS; performance.now() < until; );
  await Promise.all([first, second]);
  expect(asked.map(({ evidence }) => evidence)).toEqual(['a', 'b']);
});

it('callers with evidence of their own each have a look-up by it, one after the other', async () => {
  const turns = createLookUpTurns(EVERY_MS);
  await Promise.all(['', 'a', 'b', 'b'].map((evidence) => come(turns, { evidence })));
  expect(asked.map(({ evidence }) => evidence).sort()).toEqual(['', 'a', 'b']);
  expect(Math.min(...gapsMs())).toBeGreaterThanOrEqual(EVERY_MS - 1);
});

it('what others look up, and how it ends, is no matter', async () => {
  const turns = createLookUpTurns(10_000);
  const broken = turns.take('one', {
    ask: () => Promise.reject(new Error('no database')),
    isOpen: async () => isOpen,
    evidence: '',
  });
  await expect(broken).rejects.toThrow('no database');
  await come(turns, { id: 'two' });
  expect(asked).toHaveLength(1);
});

it('a flood piles up few callers who wait, of one payment and of all, and the others end at once', async () => {
  const turns = createLookUpTurns(1_000);
  let over = 0;
  const comeAll = (ids: readonly string[]) => ids.map((id) => come(turns, { id }).then(() => over++));
  const ids = Array.from({ length: 20 }, (_, i) => String(i));
  await Promise.all(comeAll(ids));
  over = 0;
  const ofOne = comeAll(Array.from({ length: 50 }, () => '0'));
  await setTimeout(0);
  expect(over).toBe(45);
  const ofAll = comeAll(ids.flatMap((id) => [id, id, id, id]));
  await setTimeout(0);
  expect(over).toBe(45 + 80 - 35);
  await Promise.all([...ofOne, ...ofAll]);
  // Nobody waits any more, so others may.
  const again = comeAll(['0']);
  await Promise.all(again);
  expect(over).toBe(131);
});
