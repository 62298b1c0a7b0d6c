import type { Database, Nullable } from '../engine/database.ts';
import { withoutNulls } from '../engine/rows.ts';

/** A line that settles a transaction of a payment. Amounts are minor units of `settlementCurrency`, positive to us. */
export type SettledLine = {
  readonly transactionId: string;
  readonly connectionIdentity: string;
  readonly report: string;
  readonly payoutReference: string | undefined;
  readonly gross: bigint;
  readonly fee: bigint;
  readonly tax: bigint;
  readonly net: bigint;
  readonly settlementCurrency: string;
};

/** Maximum number of a payment's lines that a page shows. */
export const MAX_LINES_SHOWN = 200;

const OF_PAYMENT = {
  name: 'settlement_of_payment',
  text: `
    SELECT transaction_id AS "transactionId", connection_identity AS "connectionIdentity", report,
      payout_reference AS "payoutReference", gross, fee, tax, net, settlement_currency AS "settlementCurrency"
    FROM settlement_match WHERE account_id = $1 AND payment_id = $2
    ORDER BY occurred_at, line_key LIMIT ${MAX_LINES_SHOWN}`,
};

/** Reads the lines that settle the transactions of a payment, up to MAX_LINES_SHOWN. */
export async function linesOfPayment(
  database: Database,
  accountId: string,
  paymentId: string,
): Promise<SettledLine[]> {
  const { rows } = await database.query<Nullable<SettledLine>>(OF_PAYMENT, [accountId, paymentId]);
  return rows.map((row) => withoutNulls<SettledLine>(row));
}
