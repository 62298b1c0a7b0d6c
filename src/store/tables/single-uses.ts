import { isKeyTaken, isNullRefused } from '../engine/database-error.ts';

/** A checkout session in the version that a payment was prepared from. */
export type SessionUse = { readonly id: string; readonly version: number };

/** Limit on the payments of a checkout session: failed payments leave it open. */
export const MAX_SESSION_PAYMENTS = 20;

/** Error of a claim whose session or one-time token was used before, has changed or is gone. Nothing was written. */
export class AlreadyUsedError extends Error {
  override readonly name = 'AlreadyUsedError';
}

/** Awaits a claim that uses a session or a one-time token. @throws AlreadyUsedError. */
export async function usingOnce<T>(claim: Promise<T>): Promise<T> {
  try {
    return await claim;
  } catch (error) {
    throw isKeyTaken(error) || isNullRefused(error) ? new AlreadyUsedError('used', { cause: error }) : error;
  }
}
