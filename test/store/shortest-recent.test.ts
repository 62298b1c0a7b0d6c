import { expect, it } from 'vitest';
import { createShortestRecent } from '#src/store/engine/shortest-recent.ts';

let nowMs = 0;
const clock = () => nowMs;

it('the shortest duration is returned in its own period of ten seconds and in the next period', () => {
  const recent = createShortestRecent(clock);
  expect(recent.shortestMs()).toBeUndefined();
  for (const durationMs of [7, 3, 5]) recent.add(durationMs);
  expect(recent.shortestMs()).toBe(3);
  nowMs += 10_000;
  recent.add(9);
  expect(recent.shortestMs()).toBe(3);
  nowMs += 9_999;
  expect(recent.shortestMs()).toBe(3);
  nowMs += 1;
  expect(recent.shortestMs()).toBe(9);
});

it('durations from before a long pause do not count', () => {
  const recent = createShortestRecent(clock);
  recent.add(3);
  nowMs += 20_000;
  expect(recent.shortestMs()).toBeUndefined();
  recent.add(8);
  nowMs += 9_999;
  recent.add(12);
  expect(recent.shortestMs()).toBe(8);
});

it('a period lasts ten seconds from its first duration, even after a pause', () => {
  const recent = createShortestRecent(clock);
  nowMs += 25_000;
  recent.add(4);
  nowMs += 5_000;
  recent.add(6);
  expect(recent.shortestMs()).toBe(4);
  nowMs += 10_000;
  expect(recent.shortestMs()).toBe(6);
});
