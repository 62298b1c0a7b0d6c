import { isOfAccount } from './account-rows.ts';
import type { Database } from './database.ts';
import { insertEventCte } from './outbox.ts';

/** A stage of a dispute, and the record that reports it. */
export type DisputeWrite = {
  readonly accountId: string;
  readonly paymentId: string;
  /** The version from which the record was made. */
  readonly version: number;
  readonly status: string;
  readonly record: Uint8Array;
  readonly transactionId: string;
  readonly transactionStatus: string;
  /** The provider's id of the dispute, if it gives one. */
  readonly reference: string | undefined;
  /** The disputed amount, in the payment's currency. */
  readonly minorUnits: bigint;
  /** The disputed purchase or authorization. */
  readonly baseId: string;
  readonly event: string;
};

const WRITE = {
  name: 'write_dispute',
  text: `
    WITH changed AS (
      UPDATE payment p
      SET status = $4, record = $5, version = p.version + 1, updated_at = now(), event_sequence = p.event_sequence + 1,
        answered_record = CASE WHEN p.answer IS NOT NULL THEN coalesce(p.answered_record, p.record) END
      WHERE p.account_id = $1 AND p.id = $2 AND p.version = $3 AND p.open_operation IS NULL
      RETURNING p.id, p.account_id, p.event_sequence
    ), known AS (
      UPDATE transaction t
      SET status = $7, reference = coalesce(t.reference, $10), amount_minor_units = $11, updated_at = now()
      FROM changed
      WHERE ${isOfAccount('t.account_id', '$1')} AND t.id = $6::uuid AND t.payment_id = changed.id
      RETURNING t.id
    ), dispute AS (
      INSERT INTO transaction (id, account_id, payment_id, type, parent_id, connection_id, connection_identity, status,
        amount_minor_units, currency, capture, reference)
      SELECT $6::uuid, $1, changed.id, 'CHARGEBACK', base.id, base.connection_id, base.connection_identity, $7,
        $11, base.currency, false, $10
      FROM changed, transaction base
      WHERE ${isOfAccount('base.account_id', '$1')} AND base.id = $8::uuid AND base.payment_id = changed.id
        AND NOT EXISTS (SELECT FROM known)
    ), ${insertEventCte({ changed: 'changed', type: '$9::text', record: '$5' })}
    SELECT EXISTS (SELECT FROM event) AS event FROM changed`,
};

/** Writes a stage of a dispute, in one commit. @returns undefined if the payment has changed since it was read. */
export async function writeDispute(
  database: Database,
  write: DisputeWrite,
): Promise<{ readonly event: boolean } | undefined> {
  const { rows } = await database.query<{ event: boolean }>(WRITE, [
    write.accountId,
    write.paymentId,
    write.version,
    write.status,
    write.record,
    write.transactionId,
    write.transactionStatus,
    write.baseId,
    write.event,
    write.reference ?? null,
    write.minorUnits,
  ]);
  return rows[0];
}
