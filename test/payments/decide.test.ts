import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { Payment_SubStatus_Value, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { alarmingOutcome } from '#src/connectors/kit/provider-answer.ts';
import type { Dispute } from '#src/connectors/port/dispute-report.ts';
import type { Outcome, Totals } from '#src/connectors/port/outcome.ts';
import {
  type Answer,
  type CheckTerms,
  type Decision,
  decide,
  type Found,
  mustLookUp,
} from '#src/payments/check/decide.ts';
import type { OperationType } from '#src/payments/model/books.ts';
import type { PaymentState, TransactionRow } from '#src/payments/model/state.ts';
import { NO_LOOK_UP } from '#src/payments/model/waiting.ts';
import { UNKNOWN } from '../support/outcomes.ts';
import { found } from './found-payment.ts';
import { AMOUNT, APPROVED, approved, begun, claimed, learned } from './model/kept-payment.ts';

const DAY_MS = 86_400_000;
const HOUR_S = 3_600;
const PAUSE_S = 5;
const TERMS: CheckTerms = { hasLookUp: true, hasNews: false, pauseS: () => PAUSE_S };
const NEWS: CheckTerms = { ...TERMS, hasNews: true };
const NO_LOOK_UPS: CheckTerms = { ...TERMS, hasLookUp: false };

const providerData = create(ProviderDataSchema);
const ALARM = alarmingOutcome('the amount differs');
const DECLINED: Outcome = { kind: 'declined', providerData, iso8583Code: '05', advice: 'NONE' };
const EXPIRED: Outcome = { kind: 'expired', providerData };
const NOT_SENT: Outcome = { kind: 'not_sent', because: 'turned_away', detail: 'never happened' };
const _PENDING: Outcome = { kind: 'pending', providerData };
const REDIRECT: Outcome = { kind: 'awaits_payer', providerData, show: { page: 'https://wallet.example' } };
const withTotals = (totals: Totals): Outcome => ({ ...APPROVED, totals });
const withDispute = (dispute: Dispute, totals?: Totals): Outcome => ({
  ...{ ...APPROVED, endedDisputes: [dispute] },
  ...(totals && { totals }),
});

/** A purchase whose payer was redirected. */
function away(over: Partial<TransactionRow> = {}): Found {
  const state = claimed(true);
  const record = { ...state.record, subStatus: Payment_SubStatus_Value.WAITING_ADDITIONAL_STEP };
  return found({ ...state, record }, { awaitsPayer: true, status: 'CREATED', ...over });
}

/** A payment after an operation of ours had an outcome. */
function operated(state: PaymentState, type: OperationType, outcome: Outcome = APPROVED): PaymentState {
  const report = { kind: 'outcome', transactionId: 'operation', outcome, pauseS: PAUSE_S } as const;
  return learned(begun(state, type, 40n, 'operation'), report).state;
}

const [AUTHORIZED, PURCHASED] = [approved(false), approved(true)];
const DISPUTED = learned(PURCHASED, {
  ...{ kind: 'dispute', newId: 'dispute', onlyOpen: false },
  dispute: { stage: 'opened', reference: 'dp-1' },
}).state;
const REFUNDED = operated(PURCHASED, 'REFUND');
const refunded = (over: Partial<TransactionRow> = {}) =>
  found(REFUNDED, { reference: 'r-1', providerPaymentId: 'r-1', ageMs: DAY_MS, ...over }, 'operation');
const ofRefunded = (over: Partial<TransactionRow>): Found => {
  const { transactions } = refunded(over);
  return { ...found(REFUNDED), transactions };
};
const CAPTURED = operated(AUTHORIZED, 'CAPTURE');
const held = (over: Partial<TransactionRow> = {}) => found(AUTHORIZED, over);
const PAST_TERM = { ageMs: 7 * DAY_MS };
const released = (state: PaymentState): PaymentState => ({
  ...state,
  payment: { ...state.payment, isReleased: true },
});

/** Writes a decision in a line. */
function lineOf(decision: Decision): string {
  const shown = 'learned' in decision ? decision.learned : undefined;
  const word = typeof shown === 'string' ? shown : shown && `${shown.kind}${'alarm' in shown ? '!' : ''}`;
  const line = (...parts: unknown[]) => [decision.kind, ...parts, `(${word ?? '-'})`].join(' ');
  switch (decision.kind) {
    case 'nothing':
      return line(decision.result, decision.checkInS ?? 'never');
    case 'write':
    case 'close': {
      const { report } = decision;
      const what = report.kind === 'outcome' ? `${report.transactionId} ${report.outcome.kind}` : report.kind;
      return decision.kind === 'write'
        ? line(what, decision.checkInS ?? 'never', ...(decision.again ? ['again'] : []))
        : line(what);
    }
    case 'external': {
      const { made, checkInS } = decision;
      const pauses = [checkInS.applied, checkInS.waiting, checkInS.unchanged].map((one) => one ?? 'never');
      return line(made.type, made.money.minorUnits, pauses.join('/'));
    }
    case 'end_disputes':
      return line(decision.disputes.map(({ stage }) => stage).join(), ...(decision.again ? ['again'] : []));
    case 'look_up_refund':
      return line(decision.refund.id);
    case 'release':
      return line();
  }
}

type Row = [what: string, own: Found, answer: Outcome | Answer, line: string, terms?: CheckTerms];

/** Checks the decisions of a table, each as a line. */
function table(rows: readonly Row[]): void {
  it.each(rows)('%s', (_what, own, answer, line, terms = TERMS) => {
    expect(lineOf(decide(own, 'kind' in answer ? { outcome: answer } : answer, terms))).toBe(line);
  });
}

const NOT_CALLED: Answer = { outcome: undefined };

describe('after the look-up of an attempt', () => {
  const open = found(claimed(true));
  table([
    ['an approval is written', open, APPROVED, 'write base approved never (approved)'],
    ['an attempt that was never sent is written', open, NOT_SENT, 'write base not_sent never (not_sent)'],
    ['nothing is known of a silent provider', open, UNKNOWN, 'nothing unanswered 5 (unknown)'],
    ['an alarm is an answer that changes nothing', open, ALARM, 'nothing unchanged 5 (unknown!)'],
    [
      'an authorization that is captured already is written, then looked up again',
      found(claimed(false)),
      withTotals({ captured: 60n, refunded: 0n }),
      'write base approved never again (approved)',
    ],
    [
      'the approval of a declined attempt is a contradiction',
      found(claimed(true), { status: 'DECLINED' }),
      APPROVED,
      'write base approved never (contradiction)',
    ],
    [
      'the decline of an approved purchase is a contradiction',
      found(PURCHASED),
      DECLINED,
      'write base declined never (contradiction)',
    ],
    [
      'a second charge is an alarm, and changes nothing',
      found(PURCHASED),
      { ...APPROVED, providerPaymentId: 'another' },
      'nothing unchanged never (unknown!)',
    ],
    [
      'a final attempt without look-up is left',
      found(PURCHASED),
      NOT_CALLED,
      'nothing unchanged never (-)',
      NO_LOOK_UPS,
    ],
    [
      'an attempt without look-up and response gets its response',
      found(claimed(true), { awaitsResponse: true }),
      NO_LOOK_UP,
      'write base unknown never (unknown)',
      NO_LOOK_UPS,
    ],
    [
      'an attempt that awaits its response, and that the look-up does not know yet, waits for half a minute',
      found(claimed(true), { awaitsResponse: true, ageMs: 29_999 }),
      UNKNOWN,
      'nothing unanswered 5 (unknown)',
    ],
    [
      'an attempt that the look-up does not know for half a minute gets its response',
      found(claimed(true), { awaitsResponse: true, ageMs: 30_000 }),
      UNKNOWN,
      'write base unknown never (unknown)',
    ],
    ['an attempt without look-up waits', open, NO_LOOK_UP, 'nothing unchanged 5 (unknown)', NO_LOOK_UPS],
  ]);
});

describe('after the look-up of a payment whose payer must act', () => {
  table([
    ['a payer with time left is waited for', away(), REDIRECT, 'nothing unchanged 60 (awaits_payer)'],
    [
      'the last check is due when the time is over',
      away({ ageMs: 3_629_000 }),
      REDIRECT,
      'nothing unchanged 1 (awaits_payer)',
    ],
    [
      'a payer whose time is over has not paid',
      away({ ageMs: 3_630_000 }),
      REDIRECT,
      'write base expired never (awaits_payer)',
    ],
    [
      'a payer who paid has paid',
      away({ ageMs: 3_630_000 }),
      APPROVED,
      'write base approved never (approved)',
    ],
    [
      'silence never ends a payment',
      away({ ageMs: 3_630_000 }),
      UNKNOWN,
      'nothing unanswered 1815 (unknown)',
    ],
    [
      'a payer who did not return to a provider without look-up has not paid',
      away({ ageMs: 3_630_000 }),
      NO_LOOK_UP,
      'write base expired never (unknown)',
      NO_LOOK_UPS,
    ],
    [
      'a payer who returned to a provider without look-up may have paid',
      away({ ageMs: 3_630_000 }),
      UNKNOWN,
      'write base pending never (unknown)',
      NO_LOOK_UPS,
    ],
  ]);
});

describe('after the look-up of an operation', () => {
  const refunding = begun(PURCHASED, 'REFUND', 40n, 'operation');
  const open = (over: Partial<TransactionRow> = {}) => found(refunding, over, 'operation');
  table([
    ['its success is written', open(), APPROVED, 'write operation approved never (approved)'],
    ['silence leaves it open', open(), UNKNOWN, 'nothing unanswered 5 (unknown)'],
    [
      'its caller gets a response even while it is unknown',
      open({ awaitsResponse: true }),
      UNKNOWN,
      'write operation unknown never (unknown)',
    ],
    [
      'a failure that corrects its success is written',
      refunded(),
      { ...DECLINED, corrects: [''] } as Outcome,
      'write operation declined never (declined)',
    ],
    [
      'a failure that corrects its success waits for another operation, without an alarm',
      { ...refunded(), payment: { ...REFUNDED.payment, openOperation: 'another' } },
      { ...DECLINED, corrects: [''] } as Outcome,
      'write operation declined never (declined)',
    ],
    [
      'a failure that corrects nothing is a contradiction',
      refunded(),
      DECLINED,
      'write operation declined never (contradiction)',
    ],
    [
      'a final operation without a reference is left',
      refunded({ reference: undefined }),
      NOT_CALLED,
      'nothing unchanged never (-)',
    ],
  ]);
});

describe('totals and disputes in a look-up', () => {
  const failed = { captured: AMOUNT, refunded: 0n, movements: [], failedRefunds: ['r-1'] };
  const both = withDispute({ stage: 'won', reference: 'dp-1' }, { captured: AMOUNT, refunded: 30n });
  table([
    [
      'a refund made elsewhere is recorded',
      found(PURCHASED),
      withTotals({ captured: AMOUNT, refunded: 30n }),
      'external REFUND 30 never/60/never (approved)',
    ],
    [
      'a refund that is listed as failed is looked up',
      ofRefunded({}),
      withTotals(failed),
      'look_up_refund operation (-)',
    ],
    [
      'a refund that the totals lack after an hour is undone',
      ofRefunded({}),
      withTotals({ captured: AMOUNT, refunded: 0n }),
      'write base approved never (contradiction)',
    ],
    [
      'a refund that the totals still lack may be late',
      ofRefunded({ ageMs: 1_000 }),
      withTotals({ captured: AMOUNT, refunded: 0n }),
      'write base approved never (approved)',
    ],
    [
      'an open dispute that is over ends',
      found(DISPUTED),
      withDispute({ stage: 'won', reference: 'dp-1' }),
      'end_disputes won (approved)',
    ],
    [
      'an open dispute ends before a refund is recorded',
      found(DISPUTED),
      both,
      'end_disputes won again (approved)',
    ],
    [
      'a dispute that is not recorded does not end',
      found(PURCHASED),
      both,
      'external REFUND 30 never/60/never (approved)',
    ],
  ]);
});

describe('after the look-up of an authorization', () => {
  const day = (days: number) => days * 24 * HOUR_S;
  const over = found(released(AUTHORIZED));
  const takenElsewhere = found({
    ...released(AUTHORIZED),
    transactions: [
      ...AUTHORIZED.transactions,
      { ...CAPTURED.transactions[1], reference: undefined } as TransactionRow,
    ],
  });
  const operating = found(begun(AUTHORIZED, 'CAPTURE', 40n, 'operation'), PAST_TERM);
  /** An authorization after its term, with a capture that has failed late, so many days ago. */
  const failedLate = (days: number) => {
    const failure = { ...DECLINED, corrects: [''] } as Outcome;
    const report = {
      kind: 'outcome',
      transactionId: 'operation',
      outcome: failure,
      pauseS: PAUSE_S,
    } as const;
    const { state } = learned(CAPTURED, report);
    const transactions = state.transactions.map((one) => ({ ...one, sinceReportMs: days * DAY_MS }));
    return found({ ...state, transactions }, PAST_TERM);
  };
  const captures = withTotals({ captured: 60n, refunded: 0n });
  const refused = { outcome: APPROVED, release: 'refused' } as const;
  table([
    [
      'it is held until the end of its term',
      held({ ageMs: DAY_MS }),
      APPROVED,
      `nothing unchanged ${day(6)} (approved)`,
    ],
    ['silence is repeated within the hour', held(), UNKNOWN, `nothing unchanged ${HOUR_S} (unknown)`],
    ['silence leaves the news open', held(), UNKNOWN, `nothing unanswered ${HOUR_S} (unknown)`, NEWS],
    ['after its term, it is released', held(PAST_TERM), APPROVED, 'release (-)'],
    [
      'its release ends it',
      held(PAST_TERM),
      { outcome: APPROVED, release: 'released' },
      `write lapsed ${HOUR_S} (lapsed)`,
    ],
    [
      'an unknown release is repeated',
      held(PAST_TERM),
      { outcome: APPROVED, release: 'unknown' },
      `nothing unchanged ${HOUR_S} (approved)`,
    ],
    [
      'a refused release is an alarm, once a day',
      held(PAST_TERM),
      refused,
      `nothing unchanged ${day(1)} (unknown!)`,
    ],
    [
      'silence releases nothing, even after its term',
      held(PAST_TERM),
      UNKNOWN,
      `nothing unchanged ${HOUR_S} (unknown)`,
    ],
    [
      'without a look-up, its term decides',
      held(PAST_TERM),
      NOT_CALLED,
      `write lapsed ${HOUR_S} (lapsed)`,
      NO_LOOK_UPS,
    ],
    [
      'for twelve days after a failed capture, it is held beyond its term',
      failedLate(5),
      NOT_CALLED,
      `nothing unchanged ${day(7)} (-)`,
      NO_LOOK_UPS,
    ],
    [
      'twelve days after a failed capture, its term decides',
      failedLate(12),
      NOT_CALLED,
      `write lapsed ${HOUR_S} (lapsed)`,
      NO_LOOK_UPS,
    ],
    ['the provider may end it early', held(), EXPIRED, `write lapsed ${HOUR_S} (expired)`],
    [
      'the provider’s denial ends it, with an alarm',
      held(),
      DECLINED,
      `write lapsed ${HOUR_S} (contradiction)`,
    ],
    [
      'a capture made elsewhere is recorded',
      held({ ageMs: DAY_MS }),
      captures,
      `external CAPTURE 60 60/${day(6)}/${day(6)} (approved)`,
    ],
    [
      'after its term, a capture is recorded before a release',
      held(PAST_TERM),
      captures,
      `external CAPTURE 60 60/${HOUR_S}/${day(1)} (approved)`,
    ],
    ['an operation in progress delays it', operating, NOT_CALLED, `nothing unchanged ${HOUR_S} (-)`],
    ['an operation in progress keeps the news', operating, NOT_CALLED, `nothing waiting ${HOUR_S} (-)`, NEWS],
    ['once it is over, nothing more is expected', over, NOT_CALLED, 'nothing unchanged never (-)'],
    ['once it is over, news is answered', over, APPROVED, 'nothing unchanged never (approved)', NEWS],
    [
      'after a capture found in totals, it is looked up even once it is over',
      takenElsewhere,
      UNKNOWN,
      `nothing unchanged ${HOUR_S} (unknown)`,
    ],
  ]);

  it('no provider is called about an authorization that is over, or while an operation is open', () => {
    const calls = [over, operating].map((own) => [mustLookUp(own, TERMS), mustLookUp(own, NEWS)]);
    expect(calls).toEqual([
      [false, true],
      [false, false],
    ]);
    expect([takenElsewhere, held()].map((own) => mustLookUp(own, TERMS))).toEqual([true, true]);
  });
});
