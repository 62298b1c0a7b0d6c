import type { SettlementKind } from '#src/connectors/port/settlement-line.ts';
import type { Database, Nullable } from '../engine/database.ts';
import { NIL_UUID, withoutNulls } from '../engine/rows.ts';

/** A payout of an account at a provider. */
export type Payout = { readonly identity: string; readonly reference: string };

/** Signed sums in minor units of a currency, positive to the merchant. */
export type PayoutAmounts = {
  readonly gross: bigint;
  readonly fee: bigint;
  readonly tax: bigint;
  readonly net: bigint;
  /** The currency of the four. */
  readonly settlementCurrency: string;
};

/** The lines of a payout of one kind and currency. */
export type PayoutSums = PayoutAmounts & {
  readonly kind: SettlementKind;
  readonly lines: number;
  readonly connectionId: string;
  /** The last time of a line; undefined if no line has one. */
  readonly lastAt: Date | undefined;
};

/** The lines of an import that has not ended do not count. */
const COUNTS = `NOT EXISTS (
      SELECT 1 FROM settlement_file f WHERE f.account_id = $1 AND f.id = file_id AND f.completed_at IS NULL)`;
const OF_PAYOUT = `connection_identity = $2 AND payout_reference = $3 AND ${COUNTS}`;

const SUMS = {
  name: 'sum_payout_by_kind',
  text: `
    SELECT kind, settlement_currency AS "settlementCurrency", count(*)::integer AS lines, sum(gross)::bigint AS gross,
      sum(fee)::bigint AS fee, sum(tax)::bigint AS tax, sum(net)::bigint AS net, min(connection_id) AS "connectionId",
      max(occurred_at) AS "lastAt"
    FROM settlement_line WHERE account_id = $1 AND ${OF_PAYOUT}
    GROUP BY kind, settlement_currency ORDER BY settlement_currency, kind`,
};

/** Adds up the lines of a payout by kind and currency. */
export async function sumPayoutByKind(
  database: Database,
  { identity, reference }: Payout,
): Promise<PayoutSums[]> {
  const { rows } = await database.query<Nullable<PayoutSums>>(SUMS, [NIL_UUID, identity, reference]);
  return rows.map((row) => withoutNulls<PayoutSums>(row));
}

/** The sum of a payout's lines in one currency, with the payout itself. */
export type PayoutSum = {
  readonly reference: string;
  readonly currency: string;
  readonly remainder: bigint;
  readonly hasPayout: boolean;
  readonly hasLines: boolean;
};

const REMAINDERS = {
  name: 'sum_settlement_payouts',
  // Any other plan compares each line of the account with each payout.
  isPrepared: false,
  text: `
    SELECT payout_reference AS reference, settlement_currency AS currency, sum(net)::bigint AS remainder,
      bool_or(kind IN ('payout', 'payout_reversal')) AS "hasPayout",
      bool_or(kind NOT IN ('payout', 'payout_reversal')) AS "hasLines"
    FROM settlement_line
    WHERE account_id = $1 AND connection_identity = $2 AND payout_reference = ANY ($3::text[]) AND ${COUNTS}
    GROUP BY payout_reference, settlement_currency`,
};

/** Adds up payouts over all complete files. */
export async function sumPayouts(
  database: Database,
  identity: string,
  references: readonly string[],
): Promise<PayoutSum[]> {
  return (await database.query<PayoutSum>(REMAINDERS, [NIL_UUID, identity, references])).rows;
}

/** Number of lines of a file whose payouts are read at once. */
const LINES_OF_FILE = 100_000;
const OF_FILE = {
  name: 'settlement_payouts_of_file',
  text: `
    SELECT payout_reference AS reference, max(line_number) AS "lastLine" FROM (
      SELECT payout_reference, line_number FROM settlement_line
      WHERE account_id = $1 AND file_id = $2 AND line_number > $3 ORDER BY line_number LIMIT ${LINES_OF_FILE}
    ) page GROUP BY payout_reference`,
};

/** Reads the references of the payouts that a file has lines of. */
export async function payoutsOfFile(database: Database, fileId: string): Promise<string[]> {
  type Row = { readonly reference: string | null; readonly lastLine: number };
  const found = new Set<string>();
  for (let after = 0, isMore = true; isMore; ) {
    const { rows } = await database.query<Row>(OF_FILE, [NIL_UUID, fileId, after]);
    for (const { reference, lastLine } of rows) {
      if (reference !== null) found.add(reference);
      after = Math.max(after, lastLine);
    }
    isMore = rows.length > 0;
  }
  return [...found];
}

/** A line of a payout. */
export type PayoutLine = PayoutAmounts & {
  readonly key: string;
  /** The time of the line, or -infinity, as text: with the key, its position. */
  readonly at: string;
  readonly occurredAt: Date | undefined;
  readonly kind: SettlementKind;
  /** The provider's word. */
  readonly rawKind: string;
  readonly ourId: string | undefined;
  readonly providerReference: string | undefined;
  /** As the payer saw it. */
  readonly minorUnits: bigint | undefined;
  readonly currency: string | undefined;
  /** matched, unmatched, ambiguous or none_expected; undefined if its transaction was not searched yet. */
  readonly result: string | undefined;
};

const AT = "coalesce(occurred_at, '-infinity')";
const LINES = {
  name: 'list_payout_lines',
  text: `
    SELECT line_key AS key, ${AT}::text AS at, occurred_at AS "occurredAt", kind, raw_kind AS "rawKind", our_id AS "ourId",
      provider_reference AS "providerReference", amount_minor_units AS "minorUnits", currency, gross, fee, tax, net,
      settlement_currency AS "settlementCurrency", result
    FROM settlement_line
    WHERE account_id = $1 AND ${OF_PAYOUT} AND (${AT}, line_key) > ($4::timestamptz, $5::text)
    ORDER BY ${AT}, line_key LIMIT $6::integer`,
};

/** Lists lines of a payout, oldest first. @param after the line after which the page begins. */
export async function listPayoutLines(
  database: Database,
  { identity, reference }: Payout,
  after: Pick<PayoutLine, 'at' | 'key'> | undefined,
  limit: number,
): Promise<PayoutLine[]> {
  const { at, key } = after ?? { at: '-infinity', key: '' };
  const values = [NIL_UUID, identity, reference, at, key, limit];
  const { rows } = await database.query<Nullable<PayoutLine>>(LINES, values);
  return rows.map((row) => withoutNulls<PayoutLine>(row));
}

const PAID = {
  name: 'find_paid_payouts',
  text: `
    SELECT payout_reference AS reference, max(occurred_at) AS "paidAt", bool_or(kind = 'payout_reversal') AS "isReturned"
    FROM settlement_line
    WHERE account_id = $1 AND connection_identity = $2 AND payout_reference = ANY ($3::text[])
      AND kind IN ('payout', 'payout_reversal') AND ${COUNTS}
    GROUP BY payout_reference`,
};

/** A payout whose own line was imported. */
export type PaidPayout = {
  readonly reference: string;
  readonly paidAt: Date | undefined;
  /** true if the bank sent it back. */
  readonly isReturned: boolean;
};

/** Finds payouts whose own lines were imported. */
export async function findPaidPayouts(
  database: Database,
  identity: string,
  references: readonly string[],
): Promise<PaidPayout[]> {
  const { rows } = await database.query<Nullable<PaidPayout>>(PAID, [NIL_UUID, identity, references]);
  return rows.map((row) => withoutNulls<PaidPayout>(row));
}
