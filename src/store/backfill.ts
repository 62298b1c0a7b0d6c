import type { Database } from './database.ts';
import { NIL_UUID } from './rows.ts';

/** Key of a payment; payments are visited in the order of their keys. */
export type PaymentName = { readonly accountId: string; readonly id: string };

/** Key before those of all payments. */
export const BEFORE_ALL_PAYMENTS: PaymentName = {
  accountId: NIL_UUID,
  id: NIL_UUID,
};

// Rows that another replica or a payment in progress has locked are skipped: the next pass finds them.
const FIND_UNFILLED = `
  SELECT account_id AS "accountId", id, record FROM payment
  WHERE card_last_four IS NULL AND (account_id, id) > ($1::uuid, $2::uuid)
  ORDER BY account_id, id LIMIT $3::integer FOR NO KEY UPDATE SKIP LOCKED`;
const FILL_IN = `
  UPDATE payment p SET merchant_order_id = filled.merchant_order_id, card_last_four = filled.card_last_four
  FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[])
    AS filled(account_id, id, merchant_order_id, card_last_four)
  WHERE p.account_id = filled.account_id AND p.id = filled.id`;

/** Columns by which payments are found. */
export type FoundBy = { readonly merchantOrderId: string; readonly cardLastFour: string };

/**
 * Fills in the columns by which payments are found, in payments that an earlier release inserted.
 *
 * @param foundBy reads the columns from an encoded Payment.
 * @param after the payment after which to begin.
 * @returns the last payment filled in; undefined if there was none.
 */
export function fillInPayments(
  database: Database,
  foundBy: (record: Uint8Array) => FoundBy,
  after: PaymentName,
  limit: number,
): Promise<PaymentName | undefined> {
  return database.transaction(async (run) => {
    const values = [after.accountId, after.id, limit];
    const { rows } = await run<PaymentName & { record: Buffer }>(FIND_UNFILLED, values);
    const last = rows.at(-1);
    if (!last) return undefined;
    const filled = rows.map(({ record }) => foundBy(record));
    await run(FILL_IN, [
      rows.map(({ accountId }) => accountId),
      rows.map(({ id }) => id),
      filled.map(({ merchantOrderId }) => merchantOrderId),
      filled.map(({ cardLastFour }) => cardLastFour),
    ]);
    return last;
  });
}
