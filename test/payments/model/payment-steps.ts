import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { DisputeStage } from '#src/connectors/port/dispute-report.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { Report } from '#src/payments/model/apply.ts';
import type { OperationType } from '#src/payments/model/books.ts';
import type { Change } from '#src/payments/model/change.ts';
import { beyondBooks } from '#src/payments/model/external.ts';
import { isOperation, type PaymentState } from '#src/payments/model/state.ts';
import { runs } from '#test/support/fixed-seed.ts';
import {
  AMOUNT,
  APPROVED,
  approved,
  awaitingCode,
  awaitingPayer,
  BASE_ID,
  begun,
  CAN,
  CODE,
  claimed,
  claimedCode,
  learned,
} from './kept-payment.ts';

const providerData = create(ProviderDataSchema);
/** Money that arrived for a code: too little, and too much. */
export const PART = { minorUnits: AMOUNT / 2n, currency: 'USD' };
export const EXCESS = { minorUnits: AMOUNT * 2n, currency: 'USD' };
/** An outcome of every kind, including corrections. */
export const OUTCOMES: readonly Outcome[] = [
  APPROVED,
  { ...APPROVED, providerPaymentId: 'base-id', corrects: [''] },
  { kind: 'declined', iso8583Code: '51', advice: 'NONE', providerData },
  {
    kind: 'declined',
    iso8583Code: '51',
    advice: 'NONE',
    providerData,
    providerPaymentId: 'base-id',
    corrects: [''],
  },
  { kind: 'pending', providerData },
  { kind: 'awaits_payer', show: { page: 'https://wallet.example' }, providerData },
  { kind: 'to_complete', providerData },
  { kind: 'expired', providerData },
  { kind: 'not_sent', because: 'turned_away', detail: '' },
  { kind: 'unknown', detail: '', providerData: undefined },
];
const ANY_OUTCOME: readonly Outcome[] = [
  ...[...OUTCOMES, CODE, { ...CODE, received: PART }],
  ...[
    { kind: 'expired' as const, providerData, received: PART },
    { ...APPROVED, received: EXCESS },
  ],
];

/** An event in the life of a payment: an operation begins, or a report arrives. */
type Step =
  | { readonly begins: OperationType; readonly minorUnits: bigint }
  | { readonly learns: (state: PaymentState, nth: number) => Report | undefined };

const arbAmount = fc.oneof(
  fc.bigInt({ min: 1n, max: AMOUNT + 20n }),
  fc.constantFrom(AMOUNT, AMOUNT / 2n, AMOUNT / 4n),
);
const arbBegin = fc
  .record({ begins: fc.constantFrom<OperationType>('CAPTURE', 'REFUND', 'CANCEL'), minorUnits: arbAmount })
  .map((step): Step => step);
const arbOutcome = fc.record({
  outcome: fc.constantFrom(...ANY_OUTCOME),
  pick: fc.nat(),
  isOfOpen: fc.boolean(),
});
const arbLearned = arbOutcome.map(
  ({ outcome, pick, isOfOpen }): Step => ({
    learns: ({ payment, transactions }) => {
      const own = transactions.filter(({ type }) => type !== 'CHARGEBACK');
      const any = own[pick % own.length]?.id ?? BASE_ID;
      const transactionId = (isOfOpen && payment.openOperation) || any;
      return { kind: 'outcome', transactionId, outcome, pauseS: 5 };
    },
  }),
);
const APPROVAL: Step = {
  learns: ({ payment: { openOperation: transactionId } }) =>
    transactionId === undefined
      ? undefined
      : { kind: 'outcome', transactionId, outcome: APPROVED, pauseS: 5 },
};
/** The provider's report that a capture or a refund has failed after all, or succeeded after all. */
const arbCorrection = fc.record({ pick: fc.nat(), day: fc.option(fc.integer({ min: 1, max: 3 })) }).map(
  ({ pick, day }): Step => ({
    learns: ({ transactions }) => {
      const final = transactions.filter(({ type, status }) => isOperation(type) && status !== 'PENDING');
      const corrected = final[pick % final.length];
      if (!corrected) return undefined;
      const outcome = corrected.status === 'SUCCEEDED' ? FAILED : { ...APPROVED, corrects: [''] };
      const reportedAt = day === null ? undefined : new Date(day * 86_400_000);
      return { kind: 'outcome', transactionId: corrected.id, outcome, pauseS: 5, reportedAt };
    },
  }),
);
const FAILED: Outcome = { kind: 'declined', iso8583Code: '05', advice: 'NONE', providerData, corrects: [''] };
const arbAttempt = fc
  .constantFrom(...ANY_OUTCOME.filter((one) => !('corrects' in one)))
  .map(
    (outcome): Step => ({ learns: () => ({ kind: 'outcome', transactionId: BASE_ID, outcome, pauseS: 5 }) }),
  );
