import { ServiceError } from '#src/service-error.ts';

/**
 * Refuses the account of another: objects and payments belong to accounts, and a key speaks for its own only.
 *
 * @param accountId as the request's `account_id` names it.
 * @throws ServiceError AUTHORIZATION_REQUIRED.
 */
export function requireOwnAccount(accountId: string, caller: { readonly accountId: string }): void {
  if (accountId === caller.accountId) return;
  const message = 'is not the account of these keys';
  throw new ServiceError('AUTHORIZATION_REQUIRED', `account_id: ${message}`, {
    fields: [{ field: 'account_id', code: 'NOT_ALLOWED', message }],
  });
}
