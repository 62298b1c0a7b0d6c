import type { Database } from '../engine/database.ts';

const FIND = {
  name: 'find_own_transaction',
  text: `
    SELECT t.id AS "transactionId", p.account_id AS "accountId", t.connection_id AS "connectionId",
      p.released AS "isReleased"
    FROM payment p JOIN transaction t ON p.account_id = t.account_id AND p.id = t.payment_id
    WHERE t.payment_id = $1::uuid AND t.parent_id IS NULL ORDER BY t.created_at DESC, t.id DESC LIMIT 1`,
};

/** A payment's own transaction, in any account. */
export type OwnTransaction = {
  readonly transactionId: string;
  readonly accountId: string;
  readonly connectionId: string;
  /** true: the authorization is over, so no more news about it can arrive. */
  readonly isReleased: boolean;
};

/**
 * Finds the last attempt of a payment in any account, since a returning payer does not name one. @param paymentId a
 * UUID.
 */
export async function findOwnTransaction(
  database: Database,
  paymentId: string,
): Promise<OwnTransaction | undefined> {
  return (await database.query<OwnTransaction>(FIND, [paymentId])).rows[0];
}
