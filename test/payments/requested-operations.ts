import { create } from '@bufbuild/protobuf';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import {
  CancelOrRefundPaymentRequestSchema,
  CancelPaymentRequestSchema,
  CapturePaymentRequestSchema,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import {
  cancelOrRefundPayment,
  cancelPayment,
  capturePayment,
  refundPayment,
} from '#src/payments/operate/payment-operations.ts';
import { type OperatedPayments, payments } from './operated-payments.ts';

/* Operations as a merchant requests them, on the payments of `onOperatedPayments`. */

/**
 * Fields of a request besides the payment's ID, and the service that receives it if it differs from
 * that of `payments`. A null key means none; the default is a fresh one.
 */
type Asked = {
  deps?: OperatedPayments['deps'];
  amount?: string;
  reference?: string;
  transactionId?: string;
  key?: string | null;
  currency?: string;
  isFinal?: boolean;
};

const namesOf = (payment: Payment, { reference, transactionId }: Asked) => ({
  paymentId: payment.id,
  ...(transactionId !== undefined && { transactionId }),
  ...(reference !== undefined && { merchantReference: reference }),
});
const fieldsOf = (payment: Payment, asked: Asked) => ({
  ...namesOf(payment, asked),
  ...(asked.amount !== undefined && {
    amount: { currency: asked.currency ?? 'USD', value: { value: asked.amount } },
  }),
});
/** Captures, cancels and refunds a payment at the merchant's request. */
export const capture = (payment: Payment, asked: Asked = {}) =>
  capturePayment(
    asked.deps ?? payments.deps,
    create(CapturePaymentRequestSchema, {
      ...fieldsOf(payment, asked),
      ...(asked.isFinal !== undefined && { finalCapture: asked.isFinal }),
    }),
    payments.caller(asked.key),
  );
export const refund = (payment: Payment, asked: Asked = {}) =>
  refundPayment(
    asked.deps ?? payments.deps,
    create(RefundPaymentRequestSchema, fieldsOf(payment, asked)),
    payments.caller(asked.key),
  );
export const cancel = (payment: Payment, asked: Asked = {}) =>
  cancelPayment(
    asked.deps ?? payments.deps,
    create(CancelPaymentRequestSchema, namesOf(payment, asked)),
    payments.caller(asked.key),
  );
export const undo = (payment: Payment, asked: Asked = {}) =>
  cancelOrRefundPayment(
    asked.deps ?? payments.deps,
    create(CancelOrRefundPaymentRequestSchema, fieldsOf(payment, asked)),
    payments.caller(asked.key),
  );
export const idOf = ({ transactions }: Payment) => transactions?.id ?? '';