const LAPSE: Step = { learns: () => ({ kind: 'lapsed', transactionId: BASE_ID }) };
const arbDispute = fc
  .record({
    stage: fc.constantFrom<DisputeStage>('opened', 'won', 'lost'),
    reference: fc.constantFrom(undefined, 'dispute-1', 'dispute-2'),
    minorUnits: fc.option(arbAmount, { nil: undefined }),
    moves: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined }),
    onlyOpen: fc.boolean(),
  })
  .map(({ stage, reference, minorUnits, moves, onlyOpen }): Step => {
    const money = minorUnits === undefined ? undefined : { minorUnits, currency: 'USD' };
    const dispute = { stage, reference, money, moves };
    return { learns: (_state, nth) => ({ kind: 'dispute', dispute, newId: `dispute ${nth}`, onlyOpen }) };
  });
const arbExternal = fc
  .record({
    type: fc.constantFrom('CAPTURE', 'REFUND'),
    minorUnits: arbAmount,
    providerPaymentId: fc.integer({ min: 1, max: 4 }).map((n) => `external-${n}`),
  })
  .map(({ type, minorUnits, providerPaymentId }): Step => {
    const money = { minorUnits, currency: 'USD' };
    const operation = { type: type as 'CAPTURE' | 'REFUND', money, reported: APPROVED, providerPaymentId };
    return {
      learns: (_state, nth) => ({
        ...{ kind: 'external', transactionId: BASE_ID, operation, newId: `external ${nth}`, can: CAN },
      }),
    };
  });
/** The total captured and refunded at the provider, some of which the books may lack. */
const arbTotals = fc.record({ captured: arbAmount, refunded: arbAmount }).map(
  (totals): Step => ({
    learns: (state, nth) => {
      const transaction = state.transactions.find(({ id }) => id === BASE_ID);
      const operation = transaction && beyondBooks({ ...state, transaction }, { ...APPROVED, totals });
      if (!operation) return undefined;
      return { kind: 'external', transactionId: BASE_ID, operation, newId: `external ${nth}`, can: CAN };
    },
  }),
);
const arbSteps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: arbBegin },
    { weight: 3, arbitrary: arbLearned },
    { weight: 3, arbitrary: fc.constant(APPROVAL) },
    { weight: 1, arbitrary: arbCorrection },
    { weight: 1, arbitrary: arbAttempt },
    { weight: 1, arbitrary: fc.constant(LAPSE) },
    { weight: 1, arbitrary: arbDispute },
    { weight: 3, arbitrary: arbExternal },
    { weight: 1, arbitrary: arbTotals },
  ),
  { minLength: 1, maxLength: 16, size: 'max' },
);
const arbStart = fc
  .record({
    capture: fc.boolean(),
    from: fc.constantFrom(
      ...[approved, approved, approved, claimed, awaitingPayer, awaitingPayer],
      ...[() => claimedCode(), awaitingCode],
    ),
  })
  .map(({ capture, from }) => from(capture));

/** A payment whose payer has yet to act. */
export const AWAITING: fc.Arbitrary<PaymentState> = fc
  .constantFrom(
    () => awaitingPayer(true),
    () => awaitingPayer(false),
    awaitingCode,
  )
  .map((from) => from());

/** Runs the steps; `look` sees the state before and after each applied report. */
function live(
  start: PaymentState,
  steps: readonly Step[],
  look: (before: PaymentState, after: PaymentState, report: Report, change: Change) => void,
): void {
  let state = start;
  for (const [nth, step] of steps.entries()) {
    if ('begins' in step) {
      state = begun(state, step.begins, step.minorUnits, `operation ${nth}`);
      continue;
    }
    const report = step.learns(state, nth);
    if (!report) continue;
    const { state: after, change } = learned(state, report);
    if (typeof change !== 'string') look(state, after, report, change);
    state = after;
  }
}

/** Checks a property on payments with arbitrary steps. */
export function holds(look: Parameters<typeof live>[2], numRuns = runs(700), starts = arbStart): void {
  fc.assert(
    fc.property(starts, arbSteps, (start, steps) => live(start, steps, look)),
    { numRuns },
  );
}
