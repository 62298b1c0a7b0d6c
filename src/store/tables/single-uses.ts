import { isKeyTaken, isNullRefused } from '../engine/database-error.ts';

/** A checkout session, at the version that a payment was prepared from. */
export type SessionUse = { readonly id: string; readonly version: number };

/** Maximum number of payments of a checkout session, since failed payments leave it open. */
export const MAX_SESSION_PAYMENTS = 20;

/**
 * Thrown if a claim's session or one-time token was already used, has changed or no longer exists. Nothing was written.
 */
export class AlreadyUsedError extends Error {
  override readonly name = 'AlreadyUsedError';
}

/** Awaits a claim that uses a session or a one-time token. @throws AlreadyUsedError. */
export async function usingOnce<T>(claim: Promise<T>): Promise<T> {
  try {
    return await claim;
  } catch (error) {
    throw isKeyTaken(error) || isNullRefused(error)
      ? new AlreadyUsedError('the session or token was already used', { cause: error })
      : error;
  }
}
