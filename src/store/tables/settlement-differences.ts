import type { SettlementKind } from '#src/connectors/port/settlement-line.ts';
import { type Database, type Nullable, queriesOf } from '../engine/database.ts';
import { despiteDeadlocks } from '../engine/despite-deadlocks.ts';
import { withoutNulls } from '../engine/rows.ts';
import { IN_ACCOUNTS, searchAccounts } from '../engine/search-accounts.ts';
import { recordAction } from './audit-log.ts';

/** A transaction with one of its lines. */
export type MatchedRow = {
  readonly id: string;
  readonly paymentId: string;
  readonly connectionId: string;
  readonly type: string;
  readonly capture: boolean;
  readonly status: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  readonly succeededAt: Date | undefined;
  /** The payment's payment_method.type. */
  readonly methodType: string;
  readonly report: string;
  readonly kind: SettlementKind;
  readonly lineMinorUnits: bigint | undefined;
  readonly lineCurrency: string | undefined;
  readonly gross: bigint;
  readonly fee: bigint;
  readonly feeParts: number;
  readonly settlementCurrency: string;
  /** By the provider's clock; undefined if the report does not say it for certain. */
  readonly occurredAt: Date | undefined;
};

const MATCHED = {
  name: 'settlement_matched_rows',
  text: `
    SELECT t.id, t.payment_id AS "paymentId", t.connection_id AS "connectionId", t.type, t.capture, t.status,
      t.amount_minor_units AS "minorUnits", t.currency, m.report, m.kind, m.amount_minor_units AS "lineMinorUnits",
      m.currency AS "lineCurrency", m.gross, m.fee, m.fee_parts AS "feeParts",
      m.settlement_currency AS "settlementCurrency", t.succeeded_at AS "succeededAt", m.occurred_at AS "occurredAt",
      p.method_type AS "methodType"
    FROM settlement_match m JOIN transaction t ON t.account_id = $1 AND t.id = m.transaction_id
      JOIN payment p ON p.account_id = $1 AND p.id = t.payment_id
    WHERE m.account_id = $1 AND m.connection_identity = $2 AND m.transaction_id = ANY ($3::uuid[])`,
};

/** Reads transactions of an account with their lines, a row for each line. */
export async function matchedRows(
  database: Database,
  accountId: string,
  identity: string,
  transactionIds: readonly string[],
): Promise<MatchedRow[]> {
  const { rows } = await database.query<Nullable<MatchedRow>>(MATCHED, [accountId, identity, transactionIds]);
  return rows.map((row) => withoutNulls<MatchedRow>(row));
}

/** The kinds of difference between reports and the record, the most urgent first. */
export const DIFFERENCE_KINDS = [
  ...(['status_differs', 'amount_differs', 'currency_differs', 'duplicate', 'refund_reversed'] as const),
  ...(['missing_at_provider', 'unknown_line', 'ambiguous_line', 'payout_unbalanced'] as const),
  ...(['fee_unexpected', 'late'] as const),
];

/** A kind of difference. */
export type DifferenceKind = (typeof DIFFERENCE_KINDS)[number];

/** A difference that was found about a subject. */
export type FoundDifference = {
  readonly kind: DifferenceKind;
  readonly subject: string;
  readonly connectionId: string;
  readonly paymentId: string | undefined;
  readonly detail: string;
};

// Several processes may store the same differences: the order makes deadlocks rare.
const OPEN = {
  name: 'open_settlement_differences',
  text: `
    INSERT INTO settlement_difference AS d (account_id, connection_identity, kind, subject, connection_id, payment_id,
      detail)
    SELECT $1, $2, *
    FROM unnest($3::text[], $4::text[], $5::text[], $6::uuid[], $7::text[])
      AS found (kind, subject, connection_id, payment_id, detail)
    ORDER BY kind, subject
    ON CONFLICT (account_id, connection_identity, kind, subject) DO UPDATE
    SET detail = excluded.detail, ended_at = NULL, resolved_at = NULL, resolved_by = NULL, alarmed_at = NULL
    WHERE d.detail <> excluded.detail OR d.ended_at IS NOT NULL`,
};
const END = {
  name: 'end_settlement_differences',
  // Only a plan for these values hashes the thousands of subjects; any other compares each difference with each of them.
  isPrepared: false,
  text: `
    UPDATE settlement_difference SET ended_at = now()
    WHERE account_id = $1 AND connection_identity = $2 AND subject = ANY ($3::text[]) AND ended_at IS NULL
      AND kind || ' ' || subject <> ALL ($4::text[])`,
};

