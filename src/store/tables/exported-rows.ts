import type { Database, Nullable } from '../engine/database.ts';
import { NIL_UUID, onlyRow, withoutNulls } from '../engine/rows.ts';

/** Rows of one account from a period, whose times are strings such as 2026-01-31T09:08:07.000001Z. */
export type RowsOf = {
  readonly accountId: string;
  /** The first moment. */
  readonly from: string;
  /** The end, which is excluded. */
  readonly until: string;
};

/** The columns that every exported row has of its payment. */
export type ExportedPayment = {
  readonly accountId: string;
  readonly paymentId: string;
  readonly merchantOrderId: string;
  readonly methodType: string;
  readonly cardBrand: string;
  readonly cardLastFour: string;
  readonly country: string;
  readonly customerId: string | undefined;
};

/** A movement of money: a transaction when it first succeeded, or a correction. */
export type ExportedMovement = ExportedPayment & {
  readonly at: string;
  /** The transaction's or the correction's. */
  readonly id: string;
  readonly transactionId: string;
  readonly parentId: string | undefined;
  /** The kind of a correction, and its signed amount; undefined for the transaction itself. */
  readonly kind: string | undefined;
  readonly movedMinorUnits: bigint | undefined;
  readonly type: string;
  readonly capture: boolean;
  /** The transaction's amount now. */
  readonly minorUnits: bigint;
  /** The signed amount of its first correction, if that is UNDONE. */
  readonly undoneMinorUnits: bigint | undefined;
  readonly currency: string;
  readonly connectionId: string;
  readonly providerPaymentId: string | undefined;
  readonly merchantReference: string | undefined;
};

/** Number of rows that a statement reads. */
export const ROWS_A_PAGE = 1_000;

const TEXT = `'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`;
/** Returns SQL that writes a time as RowsOf has it. */
export const textOf = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', ${TEXT})`;

/** The columns of ExportedPayment, of a payment `p`. */
export const OF_PAYMENT = `p.account_id AS "accountId", p.id AS "paymentId", p.merchant_order_id AS "merchantOrderId",
      p.method_type AS "methodType", p.card_brand AS "cardBrand", p.card_last_four AS "cardLastFour", p.country,
      p.customer_id AS "customerId"`;

const OF_TRANSACTION = `t.id AS "transactionId", t.payment_id AS "paymentId", t.parent_id AS "parentId", t.type, t.capture,
      t.amount_minor_units AS "minorUnits", t.connection_id AS "connectionId",
      t.provider_payment_id AS "providerPaymentId", t.merchant_reference AS "merchantReference"`;

// A page is taken from the two indexes by time before payments are read, so that each statement reads the same number of
// rows. Transactions that move no money are left to the caller.
const MOVEMENTS = {
  name: 'export_movements',
  text: `
    SELECT ${textOf('m.at')} AS at, m.id, m."transactionId", m."parentId", m.kind, m."movedMinorUnits", m.type, m.capture,
      m."minorUnits", u.amount_minor_units AS "undoneMinorUnits", m.currency, m."connectionId", m."providerPaymentId",
      m."merchantReference", ${OF_PAYMENT}
    FROM (
      SELECT * FROM (
        (SELECT t.succeeded_at AS at, t.id, NULL AS kind, NULL::bigint AS "movedMinorUnits", t.currency, ${OF_TRANSACTION}
         FROM transaction t
         WHERE t.account_id = $1 AND (t.succeeded_at, t.id) > ($2::timestamptz, $3::uuid)
           AND t.succeeded_at < $4::timestamptz AND t.succeeded_at IS NOT NULL
         ORDER BY t.succeeded_at, t.id LIMIT ${ROWS_A_PAGE})
        UNION ALL
        (SELECT c.occurred_at, c.id, c.kind, c.amount_minor_units, c.currency, ${OF_TRANSACTION}
         FROM movement_correction c JOIN transaction t ON t.account_id = $1 AND t.id = c.transaction_id
         WHERE c.account_id = $1 AND (c.occurred_at, c.id) > ($2::timestamptz, $3::uuid)
           AND c.occurred_at < $4::timestamptz
         ORDER BY c.occurred_at, c.id LIMIT ${ROWS_A_PAGE})
      ) both_kinds ORDER BY at, id LIMIT ${ROWS_A_PAGE}
    ) m
    JOIN payment p ON p.account_id = $1 AND p.id = m."paymentId"
    LEFT JOIN movement_correction u ON u.account_id = $1 AND u.transaction_id = m.id AND u.number = 1 AND u.kind = 'UNDONE'
    ORDER BY m.at, m.id`,
};

