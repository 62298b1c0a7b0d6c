import { create, equals, fromBinary } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { PaymentSchema, TransactionSchema } from '#gen/payments/v1/payment_pb.js';
import { decodeRecord, encodeRecord } from '#src/payments/stored-record.ts';

const first = create(TransactionSchema, { id: 't1', description: 'the first attempt' });
const last = create(TransactionSchema, { id: 't2', description: 'the last attempt' });
const record = create(PaymentSchema, { id: 'p', transactions: last, transactionsHistory: [first, last] });

it('the stored record is read back unchanged', () => {
  expect(equals(PaymentSchema, decodeRecord(encodeRecord(record)), record)).toBe(true);
});

it('the last transaction is stored once', () => {
  const stored = fromBinary(PaymentSchema, encodeRecord(record));
  expect(stored.transactions).toBeUndefined();
  expect(stored.transactionsHistory.map(({ id }) => id)).toEqual(['t1', 't2']);
});

it('storing leaves the record itself unchanged', () => {
  encodeRecord(record);
  expect(record.transactions).toBe(last);
});
