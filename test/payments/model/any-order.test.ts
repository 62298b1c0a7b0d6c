import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { DisputeStage } from '#src/connectors/port/dispute-report.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { Report } from '#src/payments/model/apply.ts';
import type { OperationType } from '#src/payments/model/books.ts';
import type { PaymentState } from '#src/payments/model/state.ts';
import { runs } from '#test/support/fixed-seed.ts';
import {
  AMOUNT,
  APPROVED,
  approved,
  awaitingCode,
  BASE_ID,
  begun,
  CAN,
  CODE,
  claimedCode,
  learned,
} from './kept-payment.ts';
import { EXCESS, PART } from './payment-steps.ts';

/** Applies reports in their order; waiting reports come again, as a notification does. */
function inOrder(start: PaymentState, reports: readonly Report[]): PaymentState {
  let [state, waiting, before] = [start, reports, reports.length + 1];
  while (waiting.length > 0 && waiting.length < before) {
    before = waiting.length;
    waiting = waiting.filter((report) => {
      const next = learned(state, report);
      state = next.state;
      return next.change === 'waiting' || next.change === 'conflict';
    });
  }
  return state;
}

/**
 * Picks out everything that is independent of the order: the books, the states, and the set of
 * transactions.
 */
function outcomeOf({ payment, record, transactions }: PaymentState): unknown {
  const { version: _, ...books } = payment;
  const told = transactions.map((one) =>
    [one.type, one.status, String(one.minorUnits), one.providerPaymentId].join(' '),
  );
  return { books, status: record.status, subStatus: record.subStatus, told: told.sort() };
}

function holdsInAnyOrder(arbReports: (start: PaymentState) => fc.Arbitrary<readonly Report[]>): void {
  const arb = arbBegun.chain((start) =>
    arbReports(start).chain((reports) => {
      const arbOrder = fc.shuffledSubarray([...reports], { minLength: reports.length });
      return fc.record({ start: fc.constant(start), one: arbOrder, other: arbOrder });
    }),
  );
  fc.assert(
    fc.property(arb, ({ start, one, other }) => {
      expect(outcomeOf(inOrder(start, one))).toEqual(outcomeOf(inOrder(start, other)));
    }),
    { numRuns: runs(700) },
  );
}

/** An approved payment, perhaps partly captured, with an operation that was begun. */
const arbBegun = fc
  .record({
    capture: fc.boolean(),
    first: fc.bigInt({ min: 0n, max: AMOUNT }),
    type: fc.constantFrom<OperationType>('CAPTURE', 'REFUND', 'CANCEL'),
    minorUnits: fc.bigInt({ min: 1n, max: AMOUNT }),
  })
  .map(({ capture, first, type, minorUnits }) => {
    const captured = begun(approved(capture), 'CAPTURE', first, 'first');
    return begun(inOrder(captured, approvalsOf(captured)), type, minorUnits, 'second');
  });

function approvalsOf({ payment: { openOperation } }: PaymentState): Report[] {
  if (openOperation === undefined) return [];
  return [{ kind: 'outcome', transactionId: openOperation, outcome: APPROVED, pauseS: 5 }];
}

/** Divides an amount into at most three parts. */
const arbParts = (most: bigint) =>
  fc.tuple(...[1, 2, 3].map(() => fc.bigInt({ min: 0n, max: most > 0n ? most : 0n }))).map((parts) => {
    let left = most;
    return parts.flatMap((part) => {
      const fits = part > 0n && part <= left;
      if (fits) left -= part;
      return fits ? [part] : [];
    });
  });

function external(type: 'CAPTURE' | 'REFUND', minorUnits: bigint, n: number): Report {
  const providerPaymentId = `${type} ${n}`;
  const money = { minorUnits, currency: 'USD' };
  const operation = { type, money, reported: APPROVED, providerPaymentId };
  return { kind: 'external', transactionId: BASE_ID, operation, newId: providerPaymentId, can: CAN };
}

