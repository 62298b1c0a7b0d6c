import { Transaction_Type } from '#gen/payments/v1/payment_pb.js';
import { movedBy } from '#src/payments/model/movement.ts';
import { IS_OPEN_ATTEMPT } from '../engine/checks.ts';
import type { Database } from '../engine/database.ts';
import { NIL_UUID } from '../engine/rows.ts';
import { STEP_TIMEOUT_MS } from '../engine/sweep.ts';
import { IS_APPROVAL, outcomeOf, type PaymentOutcome } from './outcome-of-payment.ts';

/** Whole hours of one account. */
export type HoursOf = { readonly accountId: string; readonly from: Date; readonly before: Date };

/** A total of the payments that were created in an hour and have the same connection, method, currency, country and outcome. */
export type HourTotal = {
  readonly hour: Date;
  /** Of the last attempt. */
  readonly connectionId: string;
  readonly methodType: string;
  readonly currency: string;
  readonly country: string;
  readonly outcome: PaymentOutcome;
} & TotalCounts;

/** The counts and sums of a total. */
export type TotalCounts = {
  readonly payments: number;
  readonly approvedMinorUnits: bigint;
  readonly refunds: number;
  readonly refundedMinorUnits: bigint;
  readonly disputes: number;
};

/** Adds the counts and sums of two totals that are otherwise alike. */
export function addTotals<T extends TotalCounts>(a: T, b: T): T {
  return {
    ...a,
    payments: a.payments + b.payments,
    approvedMinorUnits: a.approvedMinorUnits + b.approvedMinorUnits,
    refunds: a.refunds + b.refunds,
    refundedMinorUnits: a.refundedMinorUnits + b.refundedMinorUnits,
    disputes: a.disputes + b.disputes,
  };
}

/** A total of the payments that were created in an hour and have the same country, or were declined with the same code. */
export type RecentTotal = {
  readonly hour: Date;
  readonly kind: 'COUNTRY' | 'CODE';
  readonly name: string;
  readonly outcome: PaymentOutcome;
  readonly payments: number;
};

/** Position of a payment by its time. */
type Position = { readonly createdAt: string; readonly id: string };

/** Number of payments that a statement reads. */
const AT_ONCE = 5_000;
const DECLINED_AT_ONCE = 500;

const TYPES = Object.keys(Transaction_Type).filter((name) => /^[A-Z]+$/.test(name));

/** SQL: a transaction moves money to the merchant (1) or from the merchant (-1), as in the export of movements. */
function moves(sign: 1 | -1): string {
  const kinds = TYPES.flatMap((type) => [true, false].map((capture) => ({ type, capture, minorUnits: 1n })));
  const moving = kinds.filter((kind) => movedBy(kind) === BigInt(sign));
  const rows = moving.map(({ type, capture }) => `('${type}', ${capture})`);
  return `status = 'SUCCEEDED' AND (type, capture) IN (${rows.join(', ')})`;
}

const POSITION = `to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "createdAt", id`;

// The last payment of the part that the next statement adds up.
const END_OF_PART = {
  name: 'end_totals_part',
  text: `
    SELECT ${POSITION} FROM payment
    WHERE account_id = $1 AND (created_at, id) > ($2::timestamptz, $3::uuid) AND created_at < $4::timestamptz
    ORDER BY created_at, id OFFSET ${AT_ONCE - 1} LIMIT 1`,
};

// A payment's transactions are read by a scalar subquery, so that they are always found by the payment: a join might read all.
const OF_TRANSACTIONS = `(
          SELECT ARRAY[
            coalesce((array_agg(t.connection_id ORDER BY t.id DESC) FILTER (WHERE t.parent_id IS NULL))[1], ''),
            coalesce(bool_or(t.is_approval), false)::text, coalesce(bool_or(t.is_unknown), false)::text,
            coalesce(sum(t.amount_minor_units) FILTER (WHERE t.is_taken), 0)::text, count(*) FILTER (WHERE t.is_returned)::text,
            coalesce(sum(t.amount_minor_units) FILTER (WHERE t.is_returned), 0)::text,
            count(*) FILTER (WHERE t.type = 'CHARGEBACK')::text
          ] FROM (
            SELECT id, parent_id, type, connection_id, amount_minor_units, ${IS_APPROVAL} AS is_approval,
              ${IS_OPEN_ATTEMPT} AS is_unknown, ${moves(1)} AS is_taken, ${moves(-1)} AS is_returned
            FROM transaction WHERE account_id = $1 AND payment_id = p.id OFFSET 0
          ) t
        )`;
