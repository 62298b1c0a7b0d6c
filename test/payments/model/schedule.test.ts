import { afterEach, expect, it, vi } from 'vitest';
import { lookUpPauseS } from '#src/payments/check/look-up-schedule.ts';
import { leaseS, mayBeClosed, payerTimeLeftMs } from '#src/payments/model/schedule.ts';

const schedule = { leaseMarginMs: 10_000, firstLookUpMs: 5_000, closingMarginMs: 20_000 };
const connection = { deadlineMs: 30_000 };
afterEach(() => {
  vi.restoreAllMocks();
});

it.each([
  [0, 5],
  [10_000, 5],
  [12_000, 6],
  [172_800_000, 86_400],
  [1e15, 86_400],
])(
  'the pause before the next look-up is half the age, between the first pause and a day: %i ms',
  (ageMs, pauseS) => {
    const drawn = vi.spyOn(Math, 'random').mockReturnValue(0.5);
    expect(lookUpPauseS(schedule, ageMs)).toBe(pauseS);
    drawn.mockReturnValue(0);
    expect(lookUpPauseS(schedule, ageMs)).toBeCloseTo(pauseS * 0.8);
    drawn.mockReturnValue(1);
    expect(lookUpPauseS(schedule, ageMs)).toBeCloseTo(pauseS * 1.2);
  },
);

it('a request may be closed once the deadline of its call and the margin are over', () => {
  expect([49_999, 50_000].map((ageMs) => mayBeClosed(ageMs, connection, schedule))).toEqual([false, true]);
});

it('a payer’s time is the term less the age, and may be over', () => {
  expect([0, 119_999, 120_001].map((ageMs) => payerTimeLeftMs(ageMs, { redirectValidMinutes: 2 }))).toEqual([
    120_000, 1, -1,
  ]);
});

it('a lease is as long as its calls may take, and the margin', () => {
  expect([leaseS(connection, schedule), leaseS(connection, schedule, 2)]).toEqual([40, 70]);
});