/** Reads an account's succeeded transactions and corrections, oldest first, up to ROWS_A_PAGE. @param after the last read. */
export async function readMovements(
  database: Database,
  { accountId, from, until }: RowsOf,
  after: Pick<ExportedMovement, 'at' | 'id'> | undefined,
): Promise<ExportedMovement[]> {
  const values = [accountId, after?.at ?? from, after?.id ?? NIL_UUID, until];
  return (await database.query<Nullable<ExportedMovement>>(MOVEMENTS, values)).rows.map(withoutNulls);
}

/** A payment. */
export type ExportedPaymentRow = ExportedPayment & {
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly status: string;
  readonly minorUnits: bigint;
  readonly currency: string;
};

const PAYMENTS = {
  name: 'export_payments',
  text: `
    SELECT ${OF_PAYMENT}, p.status, p.amount_minor_units AS "minorUnits", p.currency,
      ${textOf('p.created_at')} AS "createdAt", ${textOf('p.updated_at')} AS "updatedAt"
    FROM payment p
    WHERE p.account_id = $1 AND (p.created_at, p.id) > ($2::timestamptz, $3::uuid) AND p.created_at < $4::timestamptz
    ORDER BY p.created_at, p.id LIMIT ${ROWS_A_PAGE}`,
};

/** Reads the payments that an account created, oldest first, up to ROWS_A_PAGE. */
export async function readPayments(
  database: Database,
  { accountId, from, until }: RowsOf,
  after: Pick<ExportedPaymentRow, 'createdAt' | 'paymentId'> | undefined,
): Promise<ExportedPaymentRow[]> {
  const values = [accountId, after?.createdAt ?? from, after?.paymentId ?? NIL_UUID, until];
  return (await database.query<Nullable<ExportedPaymentRow>>(PAYMENTS, values)).rows.map(withoutNulls);
}

/** A transaction, without the columns of its payment. */
export type ExportedTransaction = Omit<
  ExportedMovement,
  'at' | 'kind' | 'movedMinorUnits' | 'undoneMinorUnits' | Exclude<keyof ExportedPayment, 'paymentId'>
> & {
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly succeededAt: string | undefined;
  readonly status: string;
  /** The sum of its corrections. */
  readonly correctedMinorUnits: bigint | undefined;
};

const TRANSACTIONS = {
  name: 'export_transactions',
  text: `
    SELECT t.id, ${OF_TRANSACTION}, t.status, t.currency, ${textOf('t.created_at')} AS "createdAt",
      ${textOf('t.updated_at')} AS "updatedAt", ${textOf('t.succeeded_at')} AS "succeededAt",
      (SELECT sum(c.amount_minor_units)::bigint FROM movement_correction c
       WHERE c.account_id = $1 AND c.transaction_id = t.id) AS "correctedMinorUnits"
    FROM transaction t WHERE t.account_id = $1 AND t.payment_id = ANY ($2::uuid[]) ORDER BY t.id`,
};

/** Reads the transactions of payments, of which each has at most 200. */
export async function readTransactions(
  database: Database,
  accountId: string,
  paymentIds: readonly string[],
): Promise<ExportedTransaction[]> {
  const { rows } = await database.query<Nullable<ExportedTransaction>>(TRANSACTIONS, [accountId, paymentIds]);
  return rows.map(withoutNulls);
}

/** The sum of a payment's succeeded transactions of one kind, and of their corrections. */
export type PaymentSum = {
  readonly paymentId: string;
  readonly type: string;
  readonly capture: boolean;
  readonly minorUnits: bigint;
  readonly correctedMinorUnits: bigint | undefined;
};

const SUMS = {
  name: 'export_payment_sums',
  text: `
    SELECT t.payment_id AS "paymentId", t.type, t.capture, sum(t.amount_minor_units)::bigint AS "minorUnits",
      sum((SELECT sum(c.amount_minor_units) FROM movement_correction c
       WHERE c.account_id = $1 AND c.transaction_id = t.id))::bigint AS "correctedMinorUnits"
    FROM transaction t
    WHERE t.account_id = $1 AND t.payment_id = ANY ($2::uuid[]) AND (t.status = 'SUCCEEDED' OR t.type = 'CHARGEBACK')
    GROUP BY t.payment_id, t.type, t.capture`,
};

