import type { Database } from '../engine/database.ts';
import { NIL_UUID } from '../engine/rows.ts';
import { addUp, IN_ACCOUNTS, searchAccounts } from '../engine/search-accounts.ts';
import type { PaymentOutcome } from './outcome-of-payment.ts';
import type { RecentTotal } from './replace-totals.ts';

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

/** A period in parts, and the time before it. All times are whole hours. */
export type TotalsPeriod = {
  /** The beginning of each part, in order. */
  readonly starts: readonly Date[];
  readonly before: Date;
  /** The time before. */
  readonly past: { readonly from: Date; readonly before: Date };
};

/** Sums of the payments with the same connection, method, currency and outcome in a part of a period. */
export type Total = {
  /** The number of the part, from 0; -1 for the time before. */
  readonly part: number;
  readonly connectionId: string;
  readonly methodType: string;
  readonly currency: string;
  readonly outcome: PaymentOutcome;
  readonly payments: number;
  readonly approvedMinorUnits: bigint;
  readonly refunds: number;
  readonly refundedMinorUnits: bigint;
  readonly disputes: number;
};

// A union, so that each side reads its hours by the index.
const ofPeriod = (table: string) => `(
      SELECT *, width_bucket(hour, $1::timestamptz[]) - 1 AS part FROM ${table}
      WHERE ${IN_ACCOUNTS} hour >= ($1::timestamptz[])[1] AND hour < $2 AND ($5::uuid IS NULL OR account_id = $5)
      UNION ALL
      SELECT *, -1 FROM ${table}
      WHERE ${IN_ACCOUNTS} hour >= $3 AND hour < $4 AND ($5::uuid IS NULL OR account_id = $5)
    ) t`;

const SUMS = {
  name: 'sum_payment_totals',
  text: `
    SELECT part, connection_id AS "connectionId", method_type AS "methodType", currency, outcome,
      sum(payments)::integer AS payments, sum(approved_minor_units)::bigint AS "approvedMinorUnits",
      sum(refunds)::integer AS refunds, sum(refunded_minor_units)::bigint AS "refundedMinorUnits",
      sum(disputes)::integer AS disputes
    FROM ${ofPeriod('payment_total')}
    WHERE outcome <> 'NIGHT'
    GROUP BY 1, 2, 3, 4, 5`,
};

const valuesOf = ({ starts, before, past }: TotalsPeriod, accountId: string | undefined) => [
  starts,
  before,
  past.from,
  past.before,
  accountId ?? null,
];

/** Adds up the totals of a period and of the time before it. @param accountId undefined for all accounts. */
export async function sumTotals(
  database: Database,
  period: TotalsPeriod,
  accountId?: string,
): Promise<Total[]> {
  return addUp(
    await searchAccounts<Total>(database, SUMS, valuesOf(period, accountId)),
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

/** Sums of the payments with the same country or code and outcome, in a period or the time before it. */
export type RecentSum = Omit<RecentTotal, 'hour'> & { readonly isPast: boolean };

const RECENT_SUMS = {
  name: 'sum_recent_payment_totals',
  text: `
    SELECT part < 0 AS "isPast", kind, name, outcome, sum(payments)::integer AS payments
    FROM ${ofPeriod('recent_payment_total')}
    GROUP BY 1, 2, 3, 4`,
};

/** Adds up the totals by country and by code, of which there are two days. */
export async function sumRecentTotals(
  database: Database,
  period: TotalsPeriod,
  accountId?: string,
): Promise<RecentSum[]> {
  return addUp(
    await searchAccounts<RecentSum>(database, RECENT_SUMS, valuesOf(period, accountId)),
    ({ isPast, kind, name, outcome }) => [isPast, kind, name, outcome].join('\n'),
    (a, b) => ({ ...a, payments: a.payments + b.payments }),
  );
}
