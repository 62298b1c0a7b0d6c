import type { Database } from './database.ts';
import { insertEventCte } from './outbox.ts';

/** A payment as an operation finds it. */
export type StoredPayment = {
  /** An encoded Payment. */
  readonly record: Uint8Array;
  /** Counts the writes; a write that presents an older one changes nothing. */
  readonly version: number;
  readonly capturedMinorUnits: bigint;
  readonly refundedMinorUnits: bigint;
  readonly isReleased: boolean;
  /** The transaction of the operation that is open, if any. */
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
      reference, created_at
    FROM transaction WHERE payment_id = $1 ORDER BY created_at, id`,
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

/** Reads a payment's transactions in the order in which they were begun. */
export async function readTransactions(database: Database, paymentId: string): Promise<StoredTransaction[]> {
  const { rows } = await database.query<TransactionRow>(READ_TRANSACTIONS, [paymentId]);
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
    createdAt: row.created_at,
  }));
}

/** What is written before an operation is sent. */
export type OperationClaim = {
  readonly accountId: string;
  readonly paymentId: string;
  /** The version that the operation was planned on. */
  readonly version: number;
  readonly status: string;
  readonly record: Uint8Array;
  readonly transactionId: string;
  readonly type: 'CAPTURE' | 'CANCEL' | 'REFUND';
  /** The purchase or the authorization. */
  readonly baseId: string;
  /** The transaction acted on. */
  readonly parentId: string;
  readonly connectionId: string;
  readonly connectionIdentity: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  /** Of a capture: none may follow. */
  readonly isFinal: boolean;
  readonly leaseS: number;
  /** The rpc that was called: the space of its idempotency keys. */
  readonly method: string;
  /** undefined for a cancel without one. */
  readonly idempotencyKey: string | undefined;
  readonly requestHash: Uint8Array;
  readonly requestShape: Uint8Array;
};

// The bounds stand here, in the statement that claims, and are checked against the rows themselves: whatever a caller
// believes, and whoever claims at the same time, nothing gets past them. A key that is held breaks the unique index, and
// with it the whole statement.
const CLAIM = {
  name: 'claim_operation',
  text: `
    WITH taken AS (
      UPDATE payment p
      SET open_operation = $4::uuid, version = p.version + 1, status = $5, record = $6, updated_at = now()
      FROM transaction base
      WHERE p.account_id = $1 AND p.id = $2 AND p.version = $3 AND p.open_operation IS NULL
        AND base.id = $7::uuid AND base.payment_id = p.id AND base.status = 'SUCCEEDED'
        AND CASE $8::text
          WHEN 'CAPTURE' THEN
            NOT base.capture AND NOT p.released AND p.captured_minor_units + $9::bigint <= base.amount_minor_units
          WHEN 'CANCEL' THEN
            NOT base.capture AND NOT p.released AND p.captured_minor_units < base.amount_minor_units
          WHEN 'REFUND' THEN
            p.refunded_minor_units + $9::bigint
              <= CASE WHEN base.capture THEN base.amount_minor_units ELSE p.captured_minor_units END
            AND $9::bigint + (
              SELECT coalesce(sum(r.amount_minor_units), 0) FROM transaction r
              WHERE r.payment_id = p.id AND r.type = 'REFUND' AND r.parent_id = $10::uuid
                AND r.status IN ('SUCCEEDED', 'PENDING')
            ) <= (SELECT t.amount_minor_units FROM transaction t WHERE t.id = $10::uuid AND t.payment_id = p.id)
          ELSE false
        END
      RETURNING p.id
    )
    INSERT INTO transaction (id, account_id, payment_id, type, parent_id, connection_id, connection_identity, status,
      amount_minor_units, currency, capture, final, look_up_at, method, idempotency_key, request_hash, request_shape)
    SELECT $4::uuid, $1, id, $8, $10::uuid, $11, $12, 'PENDING', $9, $13, false, $14,
      now() + make_interval(secs => $15), $16, $17, $18, $19
    FROM taken
    RETURNING id`,
};

/**
 * Claims an operation: reserves its amount, opens it and inserts its transaction, in one statement and one commit.
 *
 * @returns false when the payment has changed since it was read, has an operation open, or the bounds do not allow it.
 * @throws a unique violation (`isKeyTaken`) when the key is held; nothing was changed.
 */
export async function claimOperation(database: Database, claim: OperationClaim): Promise<boolean> {
  const { rows } = await database.query(CLAIM, [
    claim.accountId,
    claim.paymentId,
    claim.version,
    claim.transactionId,
    claim.status,
    claim.record,
    claim.baseId,
    claim.type,
    claim.minorUnits.toString(),
    claim.parentId,
    claim.connectionId,
    claim.connectionIdentity,
    claim.currency,
    claim.isFinal,
    claim.leaseS,
    claim.method,
    claim.idempotencyKey ?? null,
    claim.requestHash,
    claim.requestShape,
  ]);
  return rows.length === 1;
}

/** What is written once the outcome of an operation is known, or is to be looked up. */
export type OperationFinish = {
  readonly accountId: string;
  readonly paymentId: string;
  readonly transactionId: string;
  /** Fencing token: how many have taken the transaction. */
  readonly fence: number;
  /** The version that the record was made from. */
  readonly version: number;
  readonly status: string;
  readonly record: Uint8Array;
  readonly transactionStatus: string;
  readonly reference: string | undefined;
  readonly response: Uint8Array;
  /** In how many seconds it is looked up; undefined once it is known. */
  readonly lookUpInS: number | undefined;
  readonly capturedMinorUnits: bigint;
  readonly refundedMinorUnits: bigint;
  readonly isReleased: boolean;
  /** Names the event that tells webhooks of this change. */
  readonly event: string;
};

/** What became of a finish. */
export type FinishedOperation =
  /** `response` and `record` are what callers of the operation are told, from now on; `event`: there is one to relay. */
  | {
      readonly kind: 'written';
      readonly response: Uint8Array;
      readonly record: Uint8Array;
      readonly event: boolean;
    }
  /** The payment has changed since it was read: make the record anew. */
  | { readonly kind: 'outdated' }
  /** Somebody else finished or took the transaction. */
  | { readonly kind: 'lost' };

const FINISH = {
  name: 'finish_operation',
  text: `
    WITH locked AS (
      SELECT id, version FROM payment WHERE account_id = $1 AND id = $2 FOR UPDATE
    ), attempt AS (
      UPDATE transaction t
      SET status = $6, reference = coalesce($7, t.reference), updated_at = now(),
        look_up_at = now() + make_interval(secs => $8::float8),
        response = coalesce(t.response, $9), response_record = coalesce(t.response_record, $5)
      FROM locked
      WHERE t.id = $3::uuid AND t.payment_id = locked.id AND locked.version = $4
        AND t.look_up_at IS NOT NULL AND (t.fence = $10 OR $8::float8 IS NULL)
      RETURNING t.response, t.response_record
    ), finished AS (
      UPDATE payment p
      SET status = $11, record = $5, version = p.version + 1, updated_at = now(),
        event_sequence = p.event_sequence + 1,
        captured_minor_units = $12, refunded_minor_units = $13, released = $14,
        open_operation = CASE WHEN $8::float8 IS NULL THEN NULL ELSE p.open_operation END
      FROM attempt WHERE p.account_id = $1 AND p.id = $2
      RETURNING p.id, p.account_id, p.event_sequence
    ), ${insertEventCte({ changed: 'finished', type: '$15::text', record: '$5' })}
    SELECT locked.version AS found, attempt.response, attempt.response_record,
      EXISTS (SELECT FROM event) AS event
    FROM locked LEFT JOIN attempt ON true LEFT JOIN finished ON true`,
};

type FinishRow = { found: number; response: Buffer | null; response_record: Buffer | null; event: boolean };

/** Finishes an operation and its payment, in one statement and one commit. */
export async function finishOperation(
  database: Database,
  finish: OperationFinish,
): Promise<FinishedOperation> {
  const { rows } = await database.query<FinishRow>(FINISH, [
    finish.accountId,
    finish.paymentId,
    finish.transactionId,
    finish.version,
    finish.record,
    finish.transactionStatus,
    finish.reference ?? null,
    finish.lookUpInS ?? null,
    finish.response,
    finish.fence,
    finish.status,
    finish.capturedMinorUnits.toString(),
    finish.refundedMinorUnits.toString(),
    finish.isReleased,
    finish.event,
  ]);
  const row = rows[0];
  if (row?.response && row.response_record) {
    return { kind: 'written', response: row.response, record: row.response_record, event: row.event };
  }
  return row && row.found !== finish.version ? { kind: 'outdated' } : { kind: 'lost' };
}
