import { expect, it } from 'vitest';
import { Payment_Status, Payment_SubStatus_Value } from '#gen/payments/v1/payment_pb.js';
import {
  booksOf,
  isLapsing,
  isOpen,
  isOpenAttempt,
  isOpenDispute,
  isOperation,
  isOver,
  payerMustAct,
  shownOf,
  succeededBase,
  targetOf,
} from '#src/payments/model/state.ts';
import { approved } from './kept-payment.ts';

it('operations act on another transaction; purchases, authorizations, verifications and disputes do not', () => {
  const types = ['CAPTURE', 'CANCEL', 'REFUND', 'PURCHASE', 'AUTHORIZE', 'VERIFY', 'CHARGEBACK', ''];
  expect(types.filter(isOperation)).toEqual(['CAPTURE', 'CANCEL', 'REFUND']);
});

it('books and targets are derived from stored columns', () => {
  const stored = {
    ...{ record: Buffer.alloc(0), version: 0, openOperation: undefined },
    ...{ capturedMinorUnits: 30n, refundedMinorUnits: 20n, isReleased: true },
  };
  const base = { minorUnits: 100n, currency: 'USD', capture: false };
  const books = { currency: 'USD', amount: 100n, captured: 30n, refunded: 20n, isReleased: true };
  expect(booksOf(stored, base)).toEqual({ ...books, isAuthorization: true });
  expect(booksOf(stored, { ...base, capture: true })).toEqual({ ...books, isAuthorization: false });
  const transaction = { ...base, id: 'ours', reference: 'theirs' } as Parameters<typeof targetOf>[0];
  expect(targetOf(transaction)).toEqual({
    ...{ transactionId: 'ours', reference: 'theirs', money: { minorUnits: 100n, currency: 'USD' } },
  });
});

const STATUSES = ['CREATED', 'PENDING', 'SUCCEEDED', 'DECLINED', 'ERROR', 'EXPIRED'];

it('money may still move only while a transaction is created or pending', () => {
  expect(STATUSES.filter((status) => isOpen({ status }))).toEqual(['CREATED', 'PENDING']);
});

it('only an open attempt without a payer to wait for has an unknown outcome', () => {
  const attempt = { type: 'PURCHASE', status: 'PENDING', awaitsPayer: false };
  expect(isOpenAttempt(attempt)).toBe(true);
  expect(isOpenAttempt({ ...attempt, status: 'SUCCEEDED' })).toBe(false);
  expect(isOpenAttempt({ ...attempt, type: 'REFUND' })).toBe(false);
  expect(isOpenAttempt({ ...attempt, awaitsPayer: true })).toBe(false);
});

it('only a succeeded authorization that waits for its capture can lapse, until nothing of it is left', () => {
  const [authorized] = approved(false).transactions;
  if (!authorized) throw new Error('there is no transaction');
  expect(isLapsing(authorized)).toBe(true);
  expect(isLapsing({ ...authorized, capture: true })).toBe(false);
  expect(isLapsing({ ...authorized, status: 'PENDING' })).toBe(false);
  expect(isLapsing({ ...authorized, type: 'CAPTURE' })).toBe(false);
  const { payment } = approved(false);
  const isOverAt = (capturedMinorUnits: bigint, isReleased = false) =>
    isOver({ payment: { ...payment, capturedMinorUnits, isReleased }, transaction: authorized });
  expect([isOverAt(99n), isOverAt(100n), isOverAt(0n, true)]).toEqual([false, true, true]);
});

it('a dispute is open while it is pending', () => {
  expect(STATUSES.filter((status) => isOpenDispute({ type: 'CHARGEBACK', status }))).toEqual(['PENDING']);
  expect(isOpenDispute({ type: 'REFUND', status: 'PENDING' })).toBe(false);
});

it('a payer has yet to act after a redirect or a challenge', () => {
  const { READY_TO_PAY, PENDING } = Payment_Status;
  const { CREATED, WAITING_ADDITIONAL_STEP, IN_PROCESS } = Payment_SubStatus_Value;
  expect(payerMustAct({ status: READY_TO_PAY, subStatus: CREATED })).toBe(true);
  expect(payerMustAct({ status: PENDING, subStatus: WAITING_ADDITIONAL_STEP })).toBe(true);
  expect(payerMustAct({ status: PENDING, subStatus: IN_PROCESS })).toBe(false);
});

it('operations act on the attempt that succeeded, not on a declined attempt or a capture', () => {
  const rows = [
    { type: 'AUTHORIZE', status: 'DECLINED' },
    { type: 'CAPTURE', status: 'SUCCEEDED' },
    { type: 'AUTHORIZE', status: 'SUCCEEDED' },
  ];
  expect(succeededBase(rows)).toBe(rows[2]);
  expect(succeededBase(rows.slice(0, 2))).toBeUndefined();
});

it("the provider's data is shown for its own transaction", () => {
  const { record, transactions } = approved(true);
  const [transaction] = transactions;
  if (!transaction) throw new Error('there is no transaction');
  expect(shownOf({ record, transaction })).toEqual(record.transactionsHistory[0]?.providerData);
  expect(shownOf({ record, transaction })).toBeDefined();
  expect(shownOf({ record, transaction: { ...transaction, id: 'other' } })).toBeUndefined();
});
