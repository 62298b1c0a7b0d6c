import { isKeyTaken, isNullRefused } from '../engine/database-error.ts';

/** A checkout session in the version from which a payment was prepared. */
export type SessionUse = { readonly id: string; readonly version: number };

/** Greatest number of payments of a checkout session: those that come to nothing leave it open. */
export const MAX_SESSION_PAYMENTS = 20;

/** Error of a claim whose session or one-time token was used before, has changed or is gone; nothing was written. */
export class AlreadyUsedError extends Error {
  override readonly name = 'AlreadyUsedError';
}

/**
 * Returns CTEs that use a checkout session for the payment that the CTE `claimed` inserts. If the session has changed,
 * has expired or has had all of its payments, it is not found, and its use lacks a key, which the table refuses; if it
 * is used, its key exists already. Either way, the whole statement is rolled back.
 *
 * @param first number of the first of two parameters: the session's id and version. $2 is the account.
 */
export function sessionUseCtes(first: number): string {
  return `, session AS (
    UPDATE checkout_session s SET payment_id = claimed.id, payments = s.payments + 1 FROM claimed
    WHERE s.account_id = $2::uuid AND s.id = $${first}::uuid AND s.version = $${first + 1} AND s.expires_at > now()
      AND s.payments < ${MAX_SESSION_PAYMENTS}
    RETURNING s.id
  ), session_use AS (
    INSERT INTO single_use (account_id, object_id, payment_id)
    SELECT $2::uuid, (SELECT id FROM session), id FROM claimed
  )`;
}

/** Returns CTEs that use a one-time token likewise, and delete its card. @param number of the token's parameter. */
export function tokenUseCtes(number: number): string {
  return `, token AS (
    UPDATE one_time_token t SET sealed = NULL FROM claimed
    WHERE t.account_id = $2::uuid AND t.id = $${number}::uuid AND t.sealed IS NOT NULL AND t.expires_at > now()
    RETURNING t.id
  ), token_use AS (
    INSERT INTO single_use (account_id, object_id, payment_id)
    SELECT $2::uuid, (SELECT id FROM token), id FROM claimed
  )`;
}

/** The CTE that changed a payment, and the parameters of the account, the payment and its session (null: none). */
type ChangedPayment = {
  readonly changed: string;
  readonly account: string;
  readonly payment: string;
  readonly session: string;
};

/** Returns a CTE that reopens a checkout session after its payment came to nothing. */
export function reopenSessionCte(names: ChangedPayment): string {
  const { changed, account, payment, session } = names;
  return `reopened AS (
    DELETE FROM single_use u USING ${changed}
    WHERE u.account_id = ${account} AND u.object_id = ${session}::uuid AND u.payment_id = ${payment}
  )`;
}

/**
 * Returns CTEs that use a checkout session again for a payment that came to nothing and was paid after all. If another
 * payment has used it meanwhile, the session goes on showing that one, which no longer reopens it. A session without
 * terms is never used. The session is locked before its use is inserted, as a claim does it: the other order would be a
 * deadlock with a claim at the same moment.
 */
export function retakeSessionCtes(names: ChangedPayment): string {
  const { changed, account, payment, session } = names;
  return `retaken AS (
    INSERT INTO single_use (account_id, object_id, payment_id)
    SELECT s.account_id, s.id, ${payment} FROM ${changed}, checkout_session s
    WHERE s.account_id = ${account} AND s.id = ${session}::uuid AND s.expires_at IS NOT NULL
    FOR NO KEY UPDATE OF s
    ON CONFLICT (account_id, object_id) DO UPDATE SET payment_id = excluded.payment_id
    -- A row that was updated has an xmax. The statement's snapshot would not tell: it lacks the use by a payment that
    -- was claimed while the session's lock was waited for.
    RETURNING object_id, xmax = 0 AS is_new
  ), retaken_session AS (
    UPDATE checkout_session s SET payment_id = ${payment} FROM retaken
    WHERE s.account_id = ${account} AND s.id = retaken.object_id AND retaken.is_new
  )`;
}

/** Awaits a claim that uses a session or a one-time token. @throws AlreadyUsedError. */
export async function usingOnce<T>(claim: Promise<T>): Promise<T> {
  try {
    return await claim;
  } catch (error) {
    throw isKeyTaken(error) || isNullRefused(error) ? new AlreadyUsedError('used', { cause: error }) : error;
  }
}
