import type { SettlementKind } from '#src/connectors/port/settlement-line.ts';
import type { Database, Nullable } from '../engine/database.ts';
import { NIL_UUID, onlyRow, withoutNulls } from '../engine/rows.ts';
import { type ExportedPayment, OF_PAYMENT, ROWS_A_PAGE, type RowsOf, textOf } from './exported-rows.ts';

/** The columns of a line and of its match. Amounts are minor units, positive to the merchant. */
type ExportedAmounts = {
  /** The line's time or, without one, when it was stored. */
  readonly at: string;
  readonly identity: string;
  readonly key: string;
  readonly kind: SettlementKind;
  readonly report: string;
  readonly payoutReference: string | undefined;
  /** As the payer saw it. */
  readonly minorUnits: bigint | undefined;
  readonly currency: string | undefined;
  readonly gross: bigint;
  readonly fee: bigint;
  readonly tax: bigint;
  readonly net: bigint;
  readonly settlementCurrency: string;
};

/** The columns that only a line has. */
type LineOnly = {
  readonly connectionId: string;
  readonly rawKind: string;
  readonly providerReference: string | undefined;
  readonly disputeReference: string | undefined;
  readonly exchangeRate: string | undefined;
  readonly result: string;
};

/** A line of a report that settles a transaction, without the columns that only the line has. */
export type ExportedMatch = ExportedPayment & ExportedAmounts & { readonly transactionId: string };

/** A line of a report. Its columns of a payment, and `transactionId`, are '' if it settles none. */
export type ExportedLine = ExportedMatch & LineOnly;

const AMOUNTS = `l.connection_identity AS identity, l.line_key AS key, l.kind, l.report,
      l.payout_reference AS "payoutReference", l.amount_minor_units AS "minorUnits", l.currency, l.gross, l.fee, l.tax, l.net,
      l.settlement_currency AS "settlementCurrency"`;
const LINE_ONLY = `l.connection_id AS "connectionId", l.raw_kind AS "rawKind", l.provider_reference AS "providerReference",
      l.dispute_reference AS "disputeReference", l.exchange_rate AS "exchangeRate", l.result`;
const AT = 'coalesce(occurred_at, added_at)';

const MATCHED = {
  name: 'export_settlement_matches',
  text: `
    SELECT ${textOf('l.at')} AS at, l.transaction_id AS "transactionId", ${AMOUNTS}, ${OF_PAYMENT}
    FROM (
      SELECT *, ${AT} AS at FROM settlement_match
      WHERE account_id = $1 AND (${AT}, transaction_id, line_key) > ($2::timestamptz, $3::uuid, $4::text)
        AND ${AT} < $5::timestamptz
      ORDER BY ${AT}, transaction_id, line_key LIMIT ${ROWS_A_PAGE}
    ) l JOIN payment p ON p.account_id = $1 AND p.id = l.payment_id
    ORDER BY l.at, l.transaction_id, l.line_key`,
};

/** Reads the lines that settle an account's transactions, oldest first, up to ROWS_A_PAGE. */
export async function readMatches(
  database: Database,
  { accountId, from, until }: RowsOf,
  after: ExportedMatch | undefined,
): Promise<ExportedMatch[]> {
  const { at = from, transactionId = NIL_UUID, key = '' } = after ?? {};
  const values = [accountId, at, transactionId, key, until];
  return (await database.query<Nullable<ExportedMatch>>(MATCHED, values)).rows.map(withoutNulls);
}

const LINES = {
  name: 'export_settlement_lines_by_key',
  text: `
    SELECT l.line_key AS key, ${LINE_ONLY} FROM settlement_line l
    WHERE l.account_id = $1 AND l.connection_identity = $2 AND l.line_key = ANY ($3::text[])`,
};

/** Adds the columns that only lines have to some of a page. */
export async function withLines(
  database: Database,
  matches: readonly ExportedMatch[],
): Promise<ExportedLine[]> {
  const found = new Map<string, LineOnly>();
  const nameOf = (identity: string, key: string) => JSON.stringify([identity, key]);
  for (const [identity, own] of Map.groupBy(matches, (one) => one.identity)) {
    const values = [NIL_UUID, identity, own.map(({ key }) => key)];
    const { rows } = await database.query<Nullable<LineOnly & { key: string }>>(LINES, values);
    for (const { key, ...line } of rows.map((row) => withoutNulls<LineOnly & { key: string }>(row)))
      found.set(nameOf(identity, key), line);
  }
  return matches.flatMap((match) => {
    const line = found.get(nameOf(match.identity, match.key));
    return line ? [{ ...match, ...line }] : [];
  });
}

