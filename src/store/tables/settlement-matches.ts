import type { SettlementKind } from '#src/connectors/port/settlement-line.ts';
import type { Database, Nullable } from '../engine/database.ts';
import { despiteDeadlocks } from '../engine/despite-deadlocks.ts';
import { NIL_UUID, withoutNulls } from '../engine/rows.ts';
import { IN_ACCOUNTS, searchAccounts } from '../engine/search-accounts.ts';

/** Number of lines that are matched at once: the lines of each account are written together. */
export const LINES_AT_ONCE = 8_000;

/** A line whose transaction is to be found. */
export type OpenLine = {
  readonly connectionIdentity: string;
  readonly key: string;
  readonly lineNumber: number;
  readonly kind: SettlementKind;
  readonly ourId: string | undefined;
  readonly providerReference: string | undefined;
  readonly parentReference: string | undefined;
  readonly disputeReference: string | undefined;
  readonly minorUnits: bigint | undefined;
  readonly currency: string | undefined;
  readonly connectionId: string;
  readonly payoutReference: string | undefined;
  readonly report: string;
  readonly gross: bigint;
  readonly fee: bigint;
  readonly tax: bigint;
  readonly net: bigint;
  readonly feeParts: number;
  readonly settlementCurrency: string;
  readonly occurredAt: Date | undefined;
  /** The result of an earlier search; undefined if there was none. */
  readonly result: string | undefined;
};

const LINE = `connection_identity AS "connectionIdentity", line_key AS key, line_number AS "lineNumber", kind,
      our_id AS "ourId", provider_reference AS "providerReference", parent_reference AS "parentReference",
      dispute_reference AS "disputeReference", amount_minor_units AS "minorUnits", currency,
      connection_id AS "connectionId", payout_reference AS "payoutReference", report, gross, fee,
      tax, net, fee_parts AS "feeParts",
      settlement_currency AS "settlementCurrency", occurred_at AS "occurredAt", result`;
const NEXT = {
  name: 'next_settlement_lines',
  text: `
    SELECT ${LINE} FROM settlement_line WHERE account_id = $1 AND file_id = $2 AND result IS NULL
    ORDER BY line_number LIMIT ${LINES_AT_ONCE}`,
};

/** Reads the next lines of a complete file whose transactions have not been searched. */
export async function nextLines(database: Database, fileId: string): Promise<OpenLine[]> {
  const { rows } = await database.query<Nullable<OpenLine>>(NEXT, [NIL_UUID, fileId]);
  return rows.map((row) => withoutNulls<OpenLine>(row));
}

const BY_KEY = {
  name: 'settlement_lines_of_keys',
  text: `
    SELECT ${LINE} FROM settlement_line
    WHERE account_id = $1 AND connection_identity = $2 AND line_key = ANY ($3::text[])`,
};

/** Reads lines of an account at a provider. */
export async function linesByKey(
  database: Database,
  identity: string,
  keys: readonly string[],
): Promise<OpenLine[]> {
  const { rows } = await database.query<Nullable<OpenLine>>(BY_KEY, [NIL_UUID, identity, keys]);
  return rows.map((row) => withoutNulls<OpenLine>(row));
}

/** A transaction that a line may settle. */
export type SettledTransaction = {
  readonly accountId: string;
  readonly paymentId: string;
  readonly id: string;
  readonly type: string;
  readonly capture: boolean;
  readonly minorUnits: bigint;
  readonly currency: string;
  readonly providerPaymentId: string | undefined;
  readonly connectionIdentity: string;
};

const ACCOUNTS = {
  name: 'list_accounts_by_digits',
  text: 'SELECT id, right(id::text, 6) AS digits FROM account WHERE right(id::text, 6) = ANY ($1::text[])',
};

/** Returns the accounts to which ids may belong, by the ids' last six digits. */
export async function accountsByDigits(
  database: Database,
  digits: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { rows } = await database.query<{ id: string; digits: string }>(ACCOUNTS, [digits]);
  const found = new Map<string, string[]>();
  for (const { id, digits: own } of rows) found.set(own, [...(found.get(own) ?? []), id]);
  return found;
}

