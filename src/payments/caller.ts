import { fieldRefusal, INVALID_CREDENTIALS_MESSAGE, ServiceError } from '#src/service-error.ts';
import type { SessionUse } from '#src/store/tables/single-uses.ts';

/** The caller, and the key of the call. */
export type Caller = {
  readonly accountId: string;
  readonly idempotencyKey: string | undefined;
  /** false when only the public key was sent. */
  readonly secretPresented: boolean;
  /** Account setting: shows authorizations as authorizations, not as purchases. */
  readonly tellsAuthorized?: boolean;
  /**
   * The checkout session that this call may pay with only the public key, at the version whose terms completed the
   * request.
   */
  readonly withinSession?: SessionUse;
};

/** A caller with the payment's idempotency key. */
export type KeyedCaller = Caller & { readonly idempotencyKey: string };

/** Returns the account of a caller with the secret key. @throws ServiceError INVALID_CREDENTIALS without it. */
export function accountOf(caller: Pick<Caller, 'accountId' | 'secretPresented'>): string {
  if (caller.secretPresented) return caller.accountId;
  throw new ServiceError('INVALID_CREDENTIALS', INVALID_CREDENTIALS_MESSAGE);
}

/**
 * Checks that a request names the caller's own account.
 *
 * @param accountId the request's `account_id`.
 * @throws ServiceError AUTHORIZATION_REQUIRED for another account.
 */
export function requireOwnAccount(accountId: string, caller: Pick<Caller, 'accountId'>): void {
  if (accountId === caller.accountId) return;
  const message = 'is not the account that these keys belong to';
  throw fieldRefusal('AUTHORIZATION_REQUIRED', 'account_id', 'NOT_ALLOWED', message);
}