/** Stores the differences of an account's subjects, and ends those that are no longer there. May be repeated. */
export async function storeDifferences(
  database: Database,
  accountId: string,
  identity: string,
  { subjects, found }: { readonly subjects: readonly string[]; readonly found: readonly FoundDifference[] },
): Promise<void> {
  const columns = [
    ...[found.map(({ kind }) => kind), found.map(({ subject }) => subject)],
    ...[found.map(({ connectionId }) => connectionId), found.map(({ paymentId }) => paymentId ?? null)],
    found.map(({ detail }) => detail),
  ];
  const open = [accountId, identity, ...columns];
  if (found.length > 0) await despiteDeadlocks(() => database.query(OPEN, open));
  const names = found.map(({ kind, subject }) => `${kind} ${subject}`);
  await despiteDeadlocks(() => database.query(END, [accountId, identity, subjects, names]));
}

/** A difference that is there, resolved or not. */
export type StoredDifference = {
  readonly accountId: string;
  readonly connectionIdentity: string;
  readonly connectionId: string;
  readonly kind: string;
  readonly subject: string;
  readonly paymentId: string | undefined;
  readonly detail: string;
  readonly openedAt: Date;
  readonly resolvedAt: Date | undefined;
  readonly resolvedBy: string | undefined;
  readonly note: string;
};

/** Filter for differences; undefined for all. */
export type DifferenceFilter = {
  /** The account at the provider. */
  readonly identity?: string | undefined;
  readonly connectionId?: string | undefined;
  readonly kind?: string | undefined;
  readonly isResolved?: boolean | undefined;
};

const LIST = {
  name: 'list_settlement_differences',
  text: `
    SELECT account_id AS "accountId", connection_identity AS "connectionIdentity", connection_id AS "connectionId", kind,
      subject, payment_id AS "paymentId", detail, opened_at AS "openedAt", resolved_at AS "resolvedAt",
      resolved_by AS "resolvedBy", note
    FROM settlement_difference
    WHERE ${IN_ACCOUNTS} ended_at IS NULL AND ($1::text IS NULL OR connection_identity = $1)
      AND ($2::text IS NULL OR connection_id = $2) AND ($3::text IS NULL OR kind = $3)
      AND ($4::boolean IS NULL OR (resolved_at IS NOT NULL) = $4)
    ORDER BY resolved_at IS NOT NULL, kind <> 'status_differs', opened_at, subject LIMIT $5::integer`,
};

/**
 * Lists differences: unresolved first, payments that are settled against the record first among them, then the oldest.
 *
 * @param limit for each node.
 */
export async function listDifferences(
  database: Database,
  { identity = null, connectionId = null, kind = null, isResolved = null }: Nullable<DifferenceFilter>,
  limit: number,
): Promise<StoredDifference[]> {
  const values = [identity, connectionId, kind, isResolved, limit];
  const found = await searchAccounts<Nullable<StoredDifference>>(database, LIST, values);
  return found.map((row) => withoutNulls<StoredDifference>(row));
}

const countOf = (name: string, condition: string) => ({
  name,
  text: `
    SELECT count(*)::integer AS n FROM (
      SELECT 1 FROM settlement_difference
      WHERE ${IN_ACCOUNTS} ended_at IS NULL AND resolved_at IS NULL${condition}
      LIMIT $1::integer) open`,
});
const COUNT = countOf('count_settlement_differences', '');
// A statement of its own, so that the index by kind serves it.
const COUNT_OF_KIND = countOf('count_settlement_differences_of_kind', ' AND kind = $2');

