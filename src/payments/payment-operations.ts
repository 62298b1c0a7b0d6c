import type { Message } from '@bufbuild/protobuf';
import type { GenMessage } from '@bufbuild/protobuf/codegenv2';
import {
  CancelOrRefundPaymentRequestSchema,
  CancelPaymentRequestSchema,
  CapturePaymentRequestSchema,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import type { Money } from '#src/money.ts';
import { fieldRefusal, type ServiceError } from '#src/service-error.ts';
import type { StoredTransaction } from '#src/store/operated-payments.ts';
import type { Caller } from './caller.ts';
import { requireAmount } from './check-request.ts';
import type {
  OperatedPayment,
  OperationDeps,
  OperationFields,
  RequestedOperation,
} from './claim-operation.ts';
import {
  type PlannedOperation,
  planCancel,
  planCapture,
  planRefund,
  planUndoingCancel,
  type Refundable,
  undoingType,
} from './model/books.ts';
import { operatePayment } from './operate-payment.ts';
import { OPERATION_FORM, requestHasher } from './request-hash.ts';
import type { KeyedResponse } from './stored-response.ts';

/** Captures what an authorization holds, or a part of it. */
export const capturePayment = operation('CAPTURE', CapturePaymentRequestSchema, (request) => {
  const amount = request.amount && requireAmount(request.amount);
  return {
    needsKey: true,
    target: (payment) => requireBase(payment, request.transactionId),
    plan: (payment) => planCaptureOf(payment, amount, request.finalCapture),
  };
});

/** Cancels an authorization: releases what is not captured. */
export const cancelPayment = operation('CANCEL', CancelPaymentRequestSchema, (request) => ({
  needsKey: false,
  target: (payment) => requireBase(payment, request.transactionId),
  plan: ({ books, connection }) => planCancel(books, connection.capabilities),
}));

/** Refunds what was taken, or a part of it. */
export const refundPayment = operation('REFUND', RefundPaymentRequestSchema, (request) => {
  const amount = request.amount && requireAmount(request.amount);
  return {
    needsKey: true,
    target: (payment) => refundTarget(payment, request.transactionId, amount),
    plan: (payment, target) => planRefundOf(payment, target, amount),
  };
});

/**
 * Cancels a payment of which nothing is captured; refunds all that is left of any other, or of the capture named, or the
 * amount given; cancels what is held still once all that was captured is given back.
 */
export const cancelOrRefundPayment = operation(
  'CANCEL_OR_REFUND',
  CancelOrRefundPaymentRequestSchema,
  (request) => {
    const amount = request.amount && requireAmount(request.amount);
    return {
      needsKey: true,
      // While nothing is captured, there is only the payment's own transaction to act on.
      target: (payment) => refundTarget(payment, request.transactionId, amount),
      plan: (payment, target) =>
        undoingType(payment.books) === 'REFUND' || target.id !== payment.base.id
          ? planRefundOf(payment, target, amount)
          : planUndoingCancel(payment.books, amount, payment.connection.capabilities),
    };
  },
);

/**
 * Makes the function of an rpc that operates on a payment.
 *
 * @param rulesOf returns the rules of the operation that a request asks for.
 */
function operation<Request extends Message & OperationFields>(
  method: string,
  schema: GenMessage<Request>,
  rulesOf: (request: Request) => Pick<RequestedOperation, 'needsKey' | 'target' | 'plan'>,
) {
  const hash = requestHasher(schema, (request) => request, OPERATION_FORM);
  return (deps: OperationDeps, request: Request, caller: Caller): Promise<KeyedResponse> => {
    const requested = {
      ...{ ...request, ...rulesOf(request), method },
      hash: (transactionId: string) =>
        hash(deps.requestHashKey, { ...request, paymentId: request.paymentId.toLowerCase(), transactionId }),
    };
    return operatePayment(deps, requested, caller);
  };
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

function planCaptureOf(
  { books, transactions, connection }: OperatedPayment,
  requested: Money | undefined,
  isFinal?: boolean,
) {
  return planCapture(books, requested, capturesOf(transactions).length, connection.capabilities, isFinal);
}

function planRefundOf(payment: OperatedPayment, target: StoredTransaction, requested: Money | undefined) {
  return planRefund(payment.books, refundable(payment, target), requested, payment.connection.capabilities);
}

/**
 * Chooses the transaction that a refund acts on: the one named; else the purchase; else a capture with enough left;
 * else the authorization, which stands for all of its captures.
 */
function refundTarget(
  payment: OperatedPayment,
  transactionId: string,
  requested: Money | undefined,
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
  return (
    withRest.find((capture) => requested && rest(refundable(payment, capture)) >= requested.minorUnits) ??
    base
  );
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
  return fieldRefusal('TRANSACTION_NOT_FOUND', 'transaction_id', 'NOT_FOUND', message);
}
