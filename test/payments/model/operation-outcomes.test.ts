import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/outcome.ts';
import { apply } from '#src/payments/model/apply.ts';
import type { Change } from '#src/payments/model/change.ts';
import type { PaymentState, TransactionRow } from '#src/payments/model/state.ts';
import { APPROVED, approved, BASE_ID, begun, learned, timeOf } from './kept-payment.ts';

const providerData = create(ProviderDataSchema);
const FAILED: Outcome = { kind: 'declined', providerData, iso8583Code: '05', corrects: true };

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

it('an authorization is held again when the capture that released its rest failed after an earlier capture failed', () => {
  const final = { isFinal: true };
  expect(isReleasedAfter(released(operated('CAPTURE'), final))).toBe(false);
  expect(isReleasedAfter(released(operated('CAPTURE'), final, { status: 'DECLINED' }))).toBe(false);
});

it('an amount that a lapse or a cancel released stays released when a capture fails', () => {
  expect(isReleasedAfter(released(operated('CAPTURE'), {}))).toBe(true);
  expect(isReleasedAfter(released(operated('CAPTURE'), { isFinal: true }, { type: 'CANCEL' }))).toBe(true);
});

it('only a failed capture has its authorization checked a day later', () => {
  const parentOf = (type: 'CAPTURE' | 'REFUND') => change(operated(type), 'first', FAILED).parent;
  expect([parentOf('CAPTURE'), parentOf('REFUND')]).toEqual([{ id: BASE_ID, checkInS: 86_400 }, undefined]);
});

it('an operation whose payer is redirected stays open, and is checked', () => {
  const open = begun(approved(true), 'REFUND', 60n, 'first');
  const redirect: Outcome = { kind: 'redirect', providerData, redirectUrl: 'https://bank.example' };
  expect(change(open, 'first', redirect).transaction).toMatchObject({ isOpen: true, checkInS: 5 });
});

it('a lapsed authorization is final: it awaits no payer and no check', () => {
  const state = approved(false);
  expect(apply(state, { kind: 'lapsed', transactionId: BASE_ID }, timeOf(state))).toMatchObject({
    transaction: { id: BASE_ID, awaitsPayer: false, isOpen: false, checkInS: undefined },
  });
});

it('a report that a succeeded transaction was declined or expired is a contradiction', () => {
  const state = operated('CAPTURE');
  for (const kind of ['declined', 'expired'] as const) {
    const outcome: Outcome = { kind, providerData, iso8583Code: '05' };
    expect([kind, apply(state, of('first', outcome), timeOf(state))]).toEqual([kind, 'contradiction']);
  }
});
