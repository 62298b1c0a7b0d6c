import { expect, it } from 'vitest';
import { booksOf, isOperation, targetOf } from '#src/payments/model/state.ts';

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