it('approvals, captures and refunds at the provider, and won disputes lead to the same state in any order', () => {
  let both = 0;
  holdsInAnyOrder((start) => {
    const settled = inOrder(start, approvalsOf(start));
    const { capturedMinorUnits: captured, refundedMinorUnits: refunded } = settled.payment;
    const isPurchase = settled.transactions.some(({ type }) => type === 'PURCHASE');
    const toCapture = isPurchase || settled.payment.isReleased ? 0n : AMOUNT - captured;
    return arbParts(toCapture).chain((captures) => {
      const taken = isPurchase ? AMOUNT : captures.reduce((sum, part) => sum + part, captured);
      const won = { stage: 'won', reference: 'dispute-1' } as const;
      return arbParts(taken - refunded).map((refunds) => {
        if (captures.length > 0 && refunds.length > 0) both++;
        return [
          ...approvalsOf(start),
          ...captures.map((part, n) => external('CAPTURE', part, n)),
          ...refunds.map((part, n) => external('REFUND', part, n)),
          { kind: 'dispute', dispute: won, newId: 'dispute', onlyOpen: false },
        ];
      });
    });
  });
  expect(both).toBeGreaterThan(100);
});

/** The reports of an operation that its provider corrects again and again, one a day. */
function flips(transactionId: string, times: number): Report[] {
  const corrects = [''];
  return Array.from({ length: times }, (_, nth): Report => {
    const outcome: Outcome =
      nth % 2 === 0
        ? { ...APPROVED, corrects }
        : {
            kind: 'declined',
            iso8583Code: '05',
            advice: 'NONE',
            providerData: APPROVED.providerData,
            corrects,
          };
    const reportedAt = new Date((nth + 1) * 86_400_000);
    return { kind: 'outcome', transactionId, outcome, pauseS: 5, reportedAt };
  });
}

it('captures and refunds that fail and are made again lead to the same state in any order, however often each is reported', () => {
  let flipped = 0;
  const arbTimes = fc.integer({ min: 1, max: 5 });
  holdsInAnyOrder((start) => {
    const operations = start.transactions.filter(({ type }) => type === 'CAPTURE' || type === 'REFUND');
    return fc.tuple(...operations.map(() => arbTimes)).chain((times) => {
      if (times.some((one) => one > 2)) flipped++;
      const all = (failsRefunds: boolean) =>
        operations.flatMap(({ id, type }, nth) => {
          const own = times[nth] ?? 1;
          return flips(id, failsRefunds && type === 'REFUND' && own % 2 === 1 ? own + 1 : own);
        });
      // A payment with more refunded than captured in the end needs manual review.
      const reports = holdsAfter(start, all(false)) ? all(false) : all(true);
      return fc.subarray(reports).map((repeated) => [...approvalsOf(start), ...reports, ...repeated]);
    });
  });
  expect(flipped).toBeGreaterThan(100);
});

/** Returns false if the last reports leave more refunded than captured. */
function holdsAfter(start: PaymentState, reports: readonly Report[]): boolean {
  const lasts = new Map(
    reports.flatMap((one) => (one.kind === 'outcome' ? [[one.transactionId, one.outcome.kind]] : [])),
  );
  const sum = (type: string) =>
    start.transactions
      .filter((one) => one.type === type && (lasts.get(one.id) ?? 'approved') === 'approved')
      .reduce((all, { minorUnits }) => all + minorUnits, 0n);
  const isPurchase = start.transactions.some(({ type }) => type === 'PURCHASE');
  return isPurchase || sum('REFUND') <= sum('CAPTURE');
}

it('approvals and the stages of disputes lead to the same state in any order', () => {
  const arbStages = fc.subarray<DisputeStage>(['opened', 'won', 'lost']);
  holdsInAnyOrder((start) =>
    fc.tuple(arbStages, arbStages).map((stages) => [
      ...approvalsOf(start),
      ...stages.flatMap((own, n) =>
        own.map(
          (stage): Report => ({
            ...{ kind: 'dispute', dispute: { stage, reference: `dispute-${n}` }, onlyOpen: false },
            newId: `dispute ${n}`,
          }),
        ),
      ),
    ]),
  );
});

