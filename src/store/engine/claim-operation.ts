import type { Database } from './database.ts';

/** The claim of an operation, written before the operation is sent. */
export type OperationClaim = {
  readonly accountId: string;
  readonly paymentId: string;
  /** The version of the payment on which the operation was planned. */
  readonly version: number;
  readonly status: string;
  readonly record: Uint8Array;
  readonly transactionId: string;
  readonly type: 'CAPTURE' | 'CANCEL' | 'REFUND';
  /** The purchase or authorization. */
  readonly baseId: string;
  /** The transaction that the operation acts on. */
  readonly parentId: string;
  readonly connectionId: string;
  readonly connectionIdentity: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  /** true for the last capture. */
  readonly isFinal: boolean;
  readonly leaseS: number;
  /** Name of the rpc, within which idempotency keys are unique. */
  readonly method: string;
  /** undefined for a cancel without a key. */
  readonly idempotencyKey: string | undefined;
  readonly requestHash: Uint8Array;
  readonly requestShape: Uint8Array;
  /** The merchant's own reference; undefined if one was generated. */
  readonly merchantReference: string | undefined;
};

// The claiming statement itself checks the amount limits against the rows, so no claim exceeds them, regardless of what
// its caller read earlier and of concurrent claims. A held key violates the unique index, which rolls back the whole
// statement. A merchant's reference can be used once per payment and method. It needs no index, since every claim
// changes the version that other claims depend on.
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
      amount_minor_units, currency, capture, final, check_at, method, idempotency_key, request_hash, request_shape,
      merchant_reference)
    SELECT $4::uuid, $1, id, $8, $10::uuid, $11, $12, 'PENDING', $9, $13, false, $14,
      now() + make_interval(secs => $15), $16, $17, $18, $19, $20
    FROM taken
    RETURNING id`,
};

/**
 * Claims an operation: reserves its amount, opens it and inserts its transaction, in one statement and one commit.
 *
 * @returns false if the payment has changed since it was read, has an open operation, already has an operation with the
 * same reference and method, or does not have the amount left.
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
