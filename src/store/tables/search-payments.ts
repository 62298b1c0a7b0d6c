import type { Database, Statement } from '../engine/database.ts';
import { NIL_UUID } from '../engine/rows.ts';
import type { PagePosition } from './list-payments.ts';

/** A search for payments. Times are strings such as 2026-01-31T09:08:07.000001Z. */
export type PaymentSearch = {
  /** The accounts whose payments are searched. */
  readonly accountIds: readonly string[];
  /** At most one of `merchantOrderId` and `cardLastFour` may be set. */
  readonly merchantOrderId: string | undefined;
  readonly cardLastFour: string | undefined;
  readonly status: string | undefined;
  readonly from: string | undefined;
  readonly before: string | undefined;
};

/** A found payment. */
export type FoundPayment = PagePosition & {
  readonly accountId: string;
  /** An encoded Payment. */
  readonly record: Uint8Array;
};

/** Maximum number of payments found at once. */
export const MAX_FOUND = 51;

const TOLD = `p.id, p.account_id AS "accountId",
      to_char(p.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "createdAt", p.record`;

// Each account's newest payments come from an index that starts with the account, and only the records of the page are
// read.
function searchStatement(name: string, filters: string): Statement {
  const text = `
    SELECT ${TOLD} FROM (
      SELECT newest.* FROM unnest($1::uuid[]) AS searched(account_id), LATERAL (
        SELECT account_id, id, created_at FROM payment
        WHERE account_id = searched.account_id AND created_at >= $2::timestamptz
          AND (created_at, id) < ($3::timestamptz, $4::uuid) ${filters}
        ORDER BY created_at DESC, id DESC LIMIT ${MAX_FOUND}
      ) newest
      ORDER BY newest.created_at DESC, newest.id DESC LIMIT ${MAX_FOUND}
    ) found JOIN payment p ON p.account_id = found.account_id AND p.id = found.id
    ORDER BY p.created_at DESC, p.id DESC`;
  return { name, text };
}

const FILTERS = {
  merchantOrderId: 'AND merchant_order_id = $5',
  // Worded like the condition of the index, so that the planner uses it.
  cardLastFour: "AND card_last_four = $5 AND card_last_four <> ''",
};
const SEARCH = {
  all: searchStatement('search_payments', ''),
  byStatus: searchStatement('search_payments_by_status', 'AND status = $5'),
  merchantOrderId: searchStatement('search_payments_by_order', FILTERS.merchantOrderId),
  cardLastFour: searchStatement('search_payments_by_last_four', FILTERS.cardLastFour),
};
// Planned for its values: an order, or the last digits of a card, may have a million payments, of which hardly any have
// a given status.
const SEARCH_AND_STATUS = {
  merchantOrderId: {
    ...searchStatement('search_payments_by_order_and_status', `${FILTERS.merchantOrderId} AND status = $6`),
    isPrepared: false,
  },
  cardLastFour: {
    ...searchStatement('search_payments_by_last_four_and_status', `${FILTERS.cardLastFour} AND status = $6`),
    isPrepared: false,
  },
};

/**
 * Searches payments, newest first, up to MAX_FOUND. @param after where the page begins; undefined for the first page.
 */
export async function searchPayments(
  database: Database,
  search: PaymentSearch,
  after: PagePosition | undefined,
): Promise<FoundPayment[]> {
  const {
    accountIds,
    merchantOrderId,
    cardLastFour,
    status,
    from = '-infinity',
    before = 'infinity',
  } = search;
  const { createdAt, id } = after ?? { createdAt: before, id: NIL_UUID };
  const by = merchantOrderId !== undefined ? 'merchantOrderId' : 'cardLastFour';
  const values = [merchantOrderId ?? cardLastFour, status].filter((value) => value !== undefined);
  const isByText = merchantOrderId !== undefined || cardLastFour !== undefined;
  const plain = status === undefined ? SEARCH.all : SEARCH.byStatus;
  const statement = isByText ? (status === undefined ? SEARCH[by] : SEARCH_AND_STATUS[by]) : plain;
  const parameters = [accountIds, from, createdAt, id, ...values];
  return (await database.query<FoundPayment>(statement, parameters)).rows;
}

// The id may be a payment's or a transaction's. All accounts are searched, since the id does not name one.
const BY_ID = {
  name: 'find_payments_by_id',
  text: `
    SELECT ${TOLD} FROM payment p
    WHERE (p.account_id, p.id) IN (SELECT account_id, payment_id FROM transaction WHERE id = $1 OR payment_id = $1)
    ORDER BY p.created_at DESC, p.id DESC LIMIT ${MAX_FOUND}`,
};

/** Finds the payment with an id, or the payment of the transaction with that id. @param id a UUID. */
export async function findPaymentsById(database: Database, id: string): Promise<FoundPayment[]> {
  return (await database.query<FoundPayment>(BY_ID, [id])).rows;
}

// A provider's reference is searched together with its connection, the first column of the index. Merchants may give a
// million payments the same reference, so only the first matches are considered. Each payment is read by its key, since
// otherwise the planner would read all payments of the period.
const BY_REFERENCE = {
  name: 'find_payments_by_reference',
  text: `
    SELECT ${TOLD} FROM (
      (SELECT account_id, payment_id FROM unnest($1::uuid[]) AS searched(id), LATERAL (
        SELECT account_id, payment_id FROM transaction
        WHERE account_id = searched.id AND merchant_reference = $3 AND merchant_reference IS NOT NULL LIMIT 1000
      ) ours LIMIT 1000)
      UNION
      (SELECT account_id, payment_id FROM unnest($2::text[]) AS searched(id), LATERAL (
        SELECT account_id, payment_id FROM transaction
        WHERE connection_id = searched.id AND reference = $3 AND reference IS NOT NULL LIMIT 1000
      ) theirs LIMIT 1000)
    ) found, LATERAL (
      SELECT * FROM payment WHERE account_id = found.account_id AND id = found.payment_id OFFSET 0
    ) p
    WHERE found.account_id = ANY ($1::uuid[]) AND ($4::text IS NULL OR p.status = $4)
      AND p.created_at >= $5::timestamptz AND p.created_at < $6::timestamptz
    ORDER BY p.created_at DESC, p.id DESC LIMIT ${MAX_FOUND}`,
};

/** Finds payments by a reference of one of their transactions: the merchant's, or the provider's at a connection. */
export async function findPaymentsByReference(
  database: Database,
  search: Pick<PaymentSearch, 'accountIds' | 'status' | 'from' | 'before'>,
  connectionIds: readonly string[],
  reference: string,
): Promise<FoundPayment[]> {
  const { accountIds, status = null, from = '-infinity', before = 'infinity' } = search;
  const values = [accountIds, connectionIds, reference, status, from, before];
  return (await database.query<FoundPayment>(BY_REFERENCE, values)).rows;
}
