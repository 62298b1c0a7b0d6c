import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import {
  Payment_Status,
  Payment_SubStatus_Value,
  ProviderDataSchema,
  Transaction_Status,
  Transaction_Type,
  TransactionSchema,
} from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { apply } from '#src/payments/model/apply.ts';
import type { OperationType } from '#src/payments/model/books.ts';
import type { Change } from '#src/payments/model/change.ts';
import { isBase, withCurrentStates, withOperation } from '#src/payments/model/operation-record.ts';
import { booksOf, type PaymentState, type TransactionRow } from '#src/payments/model/state.ts';
import { AMOUNT, APPROVED, approved, BASE_ID, begun, claimed, learned, timeOf } from './kept-payment.ts';

const providerData = create(ProviderDataSchema);
const FAILED: Outcome = { kind: 'declined', providerData, iso8583Code: '05', advice: 'NONE', corrects: [''] };

const of = (transactionId: string, outcome: Outcome) =>
  ({ kind: 'outcome', transactionId, outcome, pauseS: 5 }) as const;

/** An authorization or a purchase of 100 with a completed operation of 60. */
function operated(type: 'CAPTURE' | 'REFUND'): PaymentState {
  return learned(begun(approved(type === 'REFUND'), type, 60n, 'first'), of('first', APPROVED)).state;
}

function change(state: PaymentState, transactionId: string, outcome: Outcome): Change {
  const made = apply(state, of(transactionId, outcome), timeOf(state));
  if (typeof made === 'string') throw new Error(made);
  return made;
}

/**
 * The state with other columns in its operation, the uncaptured rest released, and one more such
 * operation.
 */
function released(
  state: PaymentState,
  over: Partial<TransactionRow>,
  more?: Partial<TransactionRow>,
): PaymentState {
  const [base, first] = state.transactions;
  if (!base || !first) throw new Error('there is no operation');
  const operation = { ...first, ...over };
  return {
    ...state,
    payment: { ...state.payment, isReleased: true },
    transactions: [base, operation, ...(more ? [{ ...operation, id: 'other', ...more }] : [])],
  };
}

const isReleasedAfter = (state: PaymentState) => change(state, 'first', FAILED).books.isReleased;

it('an authorization is held again after two captures failed, the second of which released its rest', () => {
  const final = { isFinal: true };
  expect(isReleasedAfter(released(operated('CAPTURE'), final))).toBe(false);
  expect(isReleasedAfter(released(operated('CAPTURE'), final, { status: 'DECLINED' }))).toBe(false);
});

it('an amount that a lapse or a cancel released stays released when a capture fails', () => {
  expect(isReleasedAfter(released(operated('CAPTURE'), {}))).toBe(true);
  expect(isReleasedAfter(released(operated('CAPTURE'), { isFinal: true }, { type: 'CANCEL' }))).toBe(true);
});

it('an authorization is checked twelve days later if one of its captures failed, but not if a refund failed', () => {
  const parentOf = (type: 'CAPTURE' | 'REFUND') => change(operated(type), 'first', FAILED).other;
  expect([parentOf('CAPTURE'), parentOf('REFUND')]).toEqual([
    { id: BASE_ID, checkInS: 12 * 86_400 },
    undefined,
  ]);
});

it('an operation whose payer is redirected stays open, and is checked', () => {
  const open = begun(approved(true), 'REFUND', 60n, 'first');
  const redirect: Outcome = { kind: 'awaits_payer', providerData, show: { page: 'https://bank.example' } };
  expect(change(open, 'first', redirect).transaction).toMatchObject({
    ...{ isFenced: true, checkInS: 5, status: Transaction_Status.PENDING },
  });
});

it('a lapsed authorization is final: it awaits no payer and no check', () => {
  const state = approved(false);
  expect(apply(state, { kind: 'lapsed', transactionId: BASE_ID }, timeOf(state))).toMatchObject({
    transaction: { id: BASE_ID, awaitsPayer: false, isFenced: false, checkInS: undefined },
  });
});

