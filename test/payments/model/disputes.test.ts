import { expect, it } from 'vitest';
import {
  Payment_Status,
  Payment_SubStatus_Value,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import type { Dispute, DisputeStage } from '#src/connectors/port/dispute-report.ts';
import type { Change } from '#src/payments/model/change.ts';
import type { DisputeReport } from '#src/payments/model/disputes.ts';
import type { PaymentState } from '#src/payments/model/state.ts';
import { AMOUNT, APPROVED, approved, BASE_ID, begun, claimed, learned, timeOf } from './kept-payment.ts';

/** The payment after a report on a dispute, and the result of the report. */
function told(state: PaymentState, dispute: Dispute, over: Partial<DisputeReport> = {}) {
  return learned(state, { kind: 'dispute', dispute, newId: 'new', onlyOpen: false, ...over });
}

function change(state: PaymentState, dispute: Dispute, over: Partial<DisputeReport> = {}): Change {
  const { change: made } = told(state, dispute, over);
  if (typeof made === 'string') throw new Error(made);
  return made;
}

/** The payment after its disputes went through these stages; a dispute's id is its number. */
function disputed(...disputes: readonly Dispute[]): PaymentState {
  let state = approved(true);
  for (const [nth, dispute] of disputes.entries()) state = told(state, dispute, { newId: String(nth) }).state;
  return state;
}

const OPENED: Dispute = { stage: 'opened', reference: 'dp_1', money: undefined };
const usd = (minorUnits: bigint) => ({ minorUnits, currency: 'USD' });

it('an opened dispute becomes a CHARGEBACK of the payment, for the disputed money', () => {
  const state = approved(true);
  const made = change(state, { ...OPENED, money: usd(40n) });
  expect(made).toMatchObject({
    event: 'payment.chargeback',
    books: { captured: 0n, refunded: 0n, isReleased: false },
    record: { status: Payment_Status.IN_DISPUTE, subStatus: Payment_SubStatus_Value.RECEIVED },
    added: {
      ...{ id: 'new', type: 'CHARGEBACK', status: Transaction_Status.PENDING, providerPaymentId: 'dp_1' },
      ...{ minorUnits: 40n, parentId: BASE_ID, isFinal: false, connectionId: 'one', currency: 'USD' },
      ...{ connectionIdentity: 'one', capture: false, checkInS: undefined, vaultedToken: undefined },
    },
  });
  const shown = {
    ...{
      id: 'new',
      type: Transaction_Type.CHARGEBACK,
      status: Transaction_Status.PENDING,
      reason: undefined,
    },
    ...{ parentTransactionId: BASE_ID, createdAt: timeOf(state), updatedAt: timeOf(state) },
    ...{ amount: { value: '0.40' }, responseCode: 'DISPUTE_RECEIVED', responseMessage: 'Dispute received' },
  };
  expect(made.record.transactionsHistory).toMatchObject([{ id: BASE_ID }, shown]);
  expect(made.record.transactions).toMatchObject(shown);
});

it.each([
  [40n, 40n],
  [AMOUNT, AMOUNT],
  [AMOUNT + 1n, AMOUNT],
  [0n, AMOUNT],
  [-1n, AMOUNT],
])('a dispute whose reported amount is %s is recorded with the amount %s', (reported, recorded) => {
  const { added } = change(approved(true), { ...OPENED, money: usd(reported) });
  expect(added?.minorUnits).toBe(recorded);
});

it('a dispute reported in another currency is recorded with the whole amount of the payment', () => {
  const { added } = change(approved(true), { ...OPENED, money: { minorUnits: 40n, currency: 'EUR' } });
  expect(added).toMatchObject({ minorUnits: AMOUNT, currency: 'USD' });
});

it('a later stage updates the recorded dispute, and keeps its amount unless another amount is reported', () => {
  const state = disputed({ ...OPENED, money: usd(40n) });
  const opened = state.record.transactionsHistory[1]?.createdAt;
  const lost = change(state, { ...OPENED, stage: 'lost' });
  expect(lost.added).toMatchObject({ id: '0', minorUnits: 40n, status: Transaction_Status.SUCCEEDED });
  expect(lost.record.transactionsHistory).toMatchObject([
    { id: BASE_ID },
    {
      id: '0',
      amount: { value: '0.40' },
      createdAt: opened,
      updatedAt: timeOf(state),
      responseCode: 'DISPUTE_LOST',
    },
  ]);
  expect(lost.record.transactionsHistory).toHaveLength(2);
  expect(change(state, { ...OPENED, stage: 'lost', money: usd(30n) }).added?.minorUnits).toBe(30n);
});

it('a dispute of an unfinished payment, or during an operation, waits', () => {
  expect(told(claimed(true), OPENED).change).toBe('waiting');
  expect(told(begun(approved(true), 'REFUND', 10n, 'first'), OPENED).change).toBe('waiting');
});

it('a report that applies only to open disputes changes nothing unless its dispute is recorded as open', () => {
  const only = { onlyOpen: true };
  const won: Dispute = { ...OPENED, stage: 'won' };
  expect(told(approved(true), won, only).change).toBe('unchanged');
  expect(told(disputed(OPENED, won), { ...OPENED, stage: 'lost' }, only).change).toBe('unchanged');
  expect(change(disputed(OPENED), won, only).added).toMatchObject({ status: Transaction_Status.DECLINED });
});

it.each<[DisputeStage, DisputeStage, boolean]>([
  ['opened', 'opened', false],
  ['opened', 'won', true],
  ['opened', 'lost', true],
  ['won', 'opened', false],
  ['won', 'won', false],
  ['won', 'lost', true],
  ['lost', 'opened', false],
  ['lost', 'won', false],
  ['lost', 'lost', false],
])('a recorded dispute that was %s is updated by the stage %s: %s', (before, stage, isApplied) => {
  const { change: made } = told(disputed({ ...OPENED, stage: before }), { ...OPENED, stage });
  expect(typeof made === 'object').toBe(isApplied);
});

const named = (reference: string | undefined, stage: DisputeStage = 'opened'): Dispute => ({
  ...{ stage, reference, money: undefined },
});
it.each<[string, readonly Dispute[], Dispute, string | undefined]>([
  ['with an id is about the dispute with this id', [named('a'), named('b')], named('a', 'won'), '0'],
  ['with another id opens another dispute', [named('a')], named('b'), 'new'],
  ['with another id that is lost adds another dispute', [named('a')], named('b', 'lost'), 'new'],
  [
    'without an id is about the last dispute',
    [named('a', 'won'), named('b', 'won')],
    named(undefined, 'lost'),
    '1',
  ],
  ['without an id is about the open dispute', [named('a'), named('b', 'won')], named(undefined, 'won'), '0'],
  ['without an id repeats the open dispute', [named('a')], named(undefined), undefined],
  ['without an id repeats an open dispute without an id', [named(undefined)], named(undefined), undefined],
  ['without an id does not open a dispute again', [named('a', 'won')], named(undefined), undefined],
  [
    'without an id is about the open dispute, which has an id',
    [named(undefined, 'won'), named('a')],
    named(undefined, 'won'),
    '1',
  ],
  ['with an id gives that id to an open dispute without an id', [named(undefined)], named('a'), '0'],
  [
    'with an id opens another dispute after a dispute without an id has ended',
    [named(undefined, 'won')],
    named('a'),
    'new',
  ],
  ['with an id marks a dispute without an id as lost', [named(undefined, 'won')], named('a', 'lost'), '0'],
  [
    'with an id is about the dispute with this id rather than an open one',
    [named('a', 'won'), named(undefined)],
    named('a', 'lost'),
    '0',
  ],
])('a dispute report %s', (_what, before, dispute, id) => {
  const { change: made } = told(disputed(...before), dispute);
  expect(typeof made === 'string' ? undefined : made.added?.id).toBe(id);
});

it('a lost dispute takes precedence over an open one in the status, and the books decide once all disputes are won', () => {
  const shownAfter = (...disputes: readonly Dispute[]) => Payment_Status[disputed(...disputes).record.status];
  expect(shownAfter(named('a', 'lost'), named('b'))).toBe('CHARGEBACK');
  expect(shownAfter(named('a', 'won'), named('b'))).toBe('IN_DISPUTE');
  expect(shownAfter(named('a', 'won'), named('b', 'won'))).toBe('SUCCEEDED');
});

it('a dispute of an authorization is recorded along with its captures', () => {
  const captured = begun(approved(false), 'CAPTURE', 60n, 'first');
  const report = { kind: 'outcome', transactionId: 'first', outcome: APPROVED, pauseS: 5 } as const;
  const { state } = learned(captured, report);
  const { record, books, added } = change(state, OPENED);
  expect([record.status, books.captured, added?.parentId]).toEqual([Payment_Status.IN_DISPUTE, 60n, BASE_ID]);
  expect(record.transactionsHistory.map(({ id }) => id)).toEqual([BASE_ID, 'first', 'new']);
});

it.each(['DECLINED', 'ERROR', 'EXPIRED'])(
  'a dispute of a payment whose only attempt is %s is a conflict, since money was taken after all',
  (status) => {
    const state = claimed(true);
    const transactions = state.transactions.map((one) => ({ ...one, status }));
    for (const stage of ['opened', 'won', 'lost'] as const) {
      expect(told({ ...state, transactions }, { ...OPENED, stage }).change).toBe('conflict');
    }
    expect(told({ ...state, transactions }, OPENED, { onlyOpen: true }).change).toBe('unchanged');
  },
);

it('a dispute waits while another attempt of the payment is open', () => {
  const state = claimed(true);
  const [base] = state.transactions;
  if (!base) throw new Error('there is no attempt');
  const transactions = [
    { ...base, status: 'DECLINED' },
    { ...base, id: 'next' },
  ];
  expect(told({ ...state, transactions }, OPENED).change).toBe('waiting');
});
