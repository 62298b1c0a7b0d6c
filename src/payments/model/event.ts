import { type Payment, Payment_Status, Transaction_Type } from '#gen/payments/v1/payment_pb.js';

/** The event that reports a transaction, by transaction type. */
const EVENTS: Readonly<Record<Transaction_Type, string>> = {
  [Transaction_Type.TYPE_UNSPECIFIED]: 'payment.purchase',
  [Transaction_Type.PURCHASE]: 'payment.purchase',
  [Transaction_Type.AUTHORIZE]: 'payment.authorize',
  [Transaction_Type.CAPTURE]: 'payment.capture',
  [Transaction_Type.CANCEL]: 'payment.cancel',
  [Transaction_Type.REFUND]: 'payment.refund',
  [Transaction_Type.VERIFY]: 'payment.verify',
  [Transaction_Type.CHARGEBACK]: 'payment.chargeback',
};

/** Returns the event for a change of a payment: that of its last transaction, or payment.expired. */
export function eventOf(record: Payment): string {
  if (record.status === Payment_Status.EXPIRED) return 'payment.expired';
  return EVENTS[record.transactions?.type ?? Transaction_Type.TYPE_UNSPECIFIED];
}
