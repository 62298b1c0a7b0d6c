import type { Database } from './database.ts';
import { isScheduled } from './lease-due.ts';
import type { Claim } from './payments.ts';

/** An attempt that came to nothing, and the next one that replaces it. */
export type NextAttempt = {
  readonly accountId: string;
  readonly paymentId: string;
  /** The record, whose last transaction is the next attempt. */
  readonly record: Uint8Array;
  readonly last: {
    readonly transactionId: string;
    readonly transactionStatus: string;
    /** The connector's reference to it: its provider may still report on it. */
    readonly reference?: string | undefined;
  };
  readonly next: Pick<
    Claim,
    'transactionId' | 'transactionStatus' | 'connectionId' | 'connectionIdentity' | 'leaseS'
  >;
};

// Takes effect only while the last attempt is open and still with the worker that claimed it (fence 0). The next
// attempt inherits the other columns. Repeated after a lost acknowledgement, the statement changes nothing and finds
// the next attempt, still with the worker that began it.
const BEGIN_NEXT = {
  name: 'begin_next_attempt',
  text: `
    WITH last AS (
      UPDATE transaction SET status = $3, reference = coalesce($11, reference), look_up_at = NULL, updated_at = now()
      WHERE account_id = $10::uuid AND id = $2 AND ${isScheduled('look_up_at')} AND fence = 0
      RETURNING payment_id, amount_minor_units, currency, capture, vaulted_token, type
    ), next AS (
      INSERT INTO transaction
        (id, payment_id, connection_id, status, amount_minor_units, currency, capture, look_up_at, vaulted_token,
          connection_identity, type, account_id)
      SELECT $4, payment_id, $5, $6, amount_minor_units, currency, capture, now() + make_interval(secs => $7),
        vaulted_token, $9, type, $10
      FROM last
      RETURNING id
    ), moved AS (
      UPDATE payment SET record = $8, updated_at = now() FROM next
      WHERE payment.account_id = $10 AND payment.id = $1
    )
    SELECT id FROM next
    UNION ALL
    SELECT id FROM transaction
    WHERE account_id = $10::uuid AND id = $4 AND ${isScheduled('look_up_at')} AND fence = 0`,
};

/**
 * Ends an attempt that came to nothing and begins the next, before it is sent: one statement, one commit. It may be
 * repeated if its acknowledgement was lost.
 *
 * @returns false if another worker has taken the payment over since; then nothing was changed.
 */
export async function beginNextAttempt(database: Database, begin: NextAttempt): Promise<boolean> {
  const { rows } = await database.query(BEGIN_NEXT, [
    begin.paymentId,
    begin.last.transactionId,
    begin.last.transactionStatus,
    begin.next.transactionId,
    begin.next.connectionId,
    begin.next.transactionStatus,
    begin.next.leaseS,
    begin.record,
    begin.next.connectionIdentity,
    begin.accountId,
    begin.last.reference ?? null,
  ]);
  return rows.length === 1;
}
