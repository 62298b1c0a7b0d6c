import type { Database } from '../engine/database.ts';
import { findInAccounts } from './accounts.ts';

const FIND = {
  name: 'find_own_transaction',
  text: `
    SELECT t.id AS "transactionId", p.account_id AS "accountId", t.connection_id AS "connectionId",
      p.released AS "isReleased"
    FROM payment p JOIN transaction t ON t.account_id = $1 AND t.payment_id = $2
    WHERE p.account_id = $1 AND p.id = $2 AND t.parent_id IS NULL ORDER BY t.created_at DESC, t.id DESC LIMIT 1`,
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
 * Finds the last attempt of a payment in any account, since a returning payer does not name an attempt. @param
 * paymentId a UUID.
 */
export async function findOwnTransaction(
  database: Database,
  paymentId: string,
): Promise<OwnTransaction | undefined> {
  return findInAccounts(
    database,
    paymentId,
    async (accountId) => (await database.query<OwnTransaction>(FIND, [accountId, paymentId])).rows[0],
  );
}
