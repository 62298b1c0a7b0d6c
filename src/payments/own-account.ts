import { fieldRefusal } from '#src/service-error.ts';

/**
 * Refuses another account: objects and payments belong to accounts, and a key is valid for its own only.
 *
 * @param accountId as the request's `account_id` names it.
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
