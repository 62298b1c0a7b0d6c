import { create } from '@bufbuild/protobuf';
import {
  EnrollPaymentMethodRequestSchema,
  ListPaymentMethodsResponseSchema,
  type PaymentMethodService,
} from '#gen/payments/v1/payment_method_service_pb.js';
import {
  enrollMethod,
  getStoredMethod,
  listStoredMethods,
  type MethodDeps,
  unenrollMethod,
} from '#src/customers/stored-methods.ts';
import { accountOf, type Caller } from '#src/payments/caller.ts';
import { createdResponse } from './customer-service.ts';
import { requireValidOf } from './require-valid.ts';
import type { ServiceHandlers } from './rest.ts';

const validEnroll = requireValidOf(EnrollPaymentMethodRequestSchema);

/** The handlers of payments.v1.PaymentMethodService, the same for every protocol. */
export function paymentMethodService(deps: MethodDeps): ServiceHandlers<typeof PaymentMethodService, Caller> {
  const { database } = deps;
  return {
    async enrollPaymentMethod(request, caller) {
      accountOf(caller);
      const response = await enrollMethod(deps, validEnroll(request), caller);
      const { customerId, id } = response.message;
      return createdResponse(response, `/v1/customers/${customerId}/payment-methods/${id}`);
    },
    async listPaymentMethods({ customerId }, caller) {
      const paymentMethods = await listStoredMethods(database, accountOf(caller), customerId);
      return { message: create(ListPaymentMethodsResponseSchema, { paymentMethods }) };
    },
    async getPaymentMethod({ customerId, id }, caller) {
      return { message: await getStoredMethod(database, { accountId: accountOf(caller), customerId, id }) };
    },
    async unenrollPaymentMethod({ customerId, id }, caller) {
      return { message: await unenrollMethod(deps, { accountId: accountOf(caller), customerId, id }) };
    },
  };
}