it('a report that a succeeded transaction was declined or expired is a contradiction', () => {
  const state = operated('CAPTURE');
  for (const kind of ['declined', 'expired'] as const) {
    const outcome: Outcome = { kind, providerData, iso8583Code: '05', advice: 'NONE' };
    expect([kind, apply(state, of('first', outcome), timeOf(state))]).toEqual([kind, 'contradiction']);
  }
});

const succeeded = (state: PaymentState, id: string) => learned(state, of(id, APPROVED)).state;

it.each<[OperationType, string]>([
  ['CAPTURE', 'CAPTURE_FAILED'],
  ['REFUND', 'REFUND_FAILED'],
  ['CANCEL', 'DO_NOT_HONOR'],
])('the failure of a %s may be reported before its success, and leaves the books alone', (type, code) => {
  const state = begun(approved(type === 'REFUND'), type, 60n, 'first');
  const report = { ...of('first', FAILED), reportedAt: new Date(0) };
  const made = apply(state, report, timeOf(state));
  if (typeof made === 'string') throw new Error(made);
  const { record, books, transaction } = made;
  expect([transaction?.status, record.transactions?.responseCode]).toEqual([
    Transaction_Status.DECLINED,
    code,
  ]);
  expect(books).toMatchObject({ captured: 0n, refunded: 0n, isReleased: false });
});

it('an operation shows the provider’s last data, and only its own transaction changes', () => {
  const words = create(ProviderDataSchema, { id: 'theirs' });
  const begunOne = begun(approved(true), 'REFUND', 60n, 'first');
  const shownAfter = (outcome: Outcome) => change(begunOne, 'first', outcome).record;
  const { transactions, transactionsHistory } = shownAfter({ ...APPROVED, providerData: words });
  expect(transactions).toMatchObject({ id: 'first', providerData: words, updatedAt: timeOf(begunOne) });
  expect(transactionsHistory).toEqual([begunOne.record.transactionsHistory[0], transactions]);
  const kept = begunOne.record.transactions?.providerData;
  const notSent: Outcome = { kind: 'not_sent', because: 'unreachable', detail: '' };
  const unknown: Outcome = { kind: 'unknown', detail: '', providerData: undefined };
  expect([notSent, unknown].map((outcome) => shownAfter(outcome).transactions?.providerData)).toEqual([
    kept,
    kept,
  ]);
});

const shown = ({ status, subStatus }: PaymentState['record']) =>
  `${Payment_Status[status]}/${Payment_SubStatus_Value[subStatus]}`;
const PART = operated('CAPTURE');
it.each<[string, PaymentState, string]>([
  [
    'a refund of everything',
    begun(approved(true), 'REFUND', AMOUNT, 'r'),
    'REFUNDED/PENDING_PROVIDER_CONFIRMATION',
  ],
  ['a refund of a part', begun(approved(true), 'REFUND', 99n, 'r'), 'SUCCEEDED/APPROVED'],
  ['a refund of all captures', begun(PART, 'REFUND', 60n, 'r'), 'REFUNDED/PENDING_PROVIDER_CONFIRMATION'],
  ['a capture of everything', begun(approved(false), 'CAPTURE', AMOUNT, 'c'), 'PENDING/AUTHORIZED'],
  ['a cancel', begun(approved(false), 'CANCEL', 1n, 'c'), 'CANCELED/PENDING_PROVIDER_CONFIRMATION'],
  ['a cancel of the uncaptured rest', begun(PART, 'CANCEL', 1n, 'c'), 'SUCCEEDED/PARTIALLY_CAPTURED'],
])('a payment shows the expected state while %s is open', (_what, state, expected) => {
  expect(shown(state.record)).toBe(expected);
  const open = state.transactions.at(-1)?.id ?? '';
  expect(shown(change(state, open, { kind: 'pending', providerData }).record)).toBe(expected);
  const declined = change(state, open, {
    kind: 'declined',
    providerData,
    iso8583Code: '05',
    advice: 'NONE',
  }).record;
  expect(declined.subStatus).not.toBe(Payment_SubStatus_Value.PENDING_PROVIDER_CONFIRMATION);
});

