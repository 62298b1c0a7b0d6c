import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { DisputeStage } from '#src/connectors/port/dispute-report.ts';
import type { Report } from '#src/payments/model/apply.ts';
import type { PaymentState } from '#src/payments/model/state.ts';
import { runs } from '#test/support/fixed-seed.ts';
import { AMOUNT, APPROVED, approved, begun, learned, moneyOf, movedBetween } from './kept-payment.ts';
import { holds } from './payment-steps.ts';

it('the movements and corrections of every change are the change of the books and the disputes', () => {
  const seen = new Set<string>();
  holds((before, after, _report, change) => {
    for (const { kind } of change.corrections ?? []) seen.add(kind);
    expect(movedBetween(before, after, change)).toBe(moneyOf(after) - moneyOf(before));
    for (const { type, minorUnits, corrections = 0, correctedMinorUnits } of after.transactions) {
      if (type !== 'CHARGEBACK') continue;
      // The money is with the merchant after an even number of movements.
      if (corrections % 2 === 0) expect(correctedMinorUnits ?? 0n).toBe(0n);
      else expect(-(correctedMinorUnits ?? 0n)).toBeGreaterThan(0n);
      expect(minorUnits).toBeGreaterThan(0n);
    }
  }, runs(2_000));
  expect([...seen].sort()).toEqual(['DISPUTE_REINSTATED', 'DISPUTE_WITHDRAWN', 'REDONE', 'UNDONE']);
});

/** Applies reports in their order, and returns the corrections that were written. */
function correctionsIn(start: PaymentState, reports: readonly Report[]) {
  let state = start;
  const written: string[] = [];
  for (const report of reports) {
    const { state: after, change } = learned(state, report);
    if (typeof change !== 'string') {
      for (const { kind, minorUnits } of change.corrections ?? []) written.push(`${kind} ${minorUnits}`);
    }
    state = after;
  }
  return { state, written };
}

const disputed = (stage: DisputeStage, moves: number): Report => ({
  ...{
    kind: 'dispute',
    dispute: { stage, reference: 'dispute-1', moves },
    newId: 'dispute',
    onlyOpen: false,
  },
});

it('each movement of disputed money is written once, in any order of the news and however often it comes', () => {
  const reports = [disputed('opened', 1), disputed('won', 2), disputed('lost', 3), disputed('opened', 0)];
  const arb = fc.array(fc.constantFrom(...reports), { maxLength: 6 }).chain((repeated) => {
    const all = [...reports, ...repeated];
    return fc.shuffledSubarray(all, { minLength: all.length });
  });
  fc.assert(
    fc.property(arb, (order) => {
      const { state, written } = correctionsIn(approved(true), order);
      expect(written).toEqual([
        `DISPUTE_WITHDRAWN -${AMOUNT}`,
        `DISPUTE_REINSTATED ${AMOUNT}`,
        `DISPUTE_WITHDRAWN -${AMOUNT}`,
      ]);
      expect(moneyOf(state)).toBe(0n);
    }),
    { numRuns: runs(200) },
  );
});

it('a dispute that is lost moves no money until its provider says that it took the money', () => {
  const { state, written } = correctionsIn(approved(true), [disputed('opened', 0), disputed('lost', 0)]);
  expect(written).toEqual([]);
  expect(correctionsIn(state, [disputed('lost', 1), disputed('lost', 1)]).written).toEqual([
    `DISPUTE_WITHDRAWN -${AMOUNT}`,
  ]);
});

it('a refund that fails after its success and is made again with another amount is undone and redone once each', () => {
  const refund = (outcome: Extract<Report, { kind: 'outcome' }>['outcome'], day: number): Report => ({
    ...{ kind: 'outcome', transactionId: 'refund', outcome, pauseS: 5 },
    reportedAt: new Date(day * 86_400_000),
  });
  const { providerData } = APPROVED;
  const failed = {
    kind: 'declined',
    iso8583Code: '05',
    advice: 'NONE',
    providerData,
    corrects: [''],
  } as const;
  const money = { minorUnits: 30n, currency: 'USD' };
  const again = { ...APPROVED, corrects: [''], money };
  const start = begun(approved(true), 'REFUND', 40n, 'refund');
  const news = [
    refund(APPROVED, 1),
    refund(failed, 2),
    refund(failed, 2),
    refund(again, 3),
    refund(again, 3),
  ];
  const { state, written } = correctionsIn(start, news);
  expect(written).toEqual(['UNDONE 40', 'REDONE -30']);
  expect(moneyOf(state)).toBe(AMOUNT - 30n);
});
