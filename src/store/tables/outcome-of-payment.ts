/**
 * Outcomes of a payment, as figures count them and a search finds them. APPROVED: an attempt succeeded, whatever happened
 * since. UNKNOWN: the outcome of an attempt is unknown. FAILED: not sent, expired, or canceled before an approval. OPEN:
 * waits for its payer.
 */
export const OUTCOMES = ['APPROVED', 'UNKNOWN', 'DECLINED', 'FAILED', 'OPEN'] as const;

/** Outcome of a payment. */
export type PaymentOutcome = (typeof OUTCOMES)[number];

/**
 * Returns the SQL that decides a payment's outcome.
 *
 * @param isApproved SQL: whether an attempt succeeded.
 * @param isUnknown SQL: whether the outcome of an attempt is unknown.
 * @param status SQL: the payment's status.
 */
export function outcomeOf(isApproved: string, isUnknown: string, status: string): string {
  return `CASE WHEN ${isApproved} THEN 'APPROVED' WHEN ${isUnknown} THEN 'UNKNOWN'
      WHEN ${status} = 'DECLINED' THEN 'DECLINED' WHEN ${status} IN ('ERROR', 'EXPIRED', 'CANCELED') THEN 'FAILED'
      ELSE 'OPEN' END`;
}

/** SQL: a transaction is an attempt that succeeded. */
export const IS_APPROVAL = `parent_id IS NULL AND status = 'SUCCEEDED'`;