it('an authorization is shown as authorized only if its own transaction is an AUTHORIZE', () => {
  const { record } = claimed(true);
  const books = { currency: 'USD', amount: AMOUNT, isAuthorization: true, captured: 0n, refunded: 0n };
  const shownAs = (type: Transaction_Type) => {
    const transactionsHistory = record.transactionsHistory.map((one) => ({
      ...{ ...one, type, status: Transaction_Status.SUCCEEDED },
    }));
    const own = { ...record, transactionsHistory };
    return shown(withCurrentStates(own, { ...books, isReleased: false }, timeOf(claimed(true))));
  };
  expect(shownAs(Transaction_Type.AUTHORIZE)).toBe('PENDING/AUTHORIZED');
  expect([Transaction_Type.PURCHASE, Transaction_Type.CAPTURE].map(shownAs)).toEqual([
    ...['SUCCEEDED/APPROVED', 'SUCCEEDED/APPROVED'],
  ]);
});

it('only a succeeded purchase, authorization or verification is a payment’s own transaction', () => {
  const { PURCHASE, AUTHORIZE, VERIFY, CAPTURE, REFUND } = Transaction_Type;
  const isOwn = (type: Transaction_Type, status = Transaction_Status.SUCCEEDED) =>
    isBase(create(TransactionSchema, { type, status }));
  expect([PURCHASE, AUTHORIZE, VERIFY].map((type) => isOwn(type))).toEqual([true, true, true]);
  expect([CAPTURE, REFUND].map((type) => isOwn(type))).toEqual([false, false]);
  expect(isOwn(PURCHASE, Transaction_Status.DECLINED)).toBe(false);
});

it('an operation has its own copy of the payment method, and no raw response before its own', () => {
  const { record, payment, transactions } = approved(true);
  const [base] = transactions;
  const [own] = record.transactionsHistory;
  if (!base || !own) throw new Error('there is no transaction');
  own.providerData = create(ProviderDataSchema, { id: 'theirs', rawResponse: { a: 1 } });
  const money = { minorUnits: 60n, currency: 'USD' };
  const planned = { type: 'REFUND', money, isWhole: false, isFinal: false } as const;
  const facts = {
    transactionId: 'r',
    parentId: BASE_ID,
    merchantReference: 'm',
    description: 'd',
    reason: 'q',
  };
  const at = timeOf(approved(true));
  const { transactions: made } = withOperation(
    { record, books: booksOf(payment, base), base: own },
    planned,
    facts,
    at,
  );
  expect(made).toMatchObject({
    ...{ id: 'r', type: Transaction_Type.REFUND, parentTransactionId: BASE_ID, merchantReference: 'm' },
    ...{ description: 'd', reason: 'q', amount: { value: '0.60' }, createdAt: at, updatedAt: at },
    ...{ providerData: { id: 'theirs', rawResponse: {} }, status: Transaction_Status.PENDING },
  });
  expect(made?.providerData?.rawResponse).toEqual({});
  expect(made?.paymentMethod).toEqual(own.paymentMethod);
  expect(made?.paymentMethod).not.toBe(own.paymentMethod);
});

it('a payment shows its captured and refunded amounts', () => {
  expect(succeeded(begun(PART, 'REFUND', 25n, 'r'), 'r').record.amount).toMatchObject({
    ...{ captured: { value: '0.60' }, refunded: { value: '0.25' } },
  });
});

const REFUSED: Outcome = { kind: 'declined', providerData, iso8583Code: '05', advice: 'NONE' };
const LAPSED = { kind: 'lapsed', transactionId: BASE_ID } as const;