const FACTS = `account_id AS "accountId", payment_id AS "paymentId", id, type, capture,
      amount_minor_units AS "minorUnits", currency, provider_payment_id AS "providerPaymentId",
      connection_identity AS "connectionIdentity"`;

const OF_PAYMENTS = {
  name: 'settled_transactions_of_payments',
  text: `
    SELECT ${FACTS} FROM transaction WHERE account_id = $1 AND payment_id = ANY ($2::uuid[])`,
};
const BY_ID = {
  name: 'settled_transactions_by_id',
  text: `
    SELECT ${FACTS} FROM transaction WHERE account_id = $1 AND payment_id IN (
      SELECT payment_id FROM transaction WHERE account_id = $1 AND id = ANY ($2::uuid[]))`,
};
const BY_PROVIDER_ID = {
  name: 'settled_transactions_by_provider_id',
  text: `
    SELECT ${FACTS} FROM transaction
    WHERE ${IN_ACCOUNTS} connection_id = ANY ($1::text[]) AND provider_payment_id = ANY ($2::text[])`,
};

type Row = Nullable<SettledTransaction>;
const read = (rows: readonly Row[]) => rows.map((row) => withoutNulls<SettledTransaction>(row));

/** Finds transactions of an account by our ids, with all other transactions of their payments. */
export async function findByOurIds(
  database: Database,
  accountId: string,
  ids: readonly string[],
): Promise<SettledTransaction[]> {
  return read((await database.query<Row>(BY_ID, [accountId, ids])).rows);
}

/** Finds transactions of all accounts by the provider's ids, among those of some connections. */
export async function findByProviderIds(
  database: Database,
  connectionIds: readonly string[],
  ids: readonly string[],
): Promise<SettledTransaction[]> {
  const values = [connectionIds, ids];
  return read(await searchAccounts<Row>(database, BY_PROVIDER_ID, values, 'found or complete'));
}

/** Reads all transactions of payments of an account. */
export async function transactionsOf(
  database: Database,
  accountId: string,
  paymentIds: readonly string[],
): Promise<SettledTransaction[]> {
  return read((await database.query<Row>(OF_PAYMENTS, [accountId, paymentIds])).rows);
}

/** The result of a search: the line's transaction, or why it has none. */
export type LineResult = {
  readonly line: OpenLine;
  readonly transaction: SettledTransaction | 'unmatched' | 'ambiguous' | 'none_expected';
};

// Several processes may match the same lines: the order makes deadlocks rare.
const MATCH = {
  name: 'insert_settlement_matches',
  text: `
    INSERT INTO settlement_match (account_id, transaction_id, connection_identity, line_key, payment_id, report, kind,
      payout_reference, amount_minor_units, currency, gross, fee, tax, net, settlement_currency, occurred_at,
      fee_parts)
    SELECT $1, transaction_id, $2, line_key, payment_id, report, kind, payout_reference, amount_minor_units, currency,
      gross, fee, tax, net, settlement_currency, occurred_at, fee_parts
    FROM unnest($3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::text[],
      $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::timestamptz[],
      $17::smallint[])
      AS l (transaction_id, payment_id, line_key, report, kind, payout_reference, amount_minor_units, currency, gross, fee,
        tax, net, settlement_currency, occurred_at, fee_parts)
    ORDER BY line_key
    ON CONFLICT DO NOTHING`,
};
const RESULT = {
  name: 'set_settlement_line_results',
  text: `
    UPDATE settlement_line SET result = $4
    WHERE account_id = $1 AND connection_identity = $2 AND line_key = ANY ($3::text[])`,
};

