import type { OfferedPaymentMethod } from '#gen/payments/v1/checkout_service_pb.js';
import type { PaymentDeps } from '#src/payments/create-payment.ts';
import type { StoredSession } from '#src/store/checkout-sessions.ts';
import { offeredMethods } from './offered-methods.ts';

/** Lists what a session can be paid with. */
export async function listSessionMethods(
  { catalogue, now }: PaymentDeps,
  session: StoredSession,
): Promise<OfferedPaymentMethod[]> {
  return offeredMethods(catalogue(), session, now());
}