/** Counts unresolved differences, up to `most`. @param kind undefined for every kind. */
export async function countDifferences(
  database: Database,
  most: number,
  kind?: DifferenceKind,
): Promise<number> {
  const rows = kind
    ? await searchAccounts<{ n: number }>(database, COUNT_OF_KIND, [most, kind])
    : await searchAccounts<{ n: number }>(database, COUNT, [most]);
  return Math.min(
    most,
    rows.reduce((sum, { n }) => sum + n, 0),
  );
}

const OPEN_SUBJECTS = {
  name: 'open_settlement_difference_subjects',
  text: `
    SELECT account_id AS "accountId", subject FROM settlement_difference
    WHERE ${IN_ACCOUNTS} connection_identity = $1 AND kind = ANY ($2::text[]) AND ended_at IS NULL
    ORDER BY opened_at DESC, subject LIMIT $3::integer`,
};

/** Reads what differences of some kinds are about, the newest first. @param limit for each node. */
export async function openSubjects(
  database: Database,
  identity: string,
  kinds: readonly string[],
  limit: number,
): Promise<readonly { readonly accountId: string; readonly subject: string }[]> {
  return searchAccounts(database, OPEN_SUBJECTS, [identity, kinds, limit]);
}

const TAKE_ALARMS = {
  name: 'take_settlement_alarms',
  text: `
    UPDATE settlement_difference SET alarmed_at = now()
    WHERE account_id = $1 AND connection_identity = $2 AND kind = $3 AND subject = ANY ($4::text[])
      AND ended_at IS NULL AND resolved_at IS NULL AND alarmed_at IS NULL
    RETURNING account_id AS "accountId", connection_id AS "connectionId", payment_id AS "paymentId", kind, subject,
      detail`,
};

/** A difference whose alarm is to be raised. */
export type DifferenceAlarm = FoundDifference & { readonly accountId: string };

/** Takes the alarms of an account's unresolved differences that nobody has taken. */
export async function takeAlarms(
  database: Database,
  accountId: string,
  identity: string,
  { kind, subjects }: { readonly kind: string; readonly subjects: readonly string[] },
): Promise<DifferenceAlarm[]> {
  const values = [accountId, identity, kind, subjects];
  const { rows } = await despiteDeadlocks(() =>
    database.query<Nullable<DifferenceAlarm>>(TAKE_ALARMS, values),
  );
  return rows.map((row) => withoutNulls<DifferenceAlarm>(row));
}

const OF_DIFFERENCE = `
  WHERE account_id = $1 AND connection_identity = $2 AND kind = $3 AND subject = $4 AND ended_at IS NULL
  RETURNING kind`;
// Two statements, since an engine of several nodes takes no time from a CASE.
const RESOLVE = `UPDATE settlement_difference SET resolved_at = now(), resolved_by = $5, note = $6 ${OF_DIFFERENCE}`;
const REOPEN = `UPDATE settlement_difference SET resolved_at = NULL, resolved_by = $5, note = $6 ${OF_DIFFERENCE}`;

/**
 * Resolves a difference with a note, or opens it again, with its entry in the audit log.
 *
 * @returns false if there is no such difference.
 */
export async function decideDifference(
  database: Database,
  { accountId, kind, subject }: Pick<StoredDifference, 'accountId' | 'kind' | 'subject'>,
  decision: {
    readonly identity: string;
    readonly isResolved: boolean;
    readonly actor: string;
    readonly note: string;
  },
): Promise<boolean> {
  const { identity, isResolved, actor, note } = decision;
  return database.transaction(async (run) => {
    const values = [accountId, identity, kind, subject, isResolved ? actor : null, note];
    if ((await run(isResolved ? RESOLVE : REOPEN, values)).rows.length === 0) return false;
    const action = isResolved ? 'resolve-difference' : 'reopen-difference';
    await recordAction(queriesOf(run), {
      ...{
        accountId,
        actor,
        action,
        subject: subject.slice(0, 300),
        detail: `${kind}: ${note}`.slice(0, 1_000),
      },
    });
    return true;
  });
}
