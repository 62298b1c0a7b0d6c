import { fieldRefusal, INVALID_CREDENTIALS_MESSAGE, ServiceError } from '#src/service-error.ts';
import type { SessionUse } from '#src/store/tables/single-uses.ts';

/** The caller, and the key of the call. */
export type Caller = {
  readonly accountId: string;
  readonly idempotencyKey: string | undefined;
  /** false when only the public key was sent. */
  readonly secretPresented: boolean;
  /** Setting of the account: authorizations are shown as such, not as purchases. */
  readonly tellsAuthorized?: boolean;
  /**
   * Checkout session that the public key alone may pay, since the request was completed from its terms in this
   * version.
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
 * Refuses another account: objects and payments belong to accounts, and a key is valid only for its own.
 *
 * @param accountId the request's `account_id`.
 * @throws ServiceError AUTHORIZATION_REQUIRED.
 */
export function requireOwnAccount(accountId: string, caller: Pick<Caller, 'accountId'>): void {
  if (accountId === caller.accountId) return;
  const message = 'is not the account of these keys';
  throw fieldRefusal('AUTHORIZATION_REQUIRED', 'account_id', 'NOT_ALLOWED', message);
}
