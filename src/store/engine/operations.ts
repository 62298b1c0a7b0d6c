import { insertEventCte } from '../tables/outbox.ts';
import { reopenSessionCte, retakeSessionCtes } from '../tables/single-uses.ts';
import { vaultCardCtes } from '../tables/stored-methods.ts';
import type { Database } from './database.ts';
import type { MethodFate } from './payments.ts';

/** The claim of an operation, written before it is sent. */
export type OperationClaim = {
  readonly accountId: string;
  readonly paymentId: string;
  /** The version on which the operation was planned. */
  readonly version: number;
  readonly status: string;
  readonly record: Uint8Array;
  readonly transactionId: string;
  readonly type: 'CAPTURE' | 'CANCEL' | 'REFUND';
  /** The purchase or the authorization. */
  readonly baseId: string;
  /** The transaction on which the operation acts. */
  readonly parentId: string;
  readonly connectionId: string;
  readonly connectionIdentity: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  /** true for a capture that none may follow. */
  readonly isFinal: boolean;
  readonly leaseS: number;
  /** Name of the rpc, within which idempotency keys are unique. */
  readonly method: string;
  /** undefined for a cancel without one. */
  readonly idempotencyKey: string | undefined;
  readonly requestHash: Uint8Array;
  readonly requestShape: Uint8Array;
  /** The merchant's own reference; undefined if one was generated. */
  readonly merchantReference: string | undefined;
};

// The claiming statement itself checks the bounds against the rows: whatever a caller believes, and whoever claims at
// the same time, no claim exceeds them. A key that is held violates the unique index, which rolls the whole statement
// back. A merchant's reference is used once within the payment and the method: no index has to say so, since every claim
// changes the version on which another relies.
const CLAIM = {
  name: 'claim_operation',
  text: `
    WITH taken AS (
      UPDATE payment p
      SET open_operation = $4::uuid, version = p.version + 1, status = $5, record = $6, updated_at = now(),
        answered_record = CASE WHEN p.answer IS NOT NULL THEN coalesce(p.answered_record, p.record) END
      FROM transaction base
      WHERE p.account_id = $1 AND p.id = $2 AND p.version = $3 AND p.open_operation IS NULL
        AND base.account_id = $1 AND base.id = $7::uuid AND base.payment_id = p.id AND base.status = 'SUCCEEDED'
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
              WHERE r.account_id = $1 AND r.payment_id = p.id AND r.type = 'REFUND' AND r.parent_id = $10::uuid
                AND r.status IN ('SUCCEEDED', 'PENDING')
            ) <= (
              SELECT t.amount_minor_units FROM transaction t
              WHERE t.account_id = $1 AND t.id = $10::uuid AND t.payment_id = p.id
            )
          ELSE false
        END
        AND NOT EXISTS (
          SELECT FROM transaction o
          WHERE o.account_id = $1 AND o.payment_id = p.id AND o.method = $16::text AND o.merchant_reference = $20::text
        )
      RETURNING p.id
    )
    INSERT INTO transaction (id, account_id, payment_id, type, parent_id, connection_id, connection_identity, status,
      amount_minor_units, currency, capture, final, follow_up_at, method, idempotency_key, request_hash, request_shape,
      merchant_reference)
    SELECT $4::uuid, $1, id, $8, $10::uuid, $11, $12, 'PENDING', $9, $13, false, $14,
      now() + make_interval(secs => $15), $16, $17, $18, $19, $20
    FROM taken
    RETURNING id`,
};

/**
 * Claims an operation: reserves its amount, opens it and inserts its transaction, in one statement and one commit.
 *
 * @returns false if the payment has changed since it was read, has an operation open, has one with the same reference and
 *   method, or the bounds do not allow it.
 * @throws a unique violation (`isKeyTaken`) if the key is held; nothing was changed.
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
    claim.merchantReference ?? null,
  ]);
  return rows.length === 1;
}

/** A later finish of a transaction, written once more is known about it. */
export type OperationFinish = {
  readonly accountId: string;
  readonly paymentId: string;
  readonly transactionId: string;
  /** Fencing token: how many workers have leased the transaction. */
  readonly fence: number;
  /** The version from which the record was made. */
  readonly version: number;
  readonly status: string;
  readonly record: Uint8Array;
  readonly transactionStatus: string;
  readonly reference: string | undefined;
  readonly response: Uint8Array;
  /** Seconds until it is followed up; undefined once its outcome is known. */
  readonly lookUpInS: number | undefined;
  /** Seconds until an authorization that is approved now is followed up: it may lapse. */
  readonly followUpInS?: number | undefined;
  readonly capturedMinorUnits: bigint;
  readonly refundedMinorUnits: bigint;
  readonly isReleased: boolean;
  /** Type of the event that reports this change to webhooks; undefined if the record stays as it was. */
  readonly event: string | undefined;
  /** true: corrects a transaction that was final, as when money arrives after it expired. */
  readonly wasFinal?: boolean;
  readonly vault?: MethodFate | undefined;
  /** The checkout session that may be paid again, since this payment came to nothing. */
  readonly reopens?: string | undefined;
  /** The checkout session that this payment uses again, since it was paid after it had come to nothing. */
  readonly retakes?: string | undefined;
};