const ADD_UP = {
  name: 'add_up_totals',
  text: `
    SELECT date_trunc('hour', o.created_at, 'UTC') AS hour, o.facts[1] AS "connectionId", o.method_type AS "methodType",
      o.currency, o.country, ${outcomeOf('o.facts[2]::boolean', 'o.facts[3]::boolean', 'o.status')} AS outcome,
      count(*)::integer AS payments, sum(o.facts[4]::bigint)::bigint AS "approvedMinorUnits",
      sum(o.facts[5]::integer)::integer AS refunds, sum(o.facts[6]::bigint)::bigint AS "refundedMinorUnits",
      sum(o.facts[7]::integer)::integer AS disputes
    FROM (
      SELECT p.created_at, p.method_type, p.currency, p.country, p.status, ${OF_TRANSACTIONS} AS facts
      FROM (
        SELECT * FROM payment
        WHERE account_id = $1 AND (created_at, id) > ($2::timestamptz, $3::uuid)
          AND (created_at, id) <= ($4::timestamptz, $5::uuid)
        ORDER BY created_at, id LIMIT ${AT_ONCE}
      ) p
      OFFSET 0
    ) o
    GROUP BY 1, 2, 3, 4, 5, 6`,
  // Planned for its values: a plan for any period might sort all payments.
  isPrepared: false,
};

/**
 * Adds up an account's payments, up to AT_ONCE at a time.
 *
 * @param after where the part begins; undefined for the first.
 * @returns the totals of the part, and where the next begins; undefined at the end.
 */
export async function addUpPayments(
  database: Database,
  { accountId, from, before }: HoursOf,
  after: Position | undefined,
): Promise<{ readonly totals: readonly HourTotal[]; readonly next: Position | undefined }> {
  const start = [accountId, after?.createdAt ?? from, after?.id ?? NIL_UUID];
  const next = (await database.query<Position>(END_OF_PART, [...start, before])).rows[0];
  // No id is before the nil UUID, so that nothing of the next hour is added.
  const end = next ? [next.createdAt, next.id] : [before, NIL_UUID];
  const { rows } = await database.query<HourTotal>(ADD_UP, [...start, ...end]);
  return { totals: rows, next };
}

/** The record of a declined payment. */
export type DeclinedPayment = Position & { readonly hour: Date; readonly record: Uint8Array };

const DECLINED = {
  name: 'list_declined_payments',
  text: `
    SELECT ${POSITION}, date_trunc('hour', created_at, 'UTC') AS hour, record FROM payment
    WHERE account_id = $1 AND status = 'DECLINED' AND (created_at, id) > ($2::timestamptz, $3::uuid)
      AND created_at < $4::timestamptz
    ORDER BY created_at, id LIMIT ${DECLINED_AT_ONCE}`,
};

/** Lists an account's declined payments part by part, oldest first. */
export async function* listDeclined(
  database: Database,
  { accountId, from, before }: HoursOf,
): AsyncGenerator<readonly DeclinedPayment[], void> {
  for (let after: Position | undefined; ; ) {
    const values = [accountId, after?.createdAt ?? from, after?.id ?? NIL_UUID, before];
    const { rows } = await database.query<DeclinedPayment>(DECLINED, values);
    yield rows;
    after = rows.at(-1);
    if (rows.length < DECLINED_AT_ONCE) return;
  }
}

const DELETE = 'DELETE FROM payment_total WHERE account_id = $1 AND hour >= $2 AND hour < $3';
const DELETE_RECENT = 'DELETE FROM recent_payment_total WHERE account_id = $1 AND hour >= $2 AND hour < $3';
const INSERT = `
  INSERT INTO payment_total (account_id, hour, connection_id, method_type, currency, outcome, payments,
    approved_minor_units, refunds, refunded_minor_units, disputes)
  SELECT $1::uuid, * FROM unnest($2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::integer[], $8::bigint[],
    $9::integer[], $10::bigint[], $11::integer[])
  ON CONFLICT (account_id, hour, connection_id, method_type, currency, outcome) DO UPDATE
  SET payments = excluded.payments, approved_minor_units = excluded.approved_minor_units, refunds = excluded.refunds,
    refunded_minor_units = excluded.refunded_minor_units, disputes = excluded.disputes`;
const INSERT_RECENT = `
  INSERT INTO recent_payment_total (account_id, hour, kind, name, outcome, payments)
  SELECT $1::uuid, * FROM unnest($2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::integer[])
  ON CONFLICT (account_id, hour, kind, name, outcome) DO UPDATE SET payments = excluded.payments`;

/**
 * Replaces an account's totals of some hours, in one commit. Two replicas write the same; if one has read earlier than the
 * other, the next run corrects it.
 */
export function replaceTotals(
  database: Database,
  { accountId, from, before }: HoursOf,
  { totals, recent }: { readonly totals: readonly HourTotal[]; readonly recent: readonly RecentTotal[] },
): Promise<void> {
  const columns = <Row>(rows: readonly Row[], names: readonly (keyof Row)[]) =>
    names.map((name) => rows.map((row) => row[name]));
  const written = columns(totals, [
    ...([
      'hour',
      'connectionId',
      'methodType',
      'currency',
      'outcome',
      'payments',
      'approvedMinorUnits',
    ] as const),
    ...(['refunds', 'refundedMinorUnits', 'disputes'] as const),
  ]);
  const writtenRecent = columns(recent, ['hour', 'kind', 'name', 'outcome', 'payments']);
  return database.transaction(async (run) => {
    await run(DELETE, [accountId, from, before]);
    if (totals.length > 0) await run(INSERT, [accountId, ...written]);
    await run(DELETE_RECENT, [accountId, from, before]);
    if (recent.length > 0) await run(INSERT_RECENT, [accountId, ...writtenRecent]);
  }, STEP_TIMEOUT_MS);
}
