import type { DisputeRow } from '#src/payments/model/dispute-row.ts';
import type { Database, Nullable, Queries } from '../engine/database.ts';
import { NIL_UUID, withoutNulls } from '../engine/rows.ts';
import { IN_ACCOUNTS, searchAccounts } from '../engine/search-accounts.ts';
import type { PagePosition } from './list-payments.ts';

/** A dispute with everything that is shown of it. */
export type StoredDispute = DisputeRow & {
  readonly accountId: string;
  readonly paymentId: string;
  /** When the service first learned of it. */
  readonly openedAt: Date;
  readonly updatedAt: Date;
  /** undefined while it is open. */
  readonly closedAt: Date | undefined;
  /** An operator's note, and who wrote it last. */
  readonly note: string;
  readonly notedBy: string | undefined;
};

const COLUMNS = `id, connection_id AS "connectionId", connection_identity AS "connectionIdentity",
      provider_reference AS reference, stage, status, reason, raw_reason AS "rawReason", network_code AS "networkCode",
      amount_minor_units AS "minorUnits", currency, fee_minor_units AS "feeMinorUnits", fee_currency AS "feeCurrency",
      respond_by AS "respondBy", link, reported_at AS "reportedAt", sequence, opened_at AS "openedAt"`;
const ALL = `${COLUMNS}, account_id AS "accountId", payment_id AS "paymentId", updated_at AS "updatedAt", closed_at AS "closedAt", note, noted_by AS "notedBy"`;

const OF_PAYMENT = {
  name: 'read_disputes_of_payment',
  text: `SELECT ${COLUMNS} FROM dispute WHERE account_id = $1 AND payment_id = $2 ORDER BY opened_at, id`,
};

/** Reads the disputes of a payment, oldest first. */
export async function readDisputesOf(
  database: Database,
  accountId: string,
  paymentId: string,
): Promise<DisputeRow[]> {
  const { rows } = await database.query<Nullable<DisputeRow>>(OF_PAYMENT, [accountId, paymentId]);
  return rows.map((row) => withoutNulls<DisputeRow>(row));
}

const GET = { name: 'get_dispute', text: `SELECT ${ALL} FROM dispute WHERE account_id = $1 AND id = $2` };

/** Returns a dispute of an account. @param id a UUID. */
export async function getDispute(
  database: Database,
  accountId: string,
  id: string,
): Promise<StoredDispute | undefined> {
  const { rows } = await database.query<Nullable<StoredDispute>>(GET, [accountId, id]);
  return rows[0] && withoutNulls<StoredDispute>(rows[0]);
}

/** Filter for an account's disputes. Times are strings such as 2026-01-31T09:08:07.000001Z. */
export type DisputeFilter = {
  readonly accountId: string;
  readonly paymentId: string | undefined;
  readonly status: string | undefined;
  /** Start of the period, inclusive. */
  readonly from: string | undefined;
  /** End of the period, exclusive. */
  readonly before: string | undefined;
};

/** Maximum number of disputes on a page. */
export const MAX_DISPUTES = 101;

// An account has few disputes beside its payments, so one statement reads them by time.
const LIST = {
  name: 'list_disputes',
  text: `
    SELECT ${ALL}, to_char(opened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "createdAt" FROM dispute
    WHERE account_id = $1 AND opened_at >= $2::timestamptz AND (opened_at, id) < ($3::timestamptz, $4::uuid)
      AND ($6::uuid IS NULL OR payment_id = $6) AND ($7::text IS NULL OR status = $7)
    ORDER BY opened_at DESC, id DESC LIMIT $5::integer`,
};

/** A dispute on a page, with its position. */
export type ListedDispute = StoredDispute & PagePosition;

/**
 * Lists disputes, newest first.
 *
 * @param after the dispute after which the page begins; undefined for the first page.
 */
export async function listDisputes(
  database: Database,
  filter: DisputeFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedDispute[]> {
  const { accountId, paymentId = null, status = null, from = '-infinity', before = 'infinity' } = filter;
  const { createdAt, id } = after ?? { createdAt: before, id: NIL_UUID };
  const values = [accountId, from, createdAt, id, limit, paymentId, status];
  const { rows } = await database.query<Nullable<ListedDispute>>(LIST, values);
  return rows.map((row) => withoutNulls<ListedDispute>(row));
}

const DUE = {
  name: 'list_open_disputes',
  text: `
    SELECT ${ALL} FROM dispute WHERE ${IN_ACCOUNTS} closed_at IS NULL
    ORDER BY status <> 'NEEDS_RESPONSE', respond_by NULLS FIRST, id LIMIT $1::integer`,
};

/**
 * Lists open disputes of all accounts: the merchants' turn first, then by due date, those without one first.
 *
 * @param limit maximum number from each node of a distributed database.
 */
export async function listOpenDisputes(database: Database, limit: number): Promise<StoredDispute[]> {
  const found = await searchAccounts<Nullable<StoredDispute>>(database, DUE, [limit]);
  return found.map((row) => withoutNulls<StoredDispute>(row));
}

const NOTE = {
  name: 'note_dispute',
  text: 'UPDATE dispute SET note = $3, noted_by = $4 WHERE account_id = $1 AND id = $2 RETURNING id',
};

/** Replaces the note of a dispute. @returns false if the account has no such dispute. */
export async function noteDispute(
  queries: Queries,
  { accountId, id }: { readonly accountId: string; readonly id: string },
  note: string,
  by: string,
): Promise<boolean> {
  return (await queries.query(NOTE, [accountId, id, note, by])).rows.length === 1;
}
