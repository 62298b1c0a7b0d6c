import { insertEventCte } from '../tables/outbox.ts';
import type { Database } from './database.ts';

/**
 * A transaction that nobody asked for here, as its provider tells of it, and the record that reports it: a stage of a
 * dispute, or a capture or a refund that was made at the provider itself.
 */
export type ExternalTransaction = {
  readonly accountId: string;
  readonly paymentId: string;
  /** The version from which the record was made. */
  readonly version: number;
  readonly status: string;
  readonly record: Uint8Array;
  readonly transactionId: string;
  readonly type: 'CHARGEBACK' | 'CAPTURE' | 'REFUND';
  readonly transactionStatus: string;
  /** The provider's own id of it, if it gives one. */
  readonly reference: string | undefined;
  /** In the payment's currency. */
  readonly minorUnits: bigint;
  /** The payment's purchase or authorization. */
  readonly baseId: string;
  /** The transaction that it acts on. */
  readonly parentId: string;
  /** true for a capture that none may follow. */
  readonly isFinal: boolean;
  /** The payment's amounts after it. */
  readonly capturedMinorUnits: bigint;
  readonly refundedMinorUnits: bigint;
  readonly isReleased: boolean;
  readonly event: string;
};

const WRITE = {
  name: 'write_external_transaction',
  text: `
    WITH changed AS (
      UPDATE payment p
      SET status = $4, record = $5, version = p.version + 1, updated_at = now(), event_sequence = p.event_sequence + 1,
        captured_minor_units = $14, refunded_minor_units = $15, released = $16,
        answered_record = CASE WHEN p.answer IS NOT NULL THEN coalesce(p.answered_record, p.record) END
      WHERE p.account_id = $1 AND p.id = $2 AND p.version = $3 AND p.open_operation IS NULL
      RETURNING p.id, p.account_id, p.event_sequence
    ), known AS (
      UPDATE transaction t
      SET status = $7, reference = coalesce(t.reference, $10), amount_minor_units = $11, updated_at = now()
      FROM changed
      WHERE t.account_id = $1 AND t.id = $6::uuid AND t.payment_id = changed.id
      RETURNING t.id
    ), told AS (
      INSERT INTO transaction (id, account_id, payment_id, type, parent_id, connection_id, connection_identity, status,
        amount_minor_units, currency, capture, final, reference)
      SELECT $6::uuid, $1, changed.id, $12, $13::uuid, base.connection_id, base.connection_identity, $7,
        $11, base.currency, false, $17, $10
      FROM changed, transaction base
      WHERE base.account_id = $1 AND base.id = $8::uuid AND base.payment_id = changed.id
        AND NOT EXISTS (SELECT FROM known)
    ), ${insertEventCte({ changed: 'changed', type: '$9::text', record: '$5' })}
    SELECT EXISTS (SELECT FROM event) AS event FROM changed`,
};

/**
 * Writes a transaction that a provider told of, in one commit.
 *
 * @returns undefined if the payment has changed since it was read, or has an operation open.
 */
export async function writeExternalTransaction(
  database: Database,
  external: ExternalTransaction,
): Promise<{ readonly event: boolean } | undefined> {
  const { rows } = await database.query<{ event: boolean }>(WRITE, [
    external.accountId,
    external.paymentId,
    external.version,
    external.status,
    external.record,
    external.transactionId,
    external.transactionStatus,
    external.baseId,
    external.event,
    external.reference ?? null,
    external.minorUnits,
    external.type,
    external.parentId,
    external.capturedMinorUnits,
    external.refundedMinorUnits,
    external.isReleased,
    external.isFinal,
  ]);
  return rows[0];
}
