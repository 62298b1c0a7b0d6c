import { fieldRefusal } from '#src/service-error.ts';

/**
 * Refuses another account: objects and payments belong to accounts, and a key is valid only for its own.
 *
 * @param accountId the request's `account_id`.
 * @throws ServiceError AUTHORIZATION_REQUIRED.
 */
export function requireOwnAccount(accountId: string, caller: { readonly accountId: string }): void {
  if (accountId === caller.accountId) return;
  throw fieldRefusal(
    'AUTHORIZATION_REQUIRED',
    'account_id',
    'NOT_ALLOWED',
    'is not the account of these keys',
  );
}
