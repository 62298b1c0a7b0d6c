import { expect, it } from 'vitest';
import { drained } from './drain.ts';

/** Makes a clock on which each look takes some time. */
function clock(lookMs: number) {
  let nowMs = 0;
  return {
    nowMs: () => nowMs,
    pause: async () => {
      nowMs += lookMs;
    },
  };
}

/** Makes open outcomes whose checks are due. */
const ids = (count: number) => new Map(Array.from({ length: count }, (_, i) => [`${i}`, true]));

it('twenty outcomes that end half a minute apart are all waited for', async () => {
  const time = clock(20);
  const open = async () => ids(Math.max(0, 20 - Math.floor(time.nowMs() / 30_000)));
  expect(await drained(open, time)).toBe(true);
  expect(time.nowMs()).toBe(600_000);
});

it('the wait ends after a minute in which no outcome ends', async () => {
  const time = clock(20);
  const open = async () => ids(time.nowMs() < 30_000 ? 2 : 1);
  expect(await drained(open, time)).toBe(false);
  expect(time.nowMs()).toBe(90_000);
});

it('on a busy machine, where each look takes long, the wait is longer', async () => {
  const time = clock(500);
  expect(await drained(async () => ids(1), time)).toBe(false);
  expect(time.nowMs()).toBe(299_500);
});

it('an outcome whose check is due only in five minutes is waited for', async () => {
  const time = clock(20);
  const open = async () => (time.nowMs() < 300_000 ? new Map([['0', false]]) : ids(0));
  expect(await drained(open, time)).toBe(true);
});

it('a database that cannot be read proves neither that an outcome ended nor that none is open', async () => {
  const time = clock(20);
  const open = async () => (time.nowMs() < 1_000 ? ids(1) : undefined);
  expect(await drained(open, time)).toBe(false);
});

it('the wait ends although new outcomes keep coming and ending, if one never ends', async () => {
  const time = clock(20);
  const open = async () => new Map(['stuck', `${time.nowMs()}`].map((id) => [id, true]));
  expect(await drained(open, time)).toBe(false);
  expect(time.nowMs()).toBe(900_000);
});
