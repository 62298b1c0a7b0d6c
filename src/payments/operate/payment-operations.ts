import type { Message } from '@bufbuild/protobuf';
import type { GenMessage } from '@bufbuild/protobuf/codegenv2';
import {
  CancelOrRefundPaymentRequestSchema,
  CancelPaymentRequestSchema,
  CapturePaymentRequestSchema,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { requireAmount } from '#src/payments/request/check-request.ts';
import type { Caller } from '../caller.ts';
import { OPERATION_FORM, requestHasher } from '../keys/request-hash.ts';
import type { KeyedResponse } from '../keys/stored-response.ts';
import { planUndoingCancel, requireNoAmount, undoingType } from '../model/books.ts';
import {
  planCancelOf,
  planCaptureOf,
  planRefundOf,
  refundTarget,
  requireBase,
  requireRefundable,
} from '../model/plan.ts';
import { isOpen } from '../model/state.ts';
import type { OperationDeps, OperationFields, RequestedOperation } from './claim-operation.ts';
import { operatePayment } from './operate-payment.ts';

/** Captures all or part of an authorization. */
export const capturePayment = operation('CAPTURE', CapturePaymentRequestSchema, (request) => {
  const amount = request.amount && requireAmount(request.amount);
  return {
    needsKey: true,
    mayClose: false,
    named: (payment) => requireBase(payment, request.transactionId),
    target: ({ base }) => base,
    plan: (payment) => planCaptureOf(payment, amount, request.finalCapture),
  };
});

/**
 * Cancels an authorization, releasing the uncaptured amount, or a payment whose payer has yet to act, closing it at its
 * provider.
 */
export const cancelPayment = operation('CANCEL', CancelPaymentRequestSchema, (request) => ({
  needsKey: false,
  mayClose: true,
  named: (payment) => requireBase(payment, request.transactionId),
  target: ({ base }) => base,
  plan: planCancelOf,
}));

/** Refunds all or part of a payment. */
export const refundPayment = operation('REFUND', RefundPaymentRequestSchema, (request) => {
  const amount = request.amount && requireAmount(request.amount);
  return {
    needsKey: true,
    mayClose: false,
    named: (payment) => requireRefundable(payment, request.transactionId),
    target: (payment, named) => refundTarget(payment, named, amount),
    plan: (payment, target) => planRefundOf(payment, target, amount),
  };
});

/**
 * Cancels a payment that awaits its payer or has captured nothing. Otherwise refunds the given amount, or the remaining
 * amount of the named capture or of the payment. Once everything captured is refunded, cancels the remaining
 * authorization.
 */
export const cancelOrRefundPayment = operation(
  'CANCEL_OR_REFUND',
  CancelOrRefundPaymentRequestSchema,
  (request) => {
    const amount = request.amount && requireAmount(request.amount);
    return {
      needsKey: true,
      mayClose: true,
      // While nothing is captured, the payment's own transaction is the only one to act on.
      named: (payment) => requireRefundable(payment, request.transactionId),
      target: (payment, named) => refundTarget(payment, named, amount),
      plan: (payment, target) => {
        if (isOpen(payment.base)) {
          requireNoAmount(amount);
          return planCancelOf(payment);
        }
        return undoingType(payment.books) === 'REFUND' || target.id !== payment.base.id
          ? planRefundOf(payment, target, amount)
          : planUndoingCancel(payment.books, amount, payment.can);
      },
    };
  },
);

/**
 * Returns the function of an rpc that operates on a payment.
 *
 * @param rulesOf returns the rules of the requested operation.
 */
function operation<Request extends Message & OperationFields>(
  method: string,
  schema: GenMessage<Request>,
  rulesOf: (
    request: Request,
  ) => Pick<RequestedOperation, 'needsKey' | 'mayClose' | 'named' | 'target' | 'plan'>,
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
