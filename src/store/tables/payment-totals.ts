import type { Database, Statement } from '../engine/database.ts';
import { NIL_UUID } from '../engine/rows.ts';
import { addUp, IN_ACCOUNTS, searchAccounts } from '../engine/search-accounts.ts';
import type { PaymentOutcome } from './outcome-of-payment.ts';
import { addTotals, type RecentTotal, type TotalCounts } from './replace-totals.ts';

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
} & TotalCounts;

/** Whose totals a statement reads: of an account by the primary key, of all by the index on hours. */
type Of = 'account' | 'all';
const inScope = { account: 'account_id = $5 AND', all: IN_ACCOUNTS };

// A union, so that each side reads its hours by the index.
const ofPeriod = (table: string, of: Of) => `(
      SELECT *, width_bucket(hour, $1::timestamptz[]) - 1 AS part FROM ${table}
      WHERE ${inScope[of]} hour >= ($1::timestamptz[])[1] AND hour < $2
      UNION ALL
      SELECT *, -1 FROM ${table} WHERE ${inScope[of]} hour >= $3 AND hour < $4
    ) t`;

const sums = (of: Of) => ({
  name: of === 'all' ? 'sum_payment_totals' : 'sum_payment_totals_of_account',
  text: `
    SELECT part, connection_id AS "connectionId", method_type AS "methodType", currency, outcome,
      sum(payments)::integer AS payments, sum(approved_minor_units)::bigint AS "approvedMinorUnits",
      sum(refunds)::integer AS refunds, sum(refunded_minor_units)::bigint AS "refundedMinorUnits",
      sum(disputes)::integer AS disputes
    FROM ${ofPeriod('payment_total', of)}
    WHERE outcome <> 'NIGHT'
    GROUP BY 1, 2, 3, 4, 5`,
});
const SUMS = { account: sums('account'), all: sums('all') };

/** Reads sums of an account, or of all accounts, which may be on several nodes. */
async function readSums<Row extends object>(
  database: Database,
  statements: Readonly<Record<Of, Statement>>,
  { starts, before, past }: TotalsPeriod,
  accountId: string | undefined,
): Promise<readonly Row[]> {
  const values = [starts, before, past.from, past.before];
  if (accountId === undefined) return searchAccounts<Row>(database, statements.all, values);
  return (await database.query<Row>(statements.account, [...values, accountId])).rows;
}

/** Adds up the totals of a period and of the time before it. @param accountId undefined for all accounts. */
export async function sumTotals(
  database: Database,
  period: TotalsPeriod,
  accountId?: string,
): Promise<Total[]> {
  return addUp(
    await readSums<Total>(database, SUMS, period, accountId),
    (one) => [one.part, one.connectionId, one.methodType, one.currency, one.outcome].join('\n'),
    addTotals,
  );
}

/** Sums of the payments with the same country or code and outcome, in a period or the time before it. */
export type RecentSum = Omit<RecentTotal, 'hour'> & { readonly isPast: boolean };

const recentSums = (of: Of) => ({
  name: of === 'all' ? 'sum_recent_payment_totals' : 'sum_recent_payment_totals_of_account',
  text: `
    SELECT part < 0 AS "isPast", kind, name, outcome, sum(payments)::integer AS payments
    FROM ${ofPeriod('recent_payment_total', of)}
    GROUP BY 1, 2, 3, 4`,
});
const RECENT_SUMS = { account: recentSums('account'), all: recentSums('all') };

/** Adds up the totals by country and by code, of which there are two days. */
export async function sumRecentTotals(
  database: Database,
  period: TotalsPeriod,
  accountId?: string,
): Promise<RecentSum[]> {
  return addUp(
    await readSums<RecentSum>(database, RECENT_SUMS, period, accountId),
    ({ isPast, kind, name, outcome }) => [isPast, kind, name, outcome].join('\n'),
    (a, b) => ({ ...a, payments: a.payments + b.payments }),
  );
}
