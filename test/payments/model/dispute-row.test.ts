import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import type { CaseStage, CaseStatus, Dispute } from '#src/connectors/port/dispute-report.ts';
import type { PaymentState } from '#src/payments/model/state.ts';
import { runs } from '#test/support/fixed-seed.ts';
import { AMOUNT, approved, begun, learned } from './kept-payment.ts';

const at = (day: number) => new Date(day * 86_400_000);

/** A report of a case, as a provider with stages, movements and times makes it. */
function reportOf(stage: CaseStage, status: CaseStatus, day: number, moves?: number): Dispute {
  const ended = status === 'WON' || status === 'CLOSED' ? 'won' : 'lost';
  const isOpen = status === 'NEEDS_RESPONSE' || status === 'UNDER_REVIEW';
  return {
    ...{ stage: isOpen ? 'opened' : ended, reference: 'dp_1', moves },
    case: { stage, status, at: at(day) },
  };
}

/** A report that does not know the stage of the case that it is about. */
function additionOf(status: CaseStatus | undefined, day: number): Dispute {
  const stage = status === 'EXPIRED' ? 'lost' : 'opened';
  return { stage, reference: 'dp_1', isAddition: true, case: { status, at: at(day) } };
}

/** Applies reports in their order, and returns what is stored then, and the events. */
function endOf(reports: readonly Dispute[], start: PaymentState = approved(true)) {
  let state = start;
  const events: string[] = [];
  for (const [nth, dispute] of reports.entries()) {
    const report = { kind: 'dispute', dispute, newId: `dispute ${nth}`, onlyOpen: false } as const;
    const { state: next, change } = learned(state, report);
    if (typeof change !== 'string' && change.dispute) events.push(change.dispute.event);
    state = next;
  }
  const shown = (state.disputes ?? []).map(({ stage, status }) => `${stage} ${status}`);
  const disputed = state.transactions.filter(({ type }) => type === 'CHARGEBACK');
  const status = Payment_Status[state.record.status];
  return { state, events, shown, status, disputed: disputed.map((one) => one.status) };
}