/** Stores the transactions of lines of one account at a provider. May be repeated. */
export async function storeMatches(
  database: Database,
  connectionIdentity: string,
  results: readonly LineResult[],
): Promise<void> {
  const matched = results.flatMap(({ line, transaction }) =>
    typeof transaction === 'string' ? [] : [{ line, transaction }],
  );
  for (const [accountId, own] of Map.groupBy(matched, ({ transaction }) => transaction.accountId)) {
    const ids = [
      own.map(({ transaction: { id } }) => id),
      own.map(({ transaction }) => transaction.paymentId),
    ];
    const columns = COPIED.map((column) => own.map(({ line }) => line[column] ?? null));
    const values = [accountId, connectionIdentity, ...ids, ...columns];
    await despiteDeadlocks(() => database.query(MATCH, values));
  }
}

const COPIED = [
  ...(['key', 'report', 'kind', 'payoutReference', 'minorUnits', 'currency', 'gross', 'fee', 'tax'] as const),
  ...(['net', 'settlementCurrency', 'occurredAt', 'feeParts'] as const),
] satisfies readonly (keyof OpenLine)[];

/** Stores that lines of one account at a provider were searched, with the result: they are not searched again. */
export async function storeResults(
  database: Database,
  connectionIdentity: string,
  results: readonly LineResult[],
): Promise<void> {
  const nameOf = ({ transaction }: LineResult) => (typeof transaction === 'string' ? transaction : 'matched');
  for (const [name, own] of Map.groupBy(results, nameOf)) {
    const keys = own.map(({ line }) => line.key);
    await despiteDeadlocks(() => database.query(RESULT, [NIL_UUID, connectionIdentity, keys, name]));
  }
}

const UNMATCHED_FILES = {
  name: 'find_unmatched_settlement_files',
  text: `
    SELECT f.id, f.connection_id AS "connectionId", f.connection_identity AS identity FROM settlement_file f
    WHERE f.account_id = $1 AND f.completed_at IS NOT NULL AND EXISTS (
      SELECT 1 FROM settlement_line l WHERE l.account_id = $1 AND l.file_id = f.id AND l.result IS NULL)`,
};

/** A complete file with lines whose transactions have not been searched. */
export type UnmatchedFile = { readonly id: string; readonly connectionId: string };

/** Finds the unmatched files of an account at a provider. */
export async function unmatchedFiles(database: Database, identity: string): Promise<UnmatchedFile[]> {
  type Row = UnmatchedFile & { readonly identity: string };
  const { rows } = await database.query<Row>(UNMATCHED_FILES, [NIL_UUID]);
  return rows.filter((row) => row.identity === identity);
}

/** A success that no line settles. */
export type UnsettledMovement = {
  readonly id: string;
  readonly paymentId: string;
  readonly connectionId: string;
  readonly type: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  readonly succeededAt: Date;
};

const UNSETTLED = {
  name: 'unsettled_movements',
  text: `
    SELECT t.id, t.payment_id AS "paymentId", t.connection_id AS "connectionId", t.type,
      t.amount_minor_units AS "minorUnits", t.currency, t.succeeded_at AS "succeededAt"
    FROM transaction t
    WHERE t.account_id = $1 AND t.connection_identity = $2 AND t.succeeded_at > $3 AND t.succeeded_at <= $4
      AND t.id > $5 AND t.status = 'SUCCEEDED' AND (t.type IN ('CAPTURE', 'REFUND') OR t.type = 'PURCHASE' AND t.capture)
      AND NOT EXISTS (
        SELECT 1 FROM settlement_match m
        WHERE m.account_id = $1 AND m.transaction_id = t.id AND m.connection_identity = $2)
    ORDER BY t.id LIMIT ${LINES_AT_ONCE}`,
};

/**
 * Reads an account's successes within a time that no line settles, a page of LINES_AT_ONCE.
 *
 * @param page.after the last id of the page before.
 */
export async function unsettledMovements(
  database: Database,
  accountId: string,
  identity: string,
  page: { readonly from: Date; readonly until: Date; readonly after: string },
): Promise<UnsettledMovement[]> {
  const values = [accountId, identity, page.from, page.until, page.after];
  return (await database.query<UnsettledMovement>(UNSETTLED, values)).rows;
}
