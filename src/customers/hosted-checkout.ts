import type { PaymentDeps } from '#src/payments/create/create-payment.ts';
import { hasTerms, whyClosed } from '#src/payments/create/session-terms.ts';
import { findSessionOwner, type StoredSession } from '#src/store/tables/checkout-sessions.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { requireSession } from './checkout-sessions.ts';
import type { Offer } from './offered-methods.ts';
import { listOffers } from './session-methods.ts';

/** A session as shown on the checkout page. */
export type HostedCheckout = {
  readonly session: StoredSession;
  /** Public key of the account, for the page's calls. */
  readonly publicKey: string;
  /** The merchant's name as shown to payers; '' if there is none. */
  readonly displayName: string;
  readonly offers: readonly Offer[];
};

/**
 * Reads a session for the checkout page. Anyone who knows its id counts as its payer, as in calls from browsers.
 *
 * @param ofSandbox also reads sessions of the sandbox's accounts.
 * @returns undefined if the session is unknown or has no terms, so no page can show it.
 */
export async function readHostedCheckout(
  deps: PaymentDeps,
  sessionId: string,
  ofSandbox: boolean,
): Promise<HostedCheckout | undefined> {
  const owner = isUuid(sessionId) ? await findSessionOwner(deps.database, sessionId, ofSandbox) : undefined;
  if (!owner) return undefined;
  const session = await requireSession(deps.database, owner.accountId, sessionId);
  if (!hasTerms(session)) return undefined;
  const isOpen = whyClosed(session) === undefined;
  return {
    session,
    publicKey: owner.publicKey,
    displayName: owner.displayName,
    offers: isOpen ? await listOffers(deps, session) : [],
  };
}
