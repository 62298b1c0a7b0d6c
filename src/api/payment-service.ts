import type { PaymentService } from '#gen/payments/v1/payment_service_pb.js';
import { type Caller, createPayment, type PaymentDeps } from '#src/payments/create-payment.ts';
import { getPayment } from '#src/payments/get-payment.ts';
import { requireValid } from './require-valid.ts';
import type { ServiceHandlers } from './rest.ts';

/** The handlers of the service's rpcs, by name. */
export type PaymentHandlers = ServiceHandlers<typeof PaymentService, Caller>;

/** The handlers of payments.v1.PaymentService, the same for every protocol. */
export function paymentService(deps: PaymentDeps): PaymentHandlers {
  return {
    async createPayment(request, caller) {
      requireValid(request);
      const { record, body, replayed } = await createPayment(deps, request, caller);
      return {
        message: record,
        json: body,
        created: `/v1/payments/${record.id}`,
        ...(replayed && { headers: { 'idempotent-replayed': 'true' } }),
      };
    },
    async getPayment({ id }, caller) {
      return { message: await getPayment(deps, id, caller) };
    },
  };
}
