import { Payment_Workflow } from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { INVALID_CREDENTIALS_MESSAGE, ServiceError, unknownId } from '#src/service-error.ts';
import type { Database } from '#src/store/database.ts';
import { findStoredObjects, type StoredObjects } from '#src/store/stored-objects.ts';
import type { ChosenMethod } from './payment-method.ts';

/**
 * Finds the stored customer, checkout session and vaulted token that a request names; undefined when it names none.
 *
 * @throws ServiceError when the account has no such object, or when the token is of another type than the request says.
 */
export async function findReferences(
  database: Database,
  request: CreatePaymentRequest,
  method: ChosenMethod,
  accountId: string,
): Promise<StoredObjects | undefined> {
  const customerId = request.customerPayer?.id || undefined;
  const checkoutSession = request.checkout?.session || undefined;
  const vaultedToken = request.paymentMethod?.vaultedToken || undefined;
  if (!customerId && !checkoutSession && !vaultedToken) return undefined;
  const found = await findStoredObjects(database, accountId, { customerId, checkoutSession, vaultedToken });
  if (customerId && !found.customer) throw unknownId('CUSTOMER_NOT_FOUND', 'customer_payer.id');
  if (checkoutSession && !found.checkoutSessionFound)
    throw unknownId('CHECKOUT_SESSION_NOT_FOUND', 'checkout.session');
  if (vaultedToken && found.vaultedToken?.type !== method.type) {
    throw unknownId('VAULTED_TOKEN_NOT_FOUND', 'payment_method.vaulted_token');
  }
  return found;
}

/**
 * Holds a request that comes with the public key alone to a wallet's redirect that uses nothing stored: anybody may read
 * that key in a page.
 *
 * @throws ServiceError INVALID_CREDENTIALS.
 */
export function requireNothingStored(request: CreatePaymentRequest, method: ChosenMethod): void {
  const usesStored =
    request.paymentMethod?.vaultedToken || request.customerPayer?.id || request.checkout?.session;
  if (method.workflow === Payment_Workflow.REDIRECT && method.kind === 'wallet' && !usesStored) return;
  throw new ServiceError('INVALID_CREDENTIALS', INVALID_CREDENTIALS_MESSAGE);
}
