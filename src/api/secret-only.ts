import type { Caller } from '#src/payments/create-payment.ts';
import { INVALID_CREDENTIALS_MESSAGE, ServiceError } from '#src/service-error.ts';

/** Returns the account of a caller with the secret key. @throws ServiceError INVALID_CREDENTIALS without it. */
export function accountOf(caller: Caller): string {
  if (caller.secretPresented) return caller.accountId;
  throw new ServiceError('INVALID_CREDENTIALS', INVALID_CREDENTIALS_MESSAGE);
}
