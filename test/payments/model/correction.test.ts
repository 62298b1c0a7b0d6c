import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { OperationType } from '#src/payments/model/books.ts';
import type { PaymentState } from '#src/payments/model/state.ts';
import { APPROVED, approved, BASE_ID, begun, claimed, learned } from './kept-payment.ts';

const providerData = create(ProviderDataSchema);
const FAILED: Outcome = { kind: 'declined', providerData, iso8583Code: '05', advice: 'NONE', corrects: [''] };

const of = (transactionId: string, outcome: Outcome, day?: number) =>
  ({ kind: 'outcome', transactionId, outcome, pauseS: 5, reportedAt: onDay(day) }) as const;

function onDay(day: number | undefined): Date | undefined {
  return day === undefined ? undefined : new Date(day * 86_400_000);
}

/** The payment after an operation succeeded. */
function operated(state: PaymentState, type: OperationType, minorUnits: bigint, id: string): PaymentState {
  return learned(begun(state, type, minorUnits, id), of(id, APPROVED)).state;
}

const CAPTURED = operated(approved(false), 'CAPTURE', 60n, 'first');

it.each<[string, PaymentState, string, string]>([
  ['fails a capture', CAPTURED, 'first', 'applied'],
  ['fails a refund', operated(approved(true), 'REFUND', 60n, 'first'), 'first', 'applied'],
  ['never fails a purchase', approved(true), BASE_ID, 'contradiction'],
  ['never fails a cancel', operated(approved(false), 'CANCEL', 1n, 'first'), 'first', 'contradiction'],
  ['waits for another operation', begun(CAPTURED, 'CAPTURE', 10n, 'second'), 'first', 'waiting'],
  [
    'does not fail a capture whose money was refunded',
    operated(CAPTURED, 'REFUND', 1n, 'second'),
    'first',
    'conflict',
  ],
  [
    'fails a capture if the other captures cover the refunds',
    operated(operated(CAPTURED, 'CAPTURE', 40n, 'second'), 'REFUND', 40n, 'r'),
    'first',
    'applied',
  ],
])('a correction of a success %s', (_what, state, transactionId, result) => {
  const { change: made } = learned(state, of(transactionId, FAILED));
  expect(typeof made === 'string' ? made : 'applied').toBe(result);
});

/** An attempt that was declined, along with another attempt in this status. */
function declinedBeside(status?: string): PaymentState {
  const outcome: Outcome = { kind: 'declined', providerData, iso8583Code: '05', advice: 'NONE' };
  const { state } = learned(claimed(true), of(BASE_ID, outcome));
  const [base] = state.transactions;
  if (!base || status === undefined) return state;
  return { ...state, transactions: [base, { ...base, id: 'other', status }] };
}

const CORRECTED: Outcome = { ...APPROVED, providerPaymentId: 'base-id', corrects: [''] };
it.each<[string, PaymentState, Outcome, string]>([
  ['of the declined charge is accepted', declinedBeside(), CORRECTED, 'applied'],
  ['beside another declined attempt is accepted', declinedBeside('DECLINED'), CORRECTED, 'applied'],
  [
    'that is not a correction is a contradiction',
    declinedBeside(),
    { ...APPROVED, providerPaymentId: 'base-id' },
    'contradiction',
  ],
  [
    'of another charge is a contradiction',
    declinedBeside(),
    { ...CORRECTED, providerPaymentId: 'other' },
    'contradiction',
  ],
  ['without an id is a contradiction', declinedBeside(), { ...APPROVED, corrects: [''] }, 'contradiction'],
  [
    'after another attempt has charged is a contradiction',
    declinedBeside('SUCCEEDED'),
    CORRECTED,
    'contradiction',
  ],
  ['waits while another attempt is open', declinedBeside('PENDING'), CORRECTED, 'waiting'],
])('an approval after a decline %s', (_what, state, outcome, result) => {
  const { change: made } = learned(state, of(BASE_ID, outcome));
  expect(typeof made === 'string' ? made : 'applied').toBe(result);
});

it('an approval does not correct an attempt that was not sent', () => {
  const notSent: Outcome = { kind: 'not_sent', because: 'unreachable', detail: '' };
  const { state } = learned(claimed(true), of(BASE_ID, notSent));
  expect(learned(state, of(BASE_ID, CORRECTED)).change).toBe('contradiction');
});

it('an approval without the provider’s id does not correct a decline without one', () => {
  const state = declinedBeside();
  const transactions = state.transactions.map((one) => ({ ...one, providerPaymentId: undefined }));
  const { change: made } = learned({ ...state, transactions }, of(BASE_ID, { ...APPROVED, corrects: [''] }));
  expect(made).toBe('contradiction');
});

it('an approval after a decline is a contradiction once its payment has been released', () => {
  const state = declinedBeside();
  const released = { ...state, payment: { ...state.payment, isReleased: true } };
  expect(learned(released, of(BASE_ID, CORRECTED)).change).toBe('contradiction');
});

