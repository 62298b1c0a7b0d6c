import { type Due, IS_OPEN_ATTEMPT } from '../engine/checks.ts';
import type { Database, Statement } from '../engine/database.ts';
import { isUnavailable } from '../engine/database-error.ts';
import { NIL_UUID, takeByAccount } from '../engine/rows.ts';
import { IN_ACCOUNTS, searchAccounts } from '../engine/search-accounts.ts';
import { findInAccounts } from './accounts.ts';
import type { PagePosition } from './list-payments.ts';

/** A search for payments. Times are strings such as 2026-01-31T09:08:07.000001Z. */
export type PaymentSearch = {
  /** The accounts whose payments are searched. */
  readonly accountIds: readonly string[];
  /** At most one of `merchantOrderId` and `cardLastFour` may be set. */
  readonly merchantOrderId: string | undefined;
  readonly cardLastFour: string | undefined;
  /** payment_method.type. */
  readonly methodType: string | undefined;
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

const CREATED_AT = `to_char(p.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "createdAt"`;

/** A found payment without its record. */
type Position = Omit<FoundPayment, 'record'>;

/** The condition of each filter. Those with a constant are worded like the condition of an index, so that the planner uses it. */
const FILTERS = {
  merchantOrderId: { name: 'order', where: (value: string) => `p.merchant_order_id = ${value}` },
  cardLastFour: {
    name: 'last_four',
    where: (value: string) => `p.card_last_four = ${value} AND p.card_last_four <> ''`,
  },
  isCard: { name: 'card', where: (value: string) => `p.method_type = ${value}` },
  methodType: {
    name: 'method',
    where: (value: string) => `p.method_type = ${value} AND p.method_type <> 'CARD'`,
  },
  status: { name: 'status', where: (value: string) => `p.status = ${value}` },
} as const;

type Filter = keyof typeof FILTERS;

// An account's newest payments come from an index that starts with the account.
function searchStatement(filters: readonly Filter[]): Statement {
  const names = filters.map((filter) => FILTERS[filter].name);
  const conditions = filters.map((filter, i) => `AND ${FILTERS[filter].where(`$${i + 5}`)}`).join(' ');
  const text = `
    SELECT p.id, p.account_id AS "accountId", ${CREATED_AT} FROM payment p
    WHERE p.account_id = $1 AND p.created_at >= $2::timestamptz
      AND (p.created_at, p.id) < ($3::timestamptz, $4::uuid) ${conditions}
    ORDER BY p.created_at DESC, p.id DESC LIMIT ${MAX_FOUND}`;
  const name = ['search_payments', names.join('_and_')].filter(Boolean).join('_by_');
  // Several filters are planned for their values: an order, the last digits of a card, or a method may have a million
  // payments, of which hardly any have a given status.
  return { name, text, ...(filters.length > 1 && { isPrepared: false }) };
}

const BY_TEXT = [[], ['merchantOrderId'], ['cardLastFour']] as const;
const BY_METHOD = [[], ['isCard'], ['methodType']] as const;
const BY_STATUS = [[], ['status']] as const;

/** The statements, by the names of their filters. */
const SEARCHES: Readonly<Record<string, Statement>> = Object.fromEntries(
  BY_TEXT.flatMap((text) =>
    BY_METHOD.flatMap((method) =>
      BY_STATUS.map((status) => {
        const filters = [...text, ...method, ...status];
        return [filters.join(), searchStatement(filters)];
      }),
    ),
  ),
);

/**
 * Searches payments account by account. Reads only the records of the page. Leaves out the accounts of nodes that are
 * unavailable, unless there are no others.
 *
 * @param after where the page begins; undefined for the first page.
 * @returns the payments, newest first, up to MAX_FOUND.
 */
export async function searchPayments(
  database: Database,
  search: PaymentSearch,
  after: PagePosition | undefined,
): Promise<FoundPayment[]> {
  const { accountIds, merchantOrderId, cardLastFour, methodType, status } = search;
  const { from = '-infinity', before = 'infinity' } = search;
  const { createdAt, id } = after ?? { createdAt: before, id: NIL_UUID };
  const byMethod = methodType === 'CARD' ? { isCard: methodType } : { methodType };
  const filters = Object.entries({ merchantOrderId, cardLastFour, ...byMethod, status }).filter(
    (filter): filter is [Filter, string] => filter[1] !== undefined,
  );
  const values = filters.map(([, value]) => value);
  const statement = SEARCHES[filters.map(([filter]) => filter).join()];
  if (!statement) throw new Error('an order and the last digits of a card cannot be searched together');
  const found: Position[] = [];
  const failed: unknown[] = [];
  for (const accountId of accountIds) {
    const parameters = [accountId, from, createdAt, id, ...values];
    try {
      found.push(...(await database.query<Position>(statement, parameters)).rows);
    } catch (error) {
      if (!database.isDistributed || !isUnavailable(error)) throw error;
      failed.push(error);
    }
  }
  if (failed.length > 0 && failed.length === accountIds.length) throw failed[0];
  return readFound(database, newestOf(found));
}

/** Returns the newest positions, newest first, up to MAX_FOUND. */
function newestOf<T extends PagePosition>(positions: readonly T[]): T[] {
  const key = ({ createdAt, id }: PagePosition) => `${createdAt} ${id}`;
  return positions.toSorted((a, b) => (key(a) < key(b) ? 1 : -1)).slice(0, MAX_FOUND);
}

// By key: otherwise the planner would read all payments of the period.
const READ = {
  name: 'read_found_payments',
  text: `
    SELECT p.id, p.account_id AS "accountId", ${CREATED_AT}, p.record
    FROM (SELECT * FROM payment WHERE account_id = $1 AND id = ANY ($2::uuid[]) OFFSET 0) p
    WHERE ($3::text IS NULL OR p.status = $3) AND ($6::text IS NULL OR p.method_type = $6)
      AND p.created_at >= $4::timestamptz AND p.created_at < $5::timestamptz`,
};

/** Reads payments, newest first, up to MAX_FOUND, with one statement per account. */
async function readFound(
  database: Database,
  found: readonly Due[],
  search: Pick<PaymentSearch, 'methodType' | 'status' | 'from' | 'before'> = {
    methodType: undefined,
    status: undefined,
    from: undefined,
    before: undefined,
  },
): Promise<FoundPayment[]> {
  const { methodType = null, status = null, from = '-infinity', before = 'infinity' } = search;
  const payments = await takeByAccount(found, async (accountId, own) => {
    const values = [accountId, own.map(({ id }) => id), status, from, before, methodType];
    return (await database.query<FoundPayment>(READ, values)).rows;
  });
  return newestOf(payments);
}

const BY_ID = {
  name: 'find_payment_of_id',
  text: `
    SELECT t.account_id AS "accountId", t.payment_id AS id FROM transaction t
    WHERE t.account_id = $1 AND (t.id = $2 OR t.payment_id = $2) LIMIT 1`,
};

/** Finds the payment with an id, or the payment of the transaction with that id. @param id a UUID. */
export async function findPaymentsById(database: Database, id: string): Promise<FoundPayment[]> {
  const found = await findInAccounts(
    database,
    id,
    async (accountId) => (await database.query<Due>(BY_ID, [accountId, id])).rows[0],
  );
  return found ? readFound(database, [found]) : [];
}

// A provider's id is searched together with its connection, the first column of the index. Merchants may give a
// million payments the same reference, so only the first matches are considered.
const BY_REFERENCE = {
  merchant: {
    name: 'find_payments_by_merchant_reference',
    text: `
      SELECT account_id AS "accountId", payment_id AS id FROM transaction
      WHERE ${IN_ACCOUNTS} account_id = ANY ($1::uuid[]) AND merchant_reference = $2 AND merchant_reference IS NOT NULL LIMIT 1000`,
  },
  provider: {
    name: 'find_payments_by_provider_payment',
    text: `
      SELECT account_id AS "accountId", payment_id AS id FROM transaction
      WHERE ${IN_ACCOUNTS} connection_id = ANY ($1::text[]) AND provider_payment_id = $2
        AND provider_payment_id IS NOT NULL LIMIT 1000`,
  },
};

/**
 * Finds payments by the name of one of their transactions: the merchant's reference, or the provider's id at a
 * connection.
 */
export async function findPaymentsByReference(
  database: Database,
  search: Pick<PaymentSearch, 'accountIds' | 'methodType' | 'status' | 'from' | 'before'>,
  connectionIds: readonly string[],
  reference: string,
): Promise<FoundPayment[]> {
  const { accountIds } = search;
  const ours = await searchAccounts<Due>(database, BY_REFERENCE.merchant, [accountIds, reference]);
  const theirs = await searchAccounts<Due>(database, BY_REFERENCE.provider, [connectionIds, reference]);
  const found = new Map<string, Due>();
  for (const one of [...ours, ...theirs]) {
    if (accountIds.includes(one.accountId)) found.set(`${one.accountId} ${one.id}`, one);
  }
  return readFound(database, [...found.values()], search);
}

/** Maximum number of unknown outcomes that a search across accounts looks at. */
const MAX_UNKNOWN = 1_000;

const OF_UNKNOWN_OUTCOME = {
  name: 'find_payments_of_unknown_outcome',
  text: `
    SELECT account_id AS "accountId", payment_id AS id FROM transaction
    WHERE ${IN_ACCOUNTS} ${IS_OPEN_ATTEMPT} ORDER BY type, awaits_payer, created_at LIMIT ${MAX_UNKNOWN}`,
};

/**
 * Finds the payments of all accounts of which an attempt has an unknown outcome.
 *
 * @returns the newest of them, and the number of outcomes that were looked at if there may be more; otherwise 0.
 */
export async function findPaymentsOfUnknownOutcome(
  database: Database,
  search: Pick<PaymentSearch, 'methodType' | 'status' | 'from' | 'before'>,
): Promise<{ readonly payments: readonly FoundPayment[]; readonly lookedAt: number }> {
  const found = await searchAccounts<Due>(database, OF_UNKNOWN_OUTCOME, []);
  const payments = await readFound(database, found, search);
  return { payments, lookedAt: found.length >= MAX_UNKNOWN ? MAX_UNKNOWN : 0 };
}
