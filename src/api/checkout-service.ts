import { create } from '@bufbuild/protobuf';
import {
  type CheckoutService,
  CreateCheckoutPaymentRequestSchema,
  CreateCheckoutSessionRequestSchema,
  ListCheckoutPaymentMethodsResponseSchema,
  UpdateCheckoutSessionRequestSchema,
} from '#gen/payments/v1/checkout_service_pb.js';
import { closeCheckoutPayment, getCheckoutPayment, payCheckout } from '#src/customers/checkout-payments.ts';
import {
  changeSession,
  createSession,
  publicSession,
  requireOpenSession,
  requireSession,
  sessionMessage,
} from '#src/customers/checkout-sessions.ts';
import type { CustomerDeps } from '#src/customers/customers.ts';
import { listSessionMethods } from '#src/customers/session-methods.ts';
import { accountOf, type Caller } from '#src/payments/caller.ts';
import type { ReturnDeps } from '#src/payments/check/payer-return.ts';
import type { PaymentDeps } from '#src/payments/create/create-payment.ts';
import { createdResponse } from './customer-service.ts';
import { requireValid, requireValidOf } from './require-valid.ts';
import type { ServiceHandlers } from './rest.ts';

const validCreate = requireValidOf(CreateCheckoutSessionRequestSchema);
const validUpdate = requireValidOf(UpdateCheckoutSessionRequestSchema);
const validPayment = requireValidOf(CreateCheckoutPaymentRequestSchema);

/** The handlers of payments.v1.CheckoutService, the same for every protocol. */
export function checkoutService(
  deps: CustomerDeps & PaymentDeps & ReturnDeps,
): ServiceHandlers<typeof CheckoutService, Caller> {
  const { database } = deps;
  return {
    async createCheckoutSession(request, caller) {
      accountOf(caller);
      const response = await createSession(deps, validCreate(request), caller);
      return createdResponse(response, `/v1/checkout/sessions/${response.message.checkoutSession}`);
    },
    async getCheckoutSession({ checkoutSession }, { accountId, secretPresented }) {
      const session = sessionMessage(await requireSession(database, accountId, checkoutSession));
      return { message: secretPresented ? session : publicSession(session) };
    },
    async updateCheckoutSession(request, caller) {
      return { message: await changeSession(deps, accountOf(caller), validUpdate(request)) };
    },
    async listCheckoutPaymentMethods({ checkoutSession }, { accountId }) {
      // Otherwise, anybody with the URL of an ended session could see the customer's cards, including newer ones.
      const session = await requireOpenSession(database, accountId, checkoutSession);
      const paymentMethods = await listSessionMethods(deps, session);
      return { message: create(ListCheckoutPaymentMethodsResponseSchema, { paymentMethods }) };
    },
    async createCheckoutPayment(request, caller) {
      const paid = await payCheckout(deps, validPayment(request), caller, requireValid);
      return createdResponse(paid, `/v1/checkout/sessions/${paid.message.checkoutSession}/payment`);
    },
    async getCheckoutPayment({ checkoutSession }, { accountId }) {
      return { message: await getCheckoutPayment(deps, accountId, checkoutSession) };
    },
    async closeCheckoutPayment(request, { accountId }) {
      return { message: await closeCheckoutPayment(deps, accountId, request) };
    },
  };
}