describe('a dispute', () => {
  it('an inquiry has no transaction and leaves the payment as it is, so that a refund can answer it', () => {
    const { state, events, shown, status, disputed } = endOf([reportOf('INQUIRY', 'NEEDS_RESPONSE', 1)]);
    expect([shown, status, disputed]).toEqual([['INQUIRY NEEDS_RESPONSE'], 'SUCCEEDED', []]);
    expect(events).toEqual(['dispute.opened']);
    expect(begun(state, 'REFUND', AMOUNT, 'refund').payment.openOperation).toBe('refund');
  });

  it('an inquiry that becomes a chargeback is the same dispute, whose transaction has its id', () => {
    const { state, events, shown, status } = endOf([
      reportOf('INQUIRY', 'NEEDS_RESPONSE', 1),
      reportOf('INQUIRY', 'UNDER_REVIEW', 2),
      reportOf('CHARGEBACK', 'NEEDS_RESPONSE', 3, 1),
      reportOf('CHARGEBACK', 'LOST', 4, 1),
    ]);
    expect([shown, status]).toEqual([['CHARGEBACK LOST'], 'CHARGEBACK']);
    expect(events).toEqual(['dispute.opened', 'dispute.updated', 'dispute.updated', 'dispute.closed']);
    expect(state.transactions.at(-1)?.id).toBe(state.disputes?.[0]?.id);
  });

  it.each<[string, Dispute[], string, string]>([
    [
      'stays lost',
      [reportOf('CHARGEBACK', 'LOST', 2), reportOf('CHARGEBACK', 'WON', 3)],
      'CHARGEBACK LOST',
      'CHARGEBACK',
    ],
    [
      'is won if the provider gives the money of a lost one back',
      [reportOf('CHARGEBACK', 'LOST', 2, 1), reportOf('CHARGEBACK', 'WON', 3, 2)],
      'CHARGEBACK WON',
      'SUCCEEDED',
    ],
    [
      'is lost again after it was won',
      [reportOf('CHARGEBACK', 'WON', 2, 2), reportOf('CHARGEBACK', 'LOST', 3, 3)],
      'CHARGEBACK LOST',
      'CHARGEBACK',
    ],
    [
      'is open again in a later stage',
      [reportOf('CHARGEBACK', 'WON', 2, 2), reportOf('PRE_ARBITRATION', 'NEEDS_RESPONSE', 3)],
      'PRE_ARBITRATION NEEDS_RESPONSE',
      'IN_DISPUTE',
    ],
    [
      'needs another response after a review',
      [reportOf('CHARGEBACK', 'UNDER_REVIEW', 2), reportOf('CHARGEBACK', 'NEEDS_RESPONSE', 3)],
      'CHARGEBACK NEEDS_RESPONSE',
      'IN_DISPUTE',
    ],
    [
      'needs no response that an earlier report asked for',
      [reportOf('CHARGEBACK', 'UNDER_REVIEW', 3), reportOf('CHARGEBACK', 'NEEDS_RESPONSE', 2)],
      'CHARGEBACK UNDER_REVIEW',
      'IN_DISPUTE',
    ],
  ])('%s', (_name, reports, shown, status) => {
    expect(endOf(reports)).toMatchObject({ shown: [shown], status });
  });

  it('a report that comes again, or that says nothing new, has no event', () => {
    const report = reportOf('CHARGEBACK', 'NEEDS_RESPONSE', 1, 1);
    expect(endOf([report, report]).events).toEqual(['dispute.opened']);
  });

  it.each<[CaseStage, CaseStatus | undefined, string, string]>([
    ['INQUIRY', 'UNDER_REVIEW', 'INQUIRY UNDER_REVIEW', 'SUCCEEDED'],
    ['INQUIRY', 'EXPIRED', 'INQUIRY EXPIRED', 'SUCCEEDED'],
    ['INQUIRY', undefined, 'INQUIRY NEEDS_RESPONSE', 'SUCCEEDED'],
    ['CHARGEBACK', 'UNDER_REVIEW', 'CHARGEBACK UNDER_REVIEW', 'IN_DISPUTE'],
    ['CHARGEBACK', 'EXPIRED', 'CHARGEBACK EXPIRED', 'CHARGEBACK'],
    ['PRE_ARBITRATION', undefined, 'PRE_ARBITRATION NEEDS_RESPONSE', 'IN_DISPUTE'],
  ])('at the stage %s, an addition with the status %s makes it %s', (stage, status, shown, ofPayment) => {
    const opened = reportOf(stage, 'NEEDS_RESPONSE', 1);
    const later = additionOf(status, 2);
    expect(endOf([opened, later, later])).toMatchObject({ shown: [shown], status: ofPayment });
    // It waits for the report that opens the dispute.
    const { state } = endOf([later]);
    expect(state).toEqual(approved(true));
    const report = { kind: 'dispute', dispute: later, newId: 'dispute 1', onlyOpen: false } as const;
    expect(learned(state, report).change).toBe('waiting');
  });

  it('an addition of an earlier day was about an earlier stage', () => {
    const reports = [
      reportOf('INQUIRY', 'NEEDS_RESPONSE', 1),
      reportOf('CHARGEBACK', 'NEEDS_RESPONSE', 3, 1),
    ];
    for (const late of [additionOf('EXPIRED', 2), additionOf('UNDER_REVIEW', 2)]) {
      expect(endOf([...reports, late])).toMatchObject({
        ...{ shown: ['CHARGEBACK NEEDS_RESPONSE'], status: 'IN_DISPUTE' },
      });
    }
    expect(endOf([...reports, additionOf('EXPIRED', 4)])).toMatchObject({ shown: ['CHARGEBACK EXPIRED'] });
  });

  it('an addition changes no dispute that has ended', () => {
    const won = reportOf('CHARGEBACK', 'WON', 1, 2);
    for (const status of ['UNDER_REVIEW', 'EXPIRED', undefined] as const) {
      expect(endOf([won, additionOf(status, 2)])).toMatchObject({
        ...{ shown: ['CHARGEBACK WON'], status: 'SUCCEEDED', events: ['dispute.closed'] },
      });
    }
  });

  it('a second chargeback that follows an arbitration is lost at its stage', () => {
    const { shown, status } = endOf([
      reportOf('CHARGEBACK', 'WON', 1, 2),
      reportOf('PRE_ARBITRATION', 'UNDER_REVIEW', 2),
      { stage: 'lost', reference: 'dp_1', moves: 3, case: { status: 'LOST' } },
    ]);
    expect([shown, status]).toEqual([['PRE_ARBITRATION LOST'], 'CHARGEBACK']);
  });

  it('its details change without an event of the payment', () => {
    const report = reportOf('CHARGEBACK', 'NEEDS_RESPONSE', 1, 1);
    const dated = { ...report, case: { ...report.case, at: at(2), respondBy: at(9) } };
    const { state, events } = endOf([report, dated]);
    expect(events).toEqual(['dispute.opened', 'dispute.updated']);
    expect(state.disputes?.[0]).toMatchObject({ respondBy: at(9), sequence: 2 });
  });

  it('the reports of a dispute end alike in any order, however often each comes', () => {
    const lives: Dispute[][] = [
      [
        reportOf('INQUIRY', 'NEEDS_RESPONSE', 1),
        reportOf('CHARGEBACK', 'NEEDS_RESPONSE', 2, 1),
        reportOf('CHARGEBACK', 'UNDER_REVIEW', 3, 1),
        reportOf('CHARGEBACK', 'WON', 4, 2),
        reportOf('CHARGEBACK', 'LOST', 5, 3),
      ],
      [
        reportOf('INQUIRY', 'NEEDS_RESPONSE', 1),
        reportOf('INQUIRY', 'CLOSED', 2),
        reportOf('CHARGEBACK', 'NEEDS_RESPONSE', 3, 1),
        reportOf('CHARGEBACK', 'LOST', 4, 1),
        reportOf('CHARGEBACK', 'WON', 5, 2),
      ],
      [
        reportOf('CHARGEBACK', 'NEEDS_RESPONSE', 1, 1),
        reportOf('CHARGEBACK', 'WON', 2, 2),
        reportOf('PRE_ARBITRATION', 'NEEDS_RESPONSE', 3, 2),
        reportOf('PRE_ARBITRATION', 'UNDER_REVIEW', 4, 2),
      ],
    ];
    const arb = fc.constantFrom(...lives).chain((life) =>
      fc.record({
        life: fc.constant(life),
        order: fc
          .array(fc.constantFrom(...life), { maxLength: 4 })
          .chain((more) => fc.shuffledSubarray([...life, ...more], { minLength: life.length + more.length })),
      }),
    );
    fc.assert(
      fc.property(arb, ({ life, order }) => {
        const { shown, status, disputed } = endOf(order);
        const expected = endOf(life);
        expect({ shown, status, disputed }).toEqual({
          ...{ shown: expected.shown, status: expected.status, disputed: expected.disputed },
        });
      }),
      { numRuns: runs(500) },
    );
  });
});
