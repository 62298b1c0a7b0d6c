import { expect, it } from 'vitest';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import {
  approvedPauseS,
  heldPauseS,
  leaseS,
  mayBeClosed,
  newsPauseS,
  payerPauseS,
  reportsMore,
  variedPauseS,
} from '#src/payments/model/schedule.ts';
import { APPROVED } from './kept-payment.ts';

const schedule = { leaseMarginMs: 10_000, firstCheckMs: 5_000, closingMarginMs: 20_000 };
const connection = { deadlineMs: 30_000 };

it.each([
  [0, 5],
  [10_000, 5],
  [12_000, 6],
  [172_800_000, 86_400],
  [1e15, 86_400],
])(
  'the pause before the next check is half the age, between the first pause and a day: %i ms',
  (ageMs, pauseS) => {
    expect(variedPauseS(schedule, ageMs, 0.5)).toBe(pauseS);
    expect(variedPauseS(schedule, ageMs, 0)).toBeCloseTo(pauseS * 0.8);
    expect(variedPauseS(schedule, ageMs, 1)).toBeCloseTo(pauseS * 1.2);
  },
);

it.each([
  [0, 1e9, 60],
  [240_000, 1e9, 120],
  [1e9, 1e9, 3_600],
  [240_000, 90_000, 90],
  [240_000, 1, 1],
  [240_000, 0, 120],
  [240_000, -1, 120],
])(
  "the pause before a payer's look-up is half the age, within an hour and their time: %i ms, %i ms left",
  (ageMs, leftMs, pauseS) => {
    expect(payerPauseS(ageMs, leftMs)).toBe(pauseS);
  },
);

it.each([
  [0, 2],
  [6_000, 2],
  [100_000, 30],
  [1e9, 3_600],
])(
  'the pause before a waiting notification is retried is 0.3 of its age, from 2 s to an hour: %i ms',
  (ageMs, pauseS) => {
    expect(newsPauseS(ageMs)).toBeCloseTo(pauseS);
  },
);

it.each([
  ['stands', 86_400, { isSilent: false, needsReview: false }, 86_400],
  ['is about to end', 0.5, { isSilent: false, needsReview: false }, 1],
  ['has a silent provider', 86_400, { isSilent: true, needsReview: false }, 3_600],
  ['has a silent provider and is about to end', 60, { isSilent: true, needsReview: false }, 60],
  ['is past its term', 0, { isSilent: true, needsReview: false }, 3_600],
  ['is past its term and needs review', -1, { isSilent: false, needsReview: true }, 86_400],
])('the pause before the next check fits an authorization that %s', (_what, restS, why, pauseS) => {
  expect(heldPauseS(restS, why)).toBe(pauseS);
});

it('a request may be closed after the deadline of its call and the margin', () => {
  expect([49_999, 50_000].map((ageMs) => mayBeClosed(ageMs, connection, schedule))).toEqual([false, true]);
});

it('a lease lasts for its calls and the margin', () => {
  expect([leaseS(connection, schedule), leaseS(connection, schedule, 2)]).toEqual([40, 70]);
});

const withTotals = (captured: bigint, refunded: bigint) => ({ ...APPROVED, totals: { captured, refunded } });
const PENDING: Outcome = { kind: 'pending', providerData: APPROVED.providerData };
it.each<[string, Outcome, boolean, number | undefined, boolean]>([
  ['of a purchase', APPROVED, true, undefined, false],
  ['of an authorization', APPROVED, false, 86_400, false],
  ['of a captured purchase', withTotals(1n, 0n), true, undefined, false],
  ['of a captured authorization', withTotals(1n, 0n), false, 60, true],
  ['of an authorization with totals of nothing', withTotals(0n, 0n), false, 86_400, false],
  ['of a refunded purchase', withTotals(1n, 1n), true, 60, true],
  ['still to come', PENDING, false, undefined, false],
])('an approval %s is checked later if money may still move', (_what, outcome, capture, pauseS, isMore) => {
  expect(approvedPauseS({ capture }, outcome)).toBe(pauseS);
  expect(reportsMore(outcome, { capture })).toBe(isMore);
});
