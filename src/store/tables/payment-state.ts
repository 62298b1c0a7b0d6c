import type { PaymentRow, TransactionRow } from '#src/payments/model/state.ts';
import type { Database, Nullable } from '../engine/database.ts';
import { withoutNulls } from '../engine/rows.ts';

/** A payment and its transactions at one moment. */
export type StoredState = {
  readonly payment: StoredPayment;
  /** In the order in which they began. */
  readonly transactions: readonly TransactionRow[];
};

/** The columns of a payment from which changes are decided; `record` is an encoded Payment. */
export type StoredPayment = PaymentRow & { readonly record: Uint8Array };

// The record is large, so only the first row contains it.
const READ = {
  name: 'read_payment_state',
  text: `
    SELECT t.id, t.type, t.status, t.parent_id AS "parentId", t.connection_id AS "connectionId",
      t.connection_identity AS "connectionIdentity", t.amount_minor_units AS "minorUnits", t.currency, t.capture,
      t.reference, t.provider_payment_id AS "providerPaymentId", t.final AS "isFinal",
      t.vaulted_token AS "vaultedToken", t.awaits_payer AS "awaitsPayer", t.reported_at AS "reportedAt",
      t.method_kind AS "methodKind", extract(epoch FROM t.payer_due_at - now())::float8 * 1000 AS "payerTimeLeftMs",
      CASE WHEN t.parent_id IS NULL THEN p.response IS NULL ELSE t.method IS NOT NULL AND t.response IS NULL END
        AS "awaitsResponse",
      extract(epoch FROM now() - t.created_at)::float8 * 1000 AS "ageMs",
      extract(epoch FROM now() - t.succeeded_at)::float8 * 1000 AS "sinceSuccessMs",
      extract(epoch FROM now() - t.updated_at)::float8 * 1000 AS "sinceReportMs",
      (SELECT count(*)::integer FROM movement_correction c WHERE c.account_id = $1 AND c.transaction_id = t.id) AS corrections,
      (SELECT coalesce(sum(c.amount_minor_units), 0)::bigint FROM movement_correction c
        WHERE c.account_id = $1 AND c.transaction_id = t.id) AS "correctedMinorUnits",
      CASE WHEN row_number() OVER (ORDER BY t.created_at, t.id) = 1 THEN p.record END AS record, p.version,
      p.card_fingerprint AS "cardFingerprint", p.captured_minor_units AS "capturedMinorUnits", p.refunded_minor_units AS "refundedMinorUnits",
      p.released AS "isReleased", p.open_operation AS "openOperation"
    FROM payment p JOIN transaction t ON t.account_id = $1 AND t.payment_id = $2
    WHERE p.account_id = $1 AND p.id = $2 ORDER BY t.created_at, t.id`,
};

type StateRow = Nullable<TransactionRow> & Nullable<StoredPayment>;

/** Reads a payment of an account with its transactions. @param paymentId a UUID. */
export async function readPaymentState(
  database: Database,
  accountId: string,
  paymentId: string,
): Promise<StoredState | undefined> {
  const { rows } = await database.query<StateRow>(READ, [accountId, paymentId]);
  const states = rows.map((row) => {
    const { record, version, cardFingerprint, openOperation, ...rest } = row;
    const { capturedMinorUnits, refundedMinorUnits, isReleased, ...own } = rest;
    const books = { capturedMinorUnits, refundedMinorUnits, isReleased };
    const payment = { record, version, cardFingerprint, openOperation, ...books };
    return { payment, transaction: withoutNulls<TransactionRow>(own) };
  });
  if (!states[0]) return undefined;
  return {
    payment: withoutNulls<StoredPayment>(states[0].payment),
    transactions: states.map(({ transaction }) => transaction),
  };
}
