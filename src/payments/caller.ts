import { fieldRefusal, INVALID_CREDENTIALS_MESSAGE, ServiceError } from '#src/service-error.ts';
import type { PublicKeyMay } from '#src/store/tables/accounts.ts';
import type { StoredSession } from '#src/store/tables/checkout-sessions.ts';

/** The caller, and the key of the call. */
export type Caller = {
  readonly accountId: string;
  readonly idempotencyKey: string | undefined;
  /** false when only the public key was sent. */
  readonly secretPresented: boolean;
  /** The caller's IP address, if the call came over the network. */
  readonly address?: string;
  /** Account setting: what the public key may do alone. */
  readonly publicKeyMay?: PublicKeyMay;
  /** Account setting: shows authorizations as authorizations, not as purchases. */
  readonly tellsAuthorized?: boolean;
  /** The checkout session that this call may pay with only the public key, as read when its terms completed the request. */
  readonly withinSession?: StoredSession;
};

/** A caller with the payment's idempotency key. */
export type KeyedCaller = Caller & { readonly idempotencyKey: string };

/** Returns the account of a caller with the secret key. @throws ServiceError INVALID_CREDENTIALS without it. */
export function accountOf(caller: Pick<Caller, 'accountId' | 'secretPresented'>): string {
  if (caller.secretPresented) return caller.accountId;
  throw new ServiceError('INVALID_CREDENTIALS', INVALID_CREDENTIALS_MESSAGE);
}

/**
 * Checks that a caller with only the public key may make a payment: in a session, on the merchant's terms, or anywhere if
 * the account allows it.
 *
 * @throws ServiceError AUTHORIZATION_REQUIRED.
 */
export function requireMayPay({
  secretPresented,
  withinSession,
  publicKeyMay = 'SESSIONS',
}: Pick<Caller, 'secretPresented' | 'withinSession' | 'publicKeyMay'>): void {
  if (secretPresented || withinSession || publicKeyMay === 'PAYMENTS') return;
  const message = `the account’s setting public_key_may is ${publicKeyMay}, so the public key alone can make no payment outside a checkout session; nothing was sent; send private-secret-key, or pay in a session`;
  throw new ServiceError('AUTHORIZATION_REQUIRED', message);
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