const DONE: Outcome = { ...APPROVED, corrects: [''] };

/** Applies dated reports about an operation, and returns its status and the payment's captured and refunded amounts. */
function after(
  state: PaymentState,
  id: string,
  reports: readonly (readonly [Outcome, number | undefined])[],
) {
  const changes: unknown[] = [];
  for (const [outcome, day] of reports) {
    const next = learned(state, of(id, outcome, day));
    state = next.state;
    changes.push(typeof next.change === 'string' ? next.change : next.change.event);
  }
  const status = state.transactions.find((one) => one.id === id)?.status;
  const { capturedMinorUnits, refundedMinorUnits } = state.payment;
  return { status, books: [capturedMinorUnits, refundedMinorUnits], changes };
}

it('a capture that failed and was made again is in the books, with an event for each change', () => {
  const reports = [
    [FAILED, 2],
    [DONE, 3],
    [FAILED, 4],
    [DONE, 5],
  ] as const;
  expect(after(CAPTURED, 'first', reports)).toEqual({
    ...{ status: 'SUCCEEDED', books: [60n, 0n] },
    changes: Array(4).fill('payment.capture'),
  });
});

it('the present state at a provider with look-up counts without a time', () => {
  const refunded = operated(approved(true), 'REFUND', 60n, 'first');
  const reports = [FAILED, DONE, FAILED].map((outcome) => [outcome, undefined] as const);
  expect(after(refunded, 'first', reports)).toMatchObject({ status: 'DECLINED', books: [0n, 0n] });
});

it('a report that is older than the last one changes nothing, and of two in the same second the failure counts', () => {
  const open = begun(approved(false), 'CAPTURE', 60n, 'first');
  const failedFirst = after(open, 'first', [
    [FAILED, 2],
    [DONE, 1],
    [DONE, 2],
  ]);
  expect(failedFirst).toEqual({
    ...{ status: 'DECLINED', books: [0n, 0n] },
    changes: ['payment.capture', 'unchanged', 'unchanged'],
  });
  const sameSecond = after(open, 'first', [
    [DONE, 2],
    [FAILED, 2],
  ]);
  expect(sameSecond.status).toBe('DECLINED');
});

it('a later report of the same state makes a report in between outdated, without an event', () => {
  const open = begun(approved(false), 'CAPTURE', 60n, 'first');
  const reports = [
    [DONE, 1],
    [DONE, 3],
    [FAILED, 2],
    [DONE, 3],
  ] as const;
  expect(after(open, 'first', reports)).toEqual({
    ...{ status: 'SUCCEEDED', books: [60n, 0n] },
    changes: ['payment.capture', undefined, 'unchanged', 'unchanged'],
  });
});

it('a report without a time is a contradiction after a report with one', () => {
  const reports = [
    [FAILED, 2],
    [DONE, undefined],
  ] as const;
  expect(after(CAPTURED, 'first', reports).changes).toEqual(['payment.capture', 'contradiction']);
});

it('an opposite that the table of corrections does not list is a contradiction', () => {
  const reports = [
    [{ ...FAILED, corrects: ['another'] }, 2],
    [{ ...FAILED, corrects: [] }, 3],
  ] as const;
  expect(after(CAPTURED, 'first', reports).changes).toEqual(['contradiction', 'contradiction']);
});

it('a capture that is made again is a conflict after the merchant has captured the amount again', () => {
  const failed = learned(CAPTURED, of('first', FAILED, 2)).state;
  const again = operated(failed, 'CAPTURE', 100n, 'second');
  expect(after(again, 'first', [[DONE, 3]])).toEqual({
    ...{ status: 'DECLINED', books: [100n, 0n] },
    changes: ['conflict'],
  });
});

it('a refund that is made again is a conflict after the merchant has refunded the amount again', () => {
  const refunded = operated(approved(true), 'REFUND', 60n, 'first');
  const again = operated(learned(refunded, of('first', FAILED, 2)).state, 'REFUND', 60n, 'second');
  expect(after(again, 'first', [[DONE, 3]]).changes).toEqual(['conflict']);
});

it('a capture that is made again after its authorization has lapsed is a conflict', () => {
  const failed = learned(CAPTURED, of('first', FAILED, 2)).state;
  const { state } = learned(failed, { kind: 'lapsed', transactionId: BASE_ID });
  expect(after(state, 'first', [[DONE, 3]]).changes).toEqual(['conflict']);
});

it.each<[string, PaymentState, string]>([
  ['without operations is DECLINED', approved(true), 'payment.purchase'],
  ['with a refund is a conflict', operated(approved(true), 'REFUND', 60n, 'first'), 'conflict'],
  ['with an open refund waits', begun(approved(true), 'REFUND', 60n, 'first'), 'waiting'],
])('a purchase that its provider denies after its approval, %s', (_what, state, change) => {
  const denied: Outcome = { ...FAILED, providerPaymentId: 'base-id' } as Outcome;
  expect(after(state, BASE_ID, [[denied, undefined]]).changes).toEqual([change]);
});
