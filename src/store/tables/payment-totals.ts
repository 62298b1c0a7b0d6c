import type { Database } from '../engine/database.ts';
import { NIL_UUID } from '../engine/rows.ts';
import { addUp, IN_ACCOUNTS, searchAccounts } from '../engine/search-accounts.ts';
import { STEP_TIMEOUT_MS } from '../engine/sweep.ts';

// Purchases with capture, and captures, move money to the merchant, as in the export of movements.
const MOVES = `t.succeeded_at IS NOT NULL AND t.status = 'SUCCEEDED' AND (t.type = 'PURCHASE' AND t.capture OR t.type = 'CAPTURE')`;
const REFUNDS = `t.type = 'REFUND' AND t.status = 'SUCCEEDED'`;

const DELETE = 'DELETE FROM payment_total WHERE account_id = $1 AND hour >= $2 AND hour < $3';
const INSERT = `
  INSERT INTO payment_total (account_id, hour, connection_id, method_type, currency, outcome, payments,
    approved_minor_units, refunds, refunded_minor_units, disputes)
  SELECT $1::uuid, date_trunc('hour', o.created_at, 'UTC'), o.connection_id, o.method_type, o.currency,
    CASE WHEN o.is_approved THEN 'APPROVED' WHEN o.status = 'DECLINED' THEN 'DECLINED'
      WHEN o.status IN ('ERROR', 'EXPIRED', 'CANCELED') THEN 'FAILED' ELSE 'OPEN' END,
    count(*), sum(o.approved), sum(o.refunds), sum(o.refunded), sum(o.disputes)
  FROM (
    SELECT p.created_at, p.method_type, p.currency, p.status,
      coalesce((array_agg(t.connection_id ORDER BY t.id DESC) FILTER (WHERE t.parent_id IS NULL))[1], '') AS connection_id,
      coalesce(bool_or(t.parent_id IS NULL AND t.status = 'SUCCEEDED'), false) AS is_approved,
      coalesce(sum(t.amount_minor_units) FILTER (WHERE ${MOVES}), 0) AS approved,
      count(*) FILTER (WHERE ${REFUNDS}) AS refunds,
      coalesce(sum(t.amount_minor_units) FILTER (WHERE ${REFUNDS}), 0) AS refunded,
      count(*) FILTER (WHERE t.type = 'CHARGEBACK') AS disputes
    FROM payment p JOIN transaction t ON t.account_id = $1 AND t.payment_id = p.id
    WHERE p.account_id = $1 AND p.created_at >= $2 AND p.created_at < $3
    GROUP BY p.account_id, p.id
  ) o
  GROUP BY 2, 3, 4, 5, 6
  ON CONFLICT (account_id, hour, connection_id, method_type, currency, outcome) DO UPDATE
  SET payments = excluded.payments, approved_minor_units = excluded.approved_minor_units, refunds = excluded.refunds,
    refunded_minor_units = excluded.refunded_minor_units, disputes = excluded.disputes
  RETURNING 1`;

/**
 * Writes an account's totals of some hours again, in one commit. Two replicas write the same; if one has read earlier than
 * the other, the next run corrects it.
 *
 * @param from, before whole hours.
 * @returns the number of totals.
 */
export function writeTotals(
  database: Database,
  accountId: string,
  from: Date,
  before: Date,
): Promise<number> {
  return database.transaction(async (run) => {
    await run(DELETE, [accountId, from, before]);
    return (await run(INSERT, [accountId, from, before])).rows.length;
  }, STEP_TIMEOUT_MS);
}

const NIGHT = {
  name: 'find_night_of_totals',
  text: `SELECT 1 FROM payment_total WHERE account_id = $1 AND hour = $2 AND outcome = 'NIGHT'`,
};
const MARK = {
  name: 'mark_night_of_totals',
  text: `
    INSERT INTO payment_total (account_id, hour, connection_id, method_type, currency, outcome, payments,
      approved_minor_units, refunds, refunded_minor_units, disputes)
    VALUES ($1, $2, '', '', '', 'NIGHT', 0, 0, 0, 0, 0) ON CONFLICT DO NOTHING`,
};

/** Tells whether the totals of the last 35 days have been written on a day. @param day its first hour. */
export async function isNightDone(database: Database, day: Date): Promise<boolean> {
  return (await database.query(NIGHT, [NIL_UUID, day])).rows.length > 0;
}

/** Remembers that they have. */
export async function markNight(database: Database, day: Date): Promise<void> {
  await database.query(MARK, [NIL_UUID, day]);
}

/** Totals of payments with the same connection, method, currency and outcome in one part of a period. */
export type Total = {
  /** The number of the part, from 0; negative in the period before. */
  readonly part: number;
  readonly connectionId: string;
  readonly methodType: string;
  readonly currency: string;
  readonly outcome: 'APPROVED' | 'DECLINED' | 'FAILED' | 'OPEN';
  readonly payments: number;
  readonly approvedMinorUnits: bigint;
  readonly refunds: number;
  readonly refundedMinorUnits: bigint;
  readonly disputes: number;
};

const SUMS = {
  name: 'sum_payment_totals',
  text: `
    SELECT floor(date_part('epoch', hour - $1::timestamptz) / $4::float8)::integer AS part,
      connection_id AS "connectionId", method_type AS "methodType", currency, outcome,
      sum(payments)::integer AS payments, sum(approved_minor_units)::bigint AS "approvedMinorUnits",
      sum(refunds)::integer AS refunds, sum(refunded_minor_units)::bigint AS "refundedMinorUnits",
      sum(disputes)::integer AS disputes
    FROM payment_total
    WHERE ${IN_ACCOUNTS} hour >= $2 AND hour < $3 AND outcome <> 'NIGHT' AND ($5::uuid IS NULL OR account_id = $5)
    GROUP BY 1, 2, 3, 4, 5`,
};

/**
 * Adds up the totals of a period and of the time before it.
 *
 * @param period.since the first hour of the time before.
 * @param period.partS seconds of a part of the period.
 * @param accountId undefined for all accounts.
 */
export async function sumTotals(
  database: Database,
  period: { readonly since: Date; readonly from: Date; readonly before: Date; readonly partS: number },
  accountId?: string,
): Promise<Total[]> {
  const { since, from, before, partS } = period;
  const values = [from, since, before, partS, accountId ?? null];
  return addUp(
    await searchAccounts<Total>(database, SUMS, values),
    (one) => [one.part, one.connectionId, one.methodType, one.currency, one.outcome].join('\n'),
    (a, b) => ({
      ...a,
      payments: a.payments + b.payments,
      approvedMinorUnits: a.approvedMinorUnits + b.approvedMinorUnits,
      refunds: a.refunds + b.refunds,
      refundedMinorUnits: a.refundedMinorUnits + b.refundedMinorUnits,
      disputes: a.disputes + b.disputes,
    }),
  );
}