/** Sums the succeeded transactions and the disputes of payments, by kind. */
export async function sumTransactions(
  database: Database,
  accountId: string,
  paymentIds: readonly string[],
): Promise<PaymentSum[]> {
  const { rows } = await database.query<Nullable<PaymentSum>>(SUMS, [accountId, paymentIds]);
  return rows.map(withoutNulls);
}

/** A dispute. */
export type ExportedDispute = ExportedPayment & {
  readonly id: string;
  readonly openedAt: string;
  readonly updatedAt: string;
  readonly closedAt: string | undefined;
  readonly respondBy: string | undefined;
  readonly stage: string;
  readonly status: string;
  readonly reason: string;
  readonly networkCode: string | undefined;
  readonly minorUnits: bigint;
  readonly currency: string;
  readonly feeMinorUnits: bigint | undefined;
  readonly feeCurrency: string | undefined;
  readonly connectionId: string;
  readonly reference: string | undefined;
  /** The sum of its corrections. */
  readonly correctedMinorUnits: bigint | undefined;
};

const DISPUTES = {
  name: 'export_disputes',
  text: `
    SELECT d.id, ${textOf('d.opened_at')} AS "openedAt", ${textOf('d.updated_at')} AS "updatedAt",
      ${textOf('d.closed_at')} AS "closedAt", ${textOf('d.respond_by')} AS "respondBy", d.stage, d.status, d.reason,
      d.network_code AS "networkCode", d.amount_minor_units AS "minorUnits", d.currency, d.fee_minor_units AS "feeMinorUnits",
      d.fee_currency AS "feeCurrency", d.connection_id AS "connectionId", d.provider_reference AS reference, ${OF_PAYMENT},
      (SELECT sum(c.amount_minor_units)::bigint FROM movement_correction c
       WHERE c.account_id = $1 AND c.transaction_id = d.id) AS "correctedMinorUnits"
    FROM (
      SELECT * FROM dispute
      WHERE account_id = $1 AND (opened_at, id) > ($2::timestamptz, $3::uuid) AND opened_at < $4::timestamptz
      ORDER BY opened_at, id LIMIT ${ROWS_A_PAGE}
    ) d JOIN payment p ON p.account_id = $1 AND p.id = d.payment_id
    ORDER BY d.opened_at, d.id`,
};

/** Reads the disputes of which an account first learned in a period, oldest first, up to ROWS_A_PAGE. */
export async function readDisputes(
  database: Database,
  { accountId, from, until }: RowsOf,
  after: Pick<ExportedDispute, 'openedAt' | 'id'> | undefined,
): Promise<ExportedDispute[]> {
  const values = [accountId, after?.openedAt ?? from, after?.id ?? NIL_UUID, until];
  return (await database.query<Nullable<ExportedDispute>>(DISPUTES, values)).rows.map(withoutNulls);
}

const RECORDS = {
  name: 'export_records',
  text: 'SELECT id, record FROM payment WHERE account_id = $1 AND id = ANY ($2::uuid[])',
};

/** Reads the encoded records of payments, by id. */
export async function readExportedRecords(
  database: Database,
  accountId: string,
  paymentIds: readonly string[],
): Promise<ReadonlyMap<string, Uint8Array>> {
  type Row = { readonly id: string; readonly record: Uint8Array };
  const { rows } = await database.query<Row>(RECORDS, [accountId, paymentIds]);
  return new Map(rows.map(({ id, record }) => [id, record]));
}

// Rows commit at most half a minute after they begin, which is the time that they are written with.
const END = {
  name: 'export_end',
  text: `SELECT ${textOf(`least($1::timestamptz, now() - interval '30 seconds')`)} AS until`,
};

/** Returns the end of an export: the end of its period, or the time before which every row has been committed. */
export async function exportEnd(database: Database, before: string): Promise<string> {
  return onlyRow(await database.query<{ until: string }>(END, [before])).until;
}

const ACCOUNTS = {
  name: 'export_accounts',
  text: 'SELECT id, name FROM account WHERE id > $1 ORDER BY id LIMIT 100',
};

/** Lists the next hundred accounts, in the order of their ids. */
export async function nextAccounts(
  database: Database,
  afterId: string = NIL_UUID,
): Promise<{ readonly id: string; readonly name: string }[]> {
  return (await database.query<{ id: string; name: string }>(ACCOUNTS, [afterId])).rows;
}
