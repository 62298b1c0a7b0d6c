import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { fieldRefusal, INVALID_CREDENTIALS_MESSAGE, ServiceError, unknownId } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { readSession, type StoredSession } from '#src/store/tables/checkout-sessions.ts';
import { findToken, type StoredToken } from '#src/store/tables/one-time-tokens.ts';
import { findStoredObjects, isUuid, type StoredObjects } from '#src/store/tables/stored-objects.ts';
import { whyClosed } from './session-terms.ts';

/** Stored objects that a request refers to. */
export type References = StoredObjects & {
  readonly session: StoredSession | undefined;
  readonly oneTimeToken: StoredToken | undefined;
};

/**
 * Finds the stored customer, checkout session and tokens that a request refers to; undefined if it refers to none.
 *
 * @param within the session within which the payer pays, already read. A stored method must belong to its customer.
 * @throws ServiceError if the account has no such object, or the object is not usable.
 */
export async function findReferences(
  database: Database,
  { customerPayer, checkout, paymentMethod }: CreatePaymentRequest,
  accountId: string,
  within?: StoredSession,
): Promise<References | undefined> {
  const sent = customerPayer?.id || undefined;
  const vaultedToken = paymentMethod?.vaultedToken || undefined;
  const token = paymentMethod?.token || undefined;
  if (!sent && !checkout?.session && !vaultedToken && !token) return undefined;
  const session = checkout?.session
    ? requireOpen(within ?? (await findSession(database, accountId, checkout.session)))
    : undefined;
  const oneTimeToken = token ? await findUsableToken(database, accountId, token, session) : undefined;
  const customerId = sent ?? session?.customerId;
  const found = await findStoredObjects(database, accountId, { customerId, vaultedToken });
  if (customerId && !found.customer) {
    if (sent) throw unknownId('CUSTOMER_NOT_FOUND', 'customer_payer.id');
    const message = 'belongs to a deleted customer';
    throw fieldRefusal('CUSTOMER_NOT_FOUND', 'checkout.session', 'NOT_ALLOWED', message);
  }
  if (within) requireOwnMethod(found, within);
  return { ...found, session, oneTimeToken };
}

/** Checks that a stored method belongs to the session's customer, since its token is not a secret. */
function requireOwnMethod({ vaultedToken }: StoredObjects, { customerId }: StoredSession): void {
  // An unknown token is refused later, with a more specific reason.
  if (!vaultedToken || (customerId && vaultedToken.customerId === customerId)) return;
  const message = 'does not belong to the checkout session’s customer';
  throw fieldRefusal('INVALID_CUSTOMER_FOR_TOKEN', 'payment_method.vaulted_token', 'NOT_ALLOWED', message);
}

async function findSession(database: Database, accountId: string, id: string): Promise<StoredSession> {
  const session = isUuid(id) ? await readSession(database, accountId, id) : undefined;
  if (!session) throw unknownId('CHECKOUT_SESSION_NOT_FOUND', 'checkout.session');
  return session;
}

function requireOpen(session: StoredSession): StoredSession {
  const message = whyClosed(session);
  if (message === undefined) return session;
  throw fieldRefusal('CHECKOUT_SESSION_NOT_FOUND', 'checkout.session', 'NOT_ALLOWED', message);
}

async function findUsableToken(
  database: Database,
  accountId: string,
  id: string,
  session: StoredSession | undefined,
): Promise<StoredToken> {
  const token = isUuid(id) ? await findToken(database, accountId, id) : undefined;
  const isOfOther = token?.sessionId !== undefined && token.sessionId !== session?.id;
  if (token && !isOfOther) return token;
  const [code, message] = isOfOther
    ? (['NOT_ALLOWED', 'belongs to another checkout session'] as const)
    : (['NOT_FOUND', 'is unknown, was used, or has expired'] as const);
  throw fieldRefusal('TOKEN_NOT_FOUND', 'payment_method.token', code, message);
}

/**
 * Rejects a request with only the public key that uses a stored object, since anyone can read that key in a web page.
 *
 * @throws ServiceError INVALID_CREDENTIALS.
 */
export function requireNothingStored({ paymentMethod, customerPayer, checkout }: CreatePaymentRequest): void {
  const { vaultedToken, token } = paymentMethod ?? {};
  if (vaultedToken || token || customerPayer?.id || checkout?.session) throw publicKeyAlone();
}

/** Returns the refusal of a payment that is not allowed with the public key alone. */
export function publicKeyAlone(): ServiceError {
  return new ServiceError('INVALID_CREDENTIALS', INVALID_CREDENTIALS_MESSAGE);
}
