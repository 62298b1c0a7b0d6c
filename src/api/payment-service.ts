import { create } from '@bufbuild/protobuf';
import {
  CancelOrRefundPaymentRequestSchema,
  CancelPaymentRequestSchema,
  CapturePaymentRequestSchema,
  type CreatePaymentRequest,
  ListPaymentsRequestSchema,
  ListPaymentsResponseSchema,
  type PaymentService,
  RefundPaymentRequestSchema,
  SearchPaymentsRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import type { Caller } from '#src/payments/caller.ts';
import { createPayment, type PaymentDeps, replayOrRefuse } from '#src/payments/create/create-payment.ts';
import type { KeyedResponse } from '#src/payments/keys/stored-response.ts';
import type { OperationDeps } from '#src/payments/operate/claim-operation.ts';
import {
  cancelOrRefundPayment,
  cancelPayment,
  capturePayment,
  refundPayment,
} from '#src/payments/operate/payment-operations.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { listPayments } from '#src/payments/read/list-payments.ts';
import { type SearchDeps, searchPayments } from '#src/payments/read/search-payments.ts';
import { ServiceError } from '#src/service-error.ts';
import { onceResponse } from './customer-service.ts';
import { requireValid, requireValidOf } from './require-valid.ts';
import type { ServiceHandlers } from './rest.ts';

const validList = requireValidOf(ListPaymentsRequestSchema);
const validSearch = requireValidOf(SearchPaymentsRequestSchema);
const validCapture = requireValidOf(CapturePaymentRequestSchema);
const validCancel = requireValidOf(CancelPaymentRequestSchema);
const validRefund = requireValidOf(RefundPaymentRequestSchema);
const validCancelOrRefund = requireValidOf(CancelOrRefundPaymentRequestSchema);

/** The handlers of payments.v1.PaymentService, the same for every protocol. */
export function paymentService(
  deps: PaymentDeps & OperationDeps & SearchDeps,
): ServiceHandlers<typeof PaymentService, Caller> {
  return {
    async createPayment(request, caller) {
      const created = await createOrReplay(deps, request, caller);
      return { ...responseOf(created), created: `/v1/payments/${created.record.id}` };
    },
    async getPayment({ id }, caller) {
      return { message: await getPayment(deps, id, caller) };
    },
    async listPayments(request, caller) {
      const page = await listPayments(deps, validList(request), caller);
      return { message: create(ListPaymentsResponseSchema, page) };
    },
    async searchPayments(request, caller) {
      return { message: await searchPayments(deps, validSearch(request), caller) };
    },
    async capturePayment(request, caller) {
      return responseOf(await capturePayment(deps, validCapture(request), caller));
    },
    async cancelPayment(request, caller) {
      return responseOf(await cancelPayment(deps, validCancel(request), caller));
    },
    async refundPayment(request, caller) {
      return responseOf(await refundPayment(deps, validRefund(request), caller));
    },
    async cancelOrRefundPayment(request, caller) {
      return responseOf(await cancelOrRefundPayment(deps, validCancelOrRefund(request), caller));
    },
  };
}

/** Makes a payment, or repeats the response to an earlier call, even if this release no longer accepts the request. */
async function createOrReplay(deps: PaymentDeps, request: CreatePaymentRequest, caller: Caller) {
  try {
    requireValid(request);
  } catch (refusal) {
    if (!(refusal instanceof ServiceError) || refusal.reason !== 'NOT_SUPPORTED') throw refusal;
    return replayOrRefuse(deps, { request, caller }, refusal);
  }
  return createPayment(deps, request, caller);
}

function responseOf({ record, body, replayed }: KeyedResponse) {
  return { ...onceResponse({ message: record, replayed }), json: body };
}