const NO_PAYMENT = `'' AS "accountId", '' AS "paymentId", '' AS "transactionId", '' AS "merchantOrderId", '' AS "methodType",
      '' AS "cardBrand", '' AS "cardLastFour", '' AS country, NULL AS "customerId"`;

const UNMATCHED = {
  name: 'export_settlement_lines',
  text: `
    SELECT ${textOf(AT)} AS at, ${AMOUNTS}, ${LINE_ONLY}, ${NO_PAYMENT}
    FROM settlement_line l
    WHERE l.account_id = $1 AND (${AT}, l.connection_identity, l.line_key) > ($2::timestamptz, $3::text, $4::text)
      AND ${AT} < $5::timestamptz AND l.result IN ('unmatched', 'ambiguous', 'none_expected')
    ORDER BY ${AT}, l.connection_identity, l.line_key LIMIT ${ROWS_A_PAGE}`,
};

/** Reads the lines that settle no transaction, oldest first, up to ROWS_A_PAGE. */
export async function readUnmatchedLines(
  database: Database,
  { from, until }: Omit<RowsOf, 'accountId'>,
  after: ExportedLine | undefined,
): Promise<ExportedLine[]> {
  const { at = from, identity = '', key = '' } = after ?? {};
  const values = [NIL_UUID, at, identity, key, until];
  return (await database.query<Nullable<ExportedLine>>(UNMATCHED, values)).rows.map(withoutNulls);
}

const MATCHING = {
  name: 'export_settlement_matching',
  text: `
    SELECT ${textOf('now()')} AS now, coalesce(bool_or(leased_until >= coalesce($2::timestamptz, now())), false) AS "isMatching"
    FROM settlement_progress WHERE account_id = $1`,
};

/**
 * Tells whether lines are being matched now or, with `since`, were at any time since then: they move from no account to
 * that of their payment.
 */
export async function readMatching(
  database: Database,
  since?: string,
): Promise<{ readonly now: string; readonly isMatching: boolean }> {
  const values = [NIL_UUID, since ?? null];
  return onlyRow(await database.query<{ now: string; isMatching: boolean }>(MATCHING, values));
}

/** A difference between reports and the record. Its columns of a payment are '' if it is about none. */
export type ExportedDifference = ExportedPayment & {
  readonly openedAt: string;
  readonly endedAt: string | undefined;
  readonly resolvedAt: string | undefined;
  readonly identity: string;
  readonly kind: string;
  readonly subject: string;
  readonly detail: string;
  readonly connectionId: string;
};

const DIFFERENCES = {
  name: 'export_settlement_differences',
  text: `
    SELECT ${textOf('d.opened_at')} AS "openedAt", ${textOf('d.ended_at')} AS "endedAt",
      ${textOf('d.resolved_at')} AS "resolvedAt", d.connection_identity AS identity, d.kind, d.subject, d.detail,
      d.connection_id AS "connectionId", coalesce(p.account_id::text, '') AS "accountId",
      coalesce(p.id::text, '') AS "paymentId", coalesce(p.merchant_order_id, '') AS "merchantOrderId",
      coalesce(p.method_type, '') AS "methodType", coalesce(p.card_brand, '') AS "cardBrand",
      coalesce(p.card_last_four, '') AS "cardLastFour", coalesce(p.country, '') AS country, p.customer_id AS "customerId"
    FROM (
      SELECT * FROM settlement_difference
      WHERE account_id = $1 AND opened_at < $6::timestamptz
        AND (opened_at, connection_identity, kind, subject) > ($2::timestamptz, $3::text, $4::text, $5::text)
      ORDER BY opened_at, connection_identity, kind, subject LIMIT ${ROWS_A_PAGE}
    ) d LEFT JOIN payment p ON p.account_id = $1 AND p.id = d.payment_id
    ORDER BY d.opened_at, d.connection_identity, d.kind, d.subject`,
};

/** Reads the differences about an account's payments, or about none (NIL_UUID), oldest first, up to ROWS_A_PAGE. */
export async function readDifferences(
  database: Database,
  { accountId, from, until }: RowsOf,
  after: ExportedDifference | undefined,
): Promise<ExportedDifference[]> {
  const { openedAt = from, identity = '', kind = '', subject = '' } = after ?? {};
  const values = [accountId, openedAt, identity, kind, subject, until];
  return (await database.query<Nullable<ExportedDifference>>(DIFFERENCES, values)).rows.map(withoutNulls);
}