/** The result of storing a finish. */
export type FinishedOperation =
  /** `response` and `record`: those that the operation's callers get from now on; `event`: there is one to relay. */
  | {
      readonly kind: 'written';
      readonly response: Uint8Array;
      readonly record: Uint8Array;
      readonly event: boolean;
    }
  /** The payment has changed since it was read, so the record has to be made again. */
  | { readonly kind: 'outdated' }
  /** Another worker finished or took the transaction. */
  | { readonly kind: 'lost' };

const FINISH = {
  name: 'finish_operation',
  text: `
    WITH locked AS (
      SELECT id, version FROM payment WHERE account_id = $1 AND id = $2 FOR UPDATE
    ), attempt AS (
      UPDATE transaction t
      SET status = $6, reference = coalesce($7, t.reference), updated_at = now(),
        follow_up_at = now() + make_interval(secs => coalesce($8::float8, $22::float8)),
        response = CASE WHEN t.method IS NOT NULL THEN coalesce(t.response, $9) END,
        response_record = CASE WHEN t.method IS NOT NULL THEN coalesce(t.response_record, $5) END
      FROM locked
      WHERE t.account_id = $1 AND t.id = $3::uuid AND t.payment_id = locked.id AND locked.version = $4 AND t.look_up_at IS NULL
        AND CASE WHEN $16::boolean THEN t.follow_up_at IS NULL
          ELSE t.follow_up_at IS NOT NULL AND (t.fence = $10 OR $8::float8 IS NULL) END
      RETURNING coalesce(t.response, $9) AS response, coalesce(t.response_record, $5) AS response_record,
        t.vaulted_token
    ), finished AS (
      UPDATE payment p
      SET status = $11, record = $5, version = p.version + 1, updated_at = now(),
        event_sequence = p.event_sequence + ($15::text IS NOT NULL)::integer,
        captured_minor_units = $12, refunded_minor_units = $13, released = $14,
        open_operation = CASE WHEN p.open_operation = $3::uuid AND $8::float8 IS NULL THEN NULL
          ELSE p.open_operation END,
        answered_record = CASE WHEN p.answer IS NOT NULL THEN coalesce(p.answered_record, p.record) END
      FROM attempt WHERE p.account_id = $1 AND p.id = $2
      RETURNING p.id, p.account_id, p.event_sequence
    ), ${vaultCardCtes({
      changed: `(SELECT FROM attempt WHERE $17 = 'keep') approved`,
      account: '$1',
      method: '$21::uuid',
      at: '$19',
      record: '$20',
    })}, dropped_card AS (
      DELETE FROM vaulted_token v USING attempt
      WHERE v.account_id = $1 AND v.id = attempt.vaulted_token AND $17 = 'drop' AND NOT v.active AND v.status = 'ENROLLED'
    ), ${reopenSessionCte({ changed: 'finished', account: '$1', payment: '$2', session: '$18' })},
    ${retakeSessionCtes({ changed: 'finished', account: '$1', payment: '$2', session: '$23' })},
    ${insertEventCte({ changed: 'finished', type: '$15::text', record: '$5' })}
    SELECT locked.version AS found, attempt.response, attempt.response_record,
      EXISTS (SELECT FROM event) AS event
    FROM locked LEFT JOIN attempt ON true`,
};

type FinishRow = { found: number; response: Buffer | null; response_record: Buffer | null; event: boolean };

/** Writes the outcome of a transaction and its payment, in one statement and one commit. */
export async function finishOperation(
  database: Database,
  finish: OperationFinish,
): Promise<FinishedOperation> {
  const { vault } = finish;
  const kept = vault?.fate === 'keep' ? vault : undefined;
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
    finish.event ?? null,
    finish.wasFinal ?? false,
    vault?.fate ?? 'wait',
    finish.reopens ?? null,
    kept?.at ?? null,
    kept?.record ?? null,
    vault?.token ?? null,
    finish.followUpInS ?? null,
    finish.retakes ?? null,
  ]);
  const row = rows[0];
  if (row?.response && row.response_record) {
    return { kind: 'written', response: row.response, record: row.response_record, event: row.event };
  }
  return row && row.found !== finish.version ? { kind: 'outdated' } : { kind: 'lost' };
}
