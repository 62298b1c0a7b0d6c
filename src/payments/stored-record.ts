import { type DescMessage, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Payment, PaymentSchema, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { shownTransaction } from './model/states.ts';

/**
 * Encodes a record for storage: a Payment without `transactions`, which repeats an element of `transactions_history`.
 * Omitting it saves a third of the bytes and of the time to write them.
 */
export function encodeRecord(record: Payment): Uint8Array {
  return toBinary(PaymentSchema, { ...record, transactions: undefined });
}

/**
 * Decodes a record that `encodeRecord` wrote.
 *
 * @param schema payments.v1.Payment, by default in this release's version.
 */
export function decodeRecord(stored: Uint8Array, schema: DescMessage = PaymentSchema): Payment {
  const record = fromBinary(schema, stored) as Payment;
  const reported = shownTransaction(record);
  if (reported) record.transactions = reported;
  return record;
}

/** Returns what the columns of a payment say about its method, which operators search by; '' for what it does not have. */
export function columnsOfMethod({ paymentMethod, transactions }: Payment) {
  const kind = paymentMethod?.paymentMethodDetail?.kind;
  const card = kind?.case === 'card' ? kind.value.cardData : undefined;
  return {
    methodType: paymentMethod?.type ?? '',
    category: Transaction_Category[transactions?.category ?? 0] ?? '',
    cardBrand: card?.brand ?? '',
    cardLastFour: card?.lfd ?? '',
  };
}
