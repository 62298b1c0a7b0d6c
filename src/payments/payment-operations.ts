import {
  type CancelOrRefundPaymentRequest,
  CancelOrRefundPaymentRequestSchema,
  type CancelPaymentRequest,
  CancelPaymentRequestSchema,
  type CapturePaymentRequest,
  CapturePaymentRequestSchema,
  type RefundPaymentRequest,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import type { Money } from '#src/money.ts';
import { fieldRefusal, type ServiceError } from '#src/service-error.ts';
import type { StoredTransaction } from '#src/store/operated-payments.ts';
import type { Caller } from './caller.ts';
import { requireAmount } from './check-request.ts';
import type { OperatedPayment, OperationDeps } from './claim-operation.ts';
import { operatePayment } from './operate-payment.ts';
import {
  type PlannedOperation,
  planCancel,
  planCapture,
  planRefund,
  type Refundable,
  undoingType,
} from './payment-books.ts';
import { requestHasher } from './request-hash.ts';
import type { KeyedResponse } from './stored-response.ts';

const hashCapture = requestHasher(CapturePaymentRequestSchema);
const hashCancel = requestHasher(CancelPaymentRequestSchema);
const hashRefund = requestHasher(RefundPaymentRequestSchema);
const hashCancelOrRefund = requestHasher(CancelOrRefundPaymentRequestSchema);

/** Captures what an authorization holds, or a part of it. */
export function capturePayment(
  deps: OperationDeps,
  request: CapturePaymentRequest,
  caller: Caller,
): Promise<KeyedResponse> {
  const amount = request.amount && requireAmount(request.amount);
  return operatePayment(
    deps,
    {
      ...request,
      method: 'CAPTURE',
      needsKey: true,
      hash: hashCapture(deps.requestHashKey, request),
      target: (payment) => requireBase(payment, request.transactionId),
      plan: (payment) => planCaptureOf(payment, amount),
    },
    caller,
  );
}

/** Cancels an authorization: releases what is not captured. */
export function cancelPayment(
  deps: OperationDeps,
  request: CancelPaymentRequest,
  caller: Caller,
): Promise<KeyedResponse> {
  return operatePayment(
    deps,
    {
      ...request,
      method: 'CANCEL',
      needsKey: false,
      hash: hashCancel(deps.requestHashKey, request),
      target: (payment) => requireBase(payment, request.transactionId),
      plan: ({ books, connection }) => planCancel(books, connection.capabilities),
    },
    caller,
  );
}

/** Refunds what was taken, or a part of it. */
export function refundPayment(
  deps: OperationDeps,
  request: RefundPaymentRequest,
  caller: Caller,
): Promise<KeyedResponse> {
  const amount = request.amount && requireAmount(request.amount);
  return operatePayment(
    deps,
    {
      ...request,
      method: 'REFUND',
      needsKey: true,
      hash: hashRefund(deps.requestHashKey, request),
      target: (payment) => refundTarget(payment, request.transactionId, amount),
      plan: (payment, target) => planRefundOf(payment, target, amount),
    },
    caller,
  );
}

/**
 * Cancels a payment of which nothing is captured; refunds all that is left of any other, or of the capture named; cancels
 * what is held still once all that was captured is given back.
 */
export function cancelOrRefundPayment(
  deps: OperationDeps,
  request: CancelOrRefundPaymentRequest,
  caller: Caller,
): Promise<KeyedResponse> {
  return operatePayment(
    deps,
    {
      ...request,
      method: 'CANCEL_OR_REFUND',
      needsKey: true,
      hash: hashCancelOrRefund(deps.requestHashKey, request),
      // While nothing is captured, there is only the payment's own transaction to act on.
      target: (payment) => refundTarget(payment, request.transactionId, undefined),
      plan: (payment, target) =>
        undoingType(payment.books) === 'REFUND' || target.id !== payment.base.id
          ? planRefundOf(payment, target, undefined)
          : planCancel(payment.books, payment.connection.capabilities),
    },
    caller,
  );
}

/**
 * Plans a capture or a refund that was made at the provider itself, as if it were asked for here.
 *
 * @throws ServiceError if the payment does not allow it.
 */
export function planMade(
  payment: OperatedPayment,
  type: 'CAPTURE' | 'REFUND',
  money: Money,
): { readonly target: StoredTransaction; readonly planned: PlannedOperation } {
  if (type === 'CAPTURE') return { target: payment.base, planned: planCaptureOf(payment, money) };
  const target = refundTarget(payment, '', money);
  return { target, planned: planRefundOf(payment, target, money) };
}

/** Returns the payment's own transaction. A path may name it, but no other. */
function requireBase({ base }: OperatedPayment, transactionId: string): StoredTransaction {
  if (transactionId === '' || transactionId.toLowerCase() === base.id) return base;
  throw transactionNotFound();
}

function planCaptureOf({ books, transactions, connection }: OperatedPayment, asked: Money | undefined) {
  return planCapture(books, asked, capturesOf(transactions).length, connection.capabilities);
}

function planRefundOf(payment: OperatedPayment, target: StoredTransaction, asked: Money | undefined) {
  return planRefund(payment.books, refundable(payment, target), asked, payment.connection.capabilities);
}

/**
 * Chooses the transaction that a refund acts on: the one named; else the purchase; else a capture with enough left;
 * else the authorization, which stands for all of its captures.
 */
function refundTarget(
  payment: OperatedPayment,
  transactionId: string,
  asked: Money | undefined,
): StoredTransaction {
  const { base, transactions, books } = payment;
  const named = transactionId.toLowerCase();
  if (!books.isAuthorization) return requireBase(payment, transactionId);
  const captures = capturesOf(transactions);
  if (named !== '' && named !== base.id) {
    const capture = captures.find(({ id }) => id === named);
    if (!capture) throw transactionNotFound();
    return capture;
  }
  const withRest = captures.filter((capture) => rest(refundable(payment, capture)) > 0n);
  const [only] = withRest;
  if (only && withRest.length === 1) return only;
  return withRest.find((capture) => asked && rest(refundable(payment, capture)) >= asked.minorUnits) ?? base;
}

function capturesOf(transactions: readonly StoredTransaction[]): readonly StoredTransaction[] {
  return transactions.filter(({ type, status }) => type === 'CAPTURE' && status === 'SUCCEEDED');
}

function refundable({ transactions }: OperatedPayment, target: StoredTransaction): Refundable {
  const refunds = transactions.filter(
    ({ type, parentId, status }) =>
      type === 'REFUND' && parentId === target.id && (status === 'SUCCEEDED' || status === 'PENDING'),
  );
  return {
    amount: target.minorUnits,
    refunded: refunds.reduce((sum, { minorUnits }) => sum + minorUnits, 0n),
  };
}

function rest({ amount, refunded }: Refundable): bigint {
  return amount - refunded;
}

function transactionNotFound(): ServiceError {
  const message = 'is not a transaction of this payment that the operation can act on';
  return fieldRefusal('TRANSACTION_NOT_FOUND', 'transaction_id', 'NOT_ALLOWED', message);
}
