import { isOfAccount } from './account-rows.ts';
import type { Database } from './database.ts';

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
  readonly connectionIdentity: string | undefined;
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
  readonly createdAt: Date;
};

type PaymentRow = {
  record: Buffer;
  version: number;
  captured_minor_units: bigint;
  refunded_minor_units: bigint;
  released: boolean;
  open_operation: string | null;
};
type TransactionRow = {
  id: string;
  type: string;
  status: string;
  parent_id: string | null;
  connection_id: string;
  connection_identity: string | null;
  amount_minor_units: bigint;
  currency: string;
  capture: boolean;
  reference: string | null;
  final: boolean;
  vaulted_token: string | null;
  scheduled: boolean;
  unanswered: boolean;
  created_at: Date;
};

const READ_PAYMENT = {
  name: 'read_payment_for_operation',
  text: `
    SELECT record, version, captured_minor_units, refunded_minor_units, released, open_operation
    FROM payment WHERE account_id = $1 AND id = $2`,
};
const READ_TRANSACTIONS = {
  name: 'read_transactions',
  text: `
    SELECT id, type, status, parent_id, connection_id, connection_identity, amount_minor_units, currency, capture,
      reference, final, vaulted_token, follow_up_at IS NOT NULL AS scheduled,
      method IS NOT NULL AND response IS NULL AS unanswered, created_at
    FROM transaction WHERE ${isOfAccount('account_id', '$1')} AND payment_id = $2 ORDER BY created_at, id`,
};

/** Reads a payment of an account. @param paymentId a UUID. */
export async function readPayment(
  database: Database,
  accountId: string,
  paymentId: string,
): Promise<StoredPayment | undefined> {
  const { rows } = await database.query<PaymentRow>(READ_PAYMENT, [accountId, paymentId]);
  const row = rows[0];
  return (
    row && {
      record: row.record,
      version: row.version,
      capturedMinorUnits: row.captured_minor_units,
      refundedMinorUnits: row.refunded_minor_units,
      isReleased: row.released,
      openOperation: row.open_operation ?? undefined,
    }
  );
}

/** Reads a payment's transactions in the order in which they began. */
export async function readTransactions(
  database: Database,
  accountId: string,
  paymentId: string,
): Promise<StoredTransaction[]> {
  const { rows } = await database.query<TransactionRow>(READ_TRANSACTIONS, [accountId, paymentId]);
  return rows.map((row) => ({
    id: row.id,
    type: row.type,
    status: row.status,
    parentId: row.parent_id ?? undefined,
    connectionId: row.connection_id,
    connectionIdentity: row.connection_identity ?? undefined,
    minorUnits: row.amount_minor_units,
    currency: row.currency,
    capture: row.capture,
    reference: row.reference ?? undefined,
    isFinal: row.final,
    vaultedToken: row.vaulted_token ?? undefined,
    isScheduled: row.scheduled,
    isUnanswered: row.unanswered,
    createdAt: row.created_at,
  }));
}
