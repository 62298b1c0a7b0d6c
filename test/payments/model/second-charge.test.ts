import { expect, it } from 'vitest';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { reportOfOwnMoney } from '#src/payments/model/contradiction.ts';
import type { PaymentState, TransactionInState, TransactionRow } from '#src/payments/model/state.ts';
import { APPROVED, approved, begun, claimed } from './kept-payment.ts';

const SECOND: Outcome = { ...APPROVED, providerPaymentId: 'second' };

function found(state: PaymentState, over: Partial<TransactionRow> = {}, at = 0): TransactionInState {
  const transactions = state.transactions.map((one, i) => (i === at ? { ...one, ...over } : one));
  const transaction = transactions[at];
  if (!transaction) throw new Error('there is no transaction');
  return { ...state, transactions, transaction };
}

const released = (state: PaymentState): PaymentState => ({
  ...state,
  payment: { ...state.payment, isReleased: true },
});
const EXPIRED = { status: 'EXPIRED' };

it.each<[string, TransactionInState]>([
  ['purchase', found(approved(true))],
  ['authorization', found(approved(false))],
  ['authorization that has been released since', found(released(approved(false)), EXPIRED)],
])('an approval under another id than that of the approved %s is an alarm with both ids', (_what, state) => {
  expect(reportOfOwnMoney(state, SECOND)).toMatchObject({
    ...{ kind: 'unknown', alarm: true },
    detail: 'alarm: charged twice: base-id is recorded, and the provider also approved second',
  });
});

it.each<[string, TransactionInState, Outcome]>([
  ['repeats the recorded id', found(approved(true)), { ...APPROVED, providerPaymentId: 'base-id' }],
  ['has no id', found(approved(true)), APPROVED],
  ['is the first approval', found(claimed(true)), SECOND],
  ['is late money after an expiry', found(claimed(true), EXPIRED), SECOND],
  ['gives the first id', found(approved(true), { providerPaymentId: undefined }), SECOND],
  ['is no approval', found(approved(true)), { kind: 'pending', providerData: APPROVED.providerData }],
])('a report is not an alarm if it %s', (_what, state, report) => {
  expect(reportOfOwnMoney(state, report)).toBe(report);
});

it('an operation is never approved by the id of another transaction of its payment at the same provider', () => {
  const state = begun(approved(true), 'REFUND', 30n, 'ours');
  const own: Outcome = { ...APPROVED, providerPaymentId: 'base-id' };
  expect(reportOfOwnMoney(found(state, {}, 1), own)).toMatchObject({
    ...{ kind: 'unknown', alarm: true },
    detail: "alarm: the provider's id base-id belongs to another transaction of the payment",
  });
  expect(reportOfOwnMoney(found(state, { connectionId: 'another' }, 1), own)).toBe(own);
});