it('a lapse expires an authorization, and its payment shows the last transaction', () => {
  const failed = learned(begun(approved(false), 'CAPTURE', 60n, 'first'), of('first', REFUSED));
  const { state } = failed;
  const made = apply(state, LAPSED, timeOf(state));
  expect(made).toMatchObject({
    ...{ event: 'payment.expired', books: { captured: 0n, amount: AMOUNT, isReleased: true } },
    transaction: { status: Transaction_Status.EXPIRED },
    record: {
      ...{ id: 'payment', status: Payment_Status.EXPIRED, subStatus: Payment_SubStatus_Value.EXPIRED },
      ...{ updatedAt: timeOf(state), transactions: { id: 'first' } },
      transactionsHistory: [
        {
          id: BASE_ID,
          status: Transaction_Status.EXPIRED,
          responseCode: 'EXPIRED',
          updatedAt: timeOf(state),
        },
        state.record.transactionsHistory[1],
      ],
    },
  });
});

it('a payment shows its expired authorization', () => {
  const state = approved(false);
  expect(apply(state, LAPSED, timeOf(state))).toMatchObject({
    record: { transactions: { id: BASE_ID, status: Transaction_Status.EXPIRED } },
  });
});

it('a lapse of the rest of a captured or released authorization only ends its schedule', () => {
  const { payment, ...rest } = approved(false);
  for (const state of [PART, { ...rest, payment: { ...payment, isReleased: true } }]) {
    expect(apply(state, LAPSED, timeOf(state))).toMatchObject({
      ...{ record: state.record, event: undefined, books: { amount: AMOUNT, isReleased: true } },
      transaction: { status: Transaction_Status.SUCCEEDED },
    });
  }
});

it.each([
  [Payment_SubStatus_Value.CREATED, Payment_SubStatus_Value.IN_PROCESS],
  [Payment_SubStatus_Value.WAITING_ADDITIONAL_STEP, Payment_SubStatus_Value.IN_PROCESS],
  [Payment_SubStatus_Value.IN_PROCESS, Payment_SubStatus_Value.IN_PROCESS],
  [
    Payment_SubStatus_Value.PENDING_PROVIDER_CONFIRMATION,
    Payment_SubStatus_Value.PENDING_PROVIDER_CONFIRMATION,
  ],
])('a pending outcome is shown as in process only after the payer was sent away: %i', (before, after) => {
  const state = claimed(true);
  const sent = { ...state, record: { ...state.record, subStatus: before } };
  expect(change(sent, BASE_ID, { kind: 'pending', providerData }).record.subStatus).toBe(after);
  expect(change(sent, BASE_ID, APPROVED).record.subStatus).toBe(Payment_SubStatus_Value.APPROVED);
});

it('a payer has to act only while the last outcome is a redirect', () => {
  const redirect: Outcome = { kind: 'awaits_payer', providerData, show: { page: 'https://acs.example' } };
  const { state } = learned(claimed(true), of(BASE_ID, redirect));
  expect(state.record.checkout?.sdkActionRequired).toBe(true);
  expect(apply(state, of(BASE_ID, redirect), timeOf(state))).toBe('unchanged');
  expect(change(state, BASE_ID, APPROVED).record.checkout?.sdkActionRequired).toBe(false);
  const { checkout: _, ...record } = state.record;
  expect(change({ ...state, record }, BASE_ID, APPROVED).record.checkout).toBeUndefined();
});

it('an outcome of an earlier attempt moves that attempt to the end of the history', () => {
  const state = claimed(true);
  const [own] = state.record.transactionsHistory;
  if (!own) throw new Error('there is no attempt');
  const record = { ...state.record, transactionsHistory: [own, { ...own, id: 'other' }] };
  const { transactionsHistory } = change({ ...state, record }, BASE_ID, APPROVED).record;
  expect(transactionsHistory.map(({ id }) => id)).toEqual(['other', BASE_ID]);
});

it('a record without the reported transaction is an error', () => {
  const state = { ...claimed(true), record: { ...claimed(true).record, transactionsHistory: [] } };
  expect(() => learned(state, of(BASE_ID, APPROVED))).toThrow('record payment has no transaction base');
});
