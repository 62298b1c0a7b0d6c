import type { Database } from '../engine/database.ts';

const GET_RECORD = {
  name: 'get_payment_record',
  text: 'SELECT record FROM payment WHERE account_id = $1 AND id = $2',
};

/** Reads the current record of an account's payment, as an encoded Payment. @param paymentId a UUID. */
export async function getPaymentRecord(
  database: Database,
  accountId: string,
  paymentId: string,
): Promise<Uint8Array | undefined> {
  const { rows } = await database.query<{ record: Buffer }>(GET_RECORD, [accountId, paymentId]);
  return rows[0]?.record;
}

/** The sum of a transaction's lines in one report of the provider and one currency. */
export type SettledSum = {
  readonly transactionId: string;
  readonly report: string;
  readonly currency: string;
  /** Minor units, as decimal text. `fee` includes taxes. */
  readonly fee: string;
  readonly net: string;
  /** The payout of the earliest line that has one. */
  readonly payout: string | null;
};

const GET_PAYMENT = {
  name: 'get_payment',
  text: `
    SELECT record, (
      SELECT json_agg(s) FROM (
        SELECT transaction_id AS "transactionId", report, settlement_currency AS currency, sum(fee + tax)::text AS fee,
          sum(net)::text AS net, (array_agg(payout_reference ORDER BY occurred_at, line_key)
            FILTER (WHERE payout_reference IS NOT NULL))[1] AS payout
        FROM settlement_match WHERE account_id = $1 AND payment_id = $2
        GROUP BY transaction_id, report, settlement_currency) s) AS settled
    FROM payment WHERE account_id = $1 AND id = $2`,
};

/** Reads the current record of an account's payment, with what settlement reports say. @param paymentId a UUID. */
export async function getSettledRecord(
  database: Database,
  accountId: string,
  paymentId: string,
): Promise<{ readonly record: Uint8Array; readonly settled: readonly SettledSum[] } | undefined> {
  const { rows } = await database.query<{ record: Buffer; settled: SettledSum[] | null }>(GET_PAYMENT, [
    ...[accountId, paymentId],
  ]);
  return rows[0] && { record: rows[0].record, settled: rows[0].settled ?? [] };
}
