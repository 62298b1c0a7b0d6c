import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
  type PaymentService,
} from '../../gen/payments/v1/payment_service_pb.js';
import { checkRequest } from '../payments/check-request.ts';
import { type Caller, createPayment, type PaymentParts } from '../payments/create-payment.ts';
import { getPayment } from '../payments/get-payment.ts';
import { type FieldError, invalidParameters } from '../payments/payment-error.ts';
import type { ServiceHandlers } from './rest.ts';
import { MAX_FIELD_ERRORS, validate } from './validate.ts';

const checkRules = validate(CreatePaymentRequestSchema);

/** The handlers of the service's rpcs, by name. */
export type PaymentHandlers = ServiceHandlers<typeof PaymentService, Caller>;

/** The handlers of payments.v1.PaymentService, the same for every protocol. */
export function paymentService(parts: PaymentParts): PaymentHandlers {
  return {
    async createPayment(request, caller) {
      requireValid(request);
      const { record, body, replayed } = await createPayment(parts, request, caller);
      return {
        message: record,
        json: body,
        created: `/v1/payments/${record.id}`,
        ...(replayed && { headers: { 'idempotent-replayed': 'true' } }),
      };
    },
    async getPayment({ id }, caller) {
      return { message: await getPayment(parts, id, caller) };
    },
  };
}

/** Where both the .proto's rule and our own refuse a field, our own says it in plainer words. */
function requireValid(request: CreatePaymentRequest): void {
  const byField = new Map<string, FieldError>();
  for (const error of [...checkRules(request), ...checkRequest(request)]) byField.set(error.field, error);
  // Of hundreds of faults a few do, and all of them would not fit into the trailers that gRPC puts them in.
  if (byField.size > 0) throw invalidParameters([...byField.values()].slice(0, MAX_FIELD_ERRORS));
}
