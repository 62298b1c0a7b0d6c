import type { Database, Statement } from '../engine/database.ts';
import { NIL_UUID } from '../engine/rows.ts';

/** Filter for an account's payments. Times are strings such as 2026-01-31T09:08:07.000001Z. */
export type PaymentFilter = {
  readonly accountId: string;
  readonly merchantOrderId: string | undefined;
  readonly status: string | undefined;
  /** Start of the period, inclusive. */
  readonly from: string | undefined;
  /** End of the period, exclusive. */
  readonly before: string | undefined;
};

/** The payment after which a page begins. */
export type PagePosition = { readonly createdAt: string; readonly id: string };

/** A payment on a page. */
export type ListedPayment = PagePosition & {
  /** An encoded Payment. */
  readonly record: Uint8Array;
};

/** Maximum number of payments on a page. */
export const MAX_LISTED = 101;

// One statement per combination of filters, so that each is planned with its own index. The inner limit is a constant,
// since the planner assumes that an unknown limit is a tenth of the table. Pages are ordered by values of a payment
// that never change, so no payment is missed or listed twice, even if others are inserted in the meantime.
function listStatement(name: string, filters: string) {
  const text = `
    SELECT * FROM (
      SELECT id, to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "createdAt", record
      FROM payment
      WHERE account_id = $1 AND created_at >= $2::timestamptz
        AND (created_at, id) < ($3::timestamptz, $4::uuid) ${filters}
      ORDER BY created_at DESC, id DESC LIMIT ${MAX_LISTED}
    ) most LIMIT $5::integer`;
  return { name, text };
}

const LIST = listStatement('list_payments', '');
const LIST_BY_ORDER = listStatement('list_payments_by_order', 'AND merchant_order_id = $6');
const LIST_BY_STATUS = listStatement('list_payments_by_status', 'AND status = $6');
// Planned for its values: an order may have a million payments and a status hardly any, or vice versa.
const LIST_BY_BOTH: Statement = {
  ...listStatement('list_payments_by_order_and_status', 'AND merchant_order_id = $6 AND status = $7'),
  isPrepared: false,
};

/**
 * Lists payments, newest first.
 *
 * @param after the payment after which the page begins; undefined for the first page.
 */
export async function listPayments(
  database: Database,
  filter: PaymentFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedPayment[]> {
  const { accountId, merchantOrderId, status, from = '-infinity', before = 'infinity' } = filter;
  const { createdAt, id } = after ?? { createdAt: before, id: NIL_UUID };
  const filters = [merchantOrderId, status].filter((value) => value !== undefined);
  const byOne = merchantOrderId === undefined ? LIST_BY_STATUS : LIST_BY_ORDER;
  const statement = filters.length === 0 ? LIST : filters.length === 1 ? byOne : LIST_BY_BOTH;
  const values = [accountId, from, createdAt, id, limit, ...filters];
  return (await database.query<ListedPayment>(statement, values)).rows;
}