/** Reports about a code, of which at least one ends it. */
const { providerData } = APPROVED;
const EXPIRED = { kind: 'expired', providerData } as const;
const OPEN_CODE: readonly Outcome[] = [
  CODE,
  { ...CODE, received: PART },
  { kind: 'pending', providerData },
  { kind: 'unknown', detail: '', providerData: undefined },
];
const ENDS: readonly Outcome[] = [
  EXPIRED,
  { ...EXPIRED, received: PART },
  APPROVED,
  { ...APPROVED, received: EXCESS },
];
const arbCodeReports = fc
  .tuple(fc.subarray([...OPEN_CODE]), fc.subarray([...ENDS], { minLength: 1 }))
  .map((parts) => parts.flat());

/** Applies reports about a code in their order. @returns its state, and the alarms that were raised. */
function alarmsInOrder(start: PaymentState, outcomes: readonly Outcome[]) {
  const alarms: string[] = [];
  let state = start;
  for (const outcome of outcomes) {
    const next = learned(state, { kind: 'outcome', transactionId: BASE_ID, outcome, pauseS: 5 });
    if (typeof next.change !== 'string') alarms.push(...(next.change.moneyAlarms ?? []));
    state = next.state;
  }
  return { state, alarms };
}

/** Returns the alarms that must be raised about the money of a code. */
function alarmsDue(outcomes: readonly Outcome[], isCanceled: boolean): string[] {
  const paidAt = outcomes.findIndex(({ kind }) => kind === 'approved');
  const endedAt = outcomes.findIndex(({ kind }) => kind === 'expired');
  const isPaid = paidAt >= 0;
  const isEndedFirst = endedAt >= 0 && (!isPaid || endedAt < paidAt);
  // While a cancel is open, the payment shows nothing but the cancel until the end.
  const hasPart = outcomes
    .slice(isCanceled ? endedAt : 0, endedAt + 1)
    .some((one) => (one.kind === 'awaits_payer' || one.kind === 'expired') && one.received !== undefined);
  const paid = outcomes[paidAt];
  return [
    ...(isEndedFirst && hasPart ? ['underpaid'] : []),
    ...(isPaid && (isEndedFirst || isCanceled) ? ['late_payment'] : []),
    ...(paid?.kind === 'approved' && paid.received ? ['overpaid'] : []),
  ];
}

it('a code ends alike in any order of its reports, and whoever has to decide about its money is told once', () => {
  const seen = new Set<string>();
  const arb = arbCodeReports.chain((reports) =>
    fc.record({
      start: fc.constantFrom(
        claimedCode(),
        awaitingCode(),
        begun(awaitingCode(), 'CANCEL', AMOUNT, 'cancel'),
      ),
      one: fc.shuffledSubarray(reports, { minLength: reports.length }),
      other: fc.shuffledSubarray(reports, { minLength: reports.length }),
    }),
  );
  fc.assert(
    fc.property(arb, ({ start, one, other }) => {
      const isCanceled = start.payment.openOperation !== undefined;
      const [first, second] = [alarmsInOrder(start, one), alarmsInOrder(start, other)];
      const ends = [first, second].map(({ state: { record, transactions } }) => {
        const base = transactions.find(({ id }) => id === BASE_ID);
        // A cancel that came too late ends with a report of its own.
        return [transactions.some((own) => own.status === 'PENDING') || record.status, base?.status];
      });
      expect(first.alarms.toSorted()).toEqual(alarmsDue(one, isCanceled).toSorted());
      expect(ends.map(([, status]) => status)).toEqual([ends[0]?.[1], ends[0]?.[1]]);
      if (!isCanceled) expect(ends[1]).toEqual(ends[0]);
      for (const alarm of first.alarms) seen.add(alarm);
      seen.add(`${ends[0]?.[1]}`);
    }),
    { numRuns: runs(700) },
  );
  expect([...seen].sort()).toEqual(['EXPIRED', 'SUCCEEDED', 'late_payment', 'overpaid', 'underpaid']);
});
