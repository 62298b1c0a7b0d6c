import type { Database, Nullable } from '../engine/database.ts';
import { firstRow, withoutNulls } from '../engine/rows.ts';

/** A payment as an operation finds it. */
export type StoredPayment = {
  /** An encoded Payment. */
  readonly record: Uint8Array;
  /** Number of writes so far; a write that presents an older version changes nothing. */
  readonly version: number;
  readonly capturedMinorUnits: bigint;
  readonly refundedMinorUnits: bigint;
  readonly isReleased: boolean;
  /** The transaction of the open operation, if any. */
  readonly openOperation: string | undefined;
};

/** A transaction as an operation finds it. */
export type StoredTransaction = {
  readonly id: string;
  readonly type: string;
  readonly status: string;
  readonly parentId: string | undefined;
  readonly connectionId: string;
  readonly connectionIdentity: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  /** false for an authorization only. */
  readonly capture: boolean;
  readonly reference: string | undefined;
  /** true for a capture that none may follow. */
  readonly isFinal: boolean;
  readonly vaultedToken: string | undefined;
  /** true: it will be followed up; false once it is final. */
  readonly isScheduled: boolean;
  /** true: an operation without a stored response; if it is due as well, its process has died. */
  readonly isUnanswered: boolean;
  /** Time since it was stored, just before it was sent, by the database's clock. */
  readonly ageMs: number;
};

const READ_PAYMENT = {
  name: 'read_payment_for_operation',
  text: `
    SELECT record, version, captured_minor_units AS "capturedMinorUnits",
      refunded_minor_units AS "refundedMinorUnits", released AS "isReleased", open_operation AS "openOperation"
    FROM payment WHERE account_id = $1 AND id = $2`,
};
const READ_TRANSACTIONS = {
  name: 'read_transactions',
  text: `
    SELECT id, type, status, parent_id AS "parentId", connection_id AS "connectionId",
      connection_identity AS "connectionIdentity", amount_minor_units AS "minorUnits", currency, capture, reference,
      final AS "isFinal", vaulted_token AS "vaultedToken", follow_up_at IS NOT NULL AS "isScheduled",
      method IS NOT NULL AND response IS NULL AS "isUnanswered",
      extract(epoch FROM now() - created_at)::float8 * 1000 AS "ageMs"
    FROM transaction WHERE account_id = $1 AND payment_id = $2 ORDER BY created_at, id`,
};

/** Reads a payment of an account. @param paymentId a UUID. */
export async function readPayment(
  database: Database,
  accountId: string,
  paymentId: string,
): Promise<StoredPayment | undefined> {
  return firstRow(await database.query<Nullable<StoredPayment>>(READ_PAYMENT, [accountId, paymentId]));
}

/** Reads a payment's transactions in the order in which they began. */
export async function readTransactions(
  database: Database,
  accountId: string,
  paymentId: string,
): Promise<StoredTransaction[]> {
  const values = [accountId, paymentId];
  const { rows } = await database.query<Nullable<StoredTransaction>>(READ_TRANSACTIONS, values);
  return rows.map(withoutNulls);
}
