import type { Dispute, DisputeStage } from '#src/connectors/port/dispute-report.ts';
import type { Database, Nullable } from '../engine/database.ts';
import { withoutNulls } from '../engine/rows.ts';
import { keyOf, type NewsKind, type NewsName, readFacts } from './notifications.ts';

/** Unsettled news of a transaction. */
export type OpenNews = NewsName & {
  readonly kind: NewsKind;
  /** The id by which the provider names the transaction. */
  readonly providerPaymentId: string | undefined;
  /** The dispute that the news reports, if any. */
  readonly dispute: Dispute | undefined;
  readonly body: Uint8Array;
  readonly query: string;
  /** The headers that its signature covers, as JSON. */
  readonly headers: string;
  readonly receivedAt: Date;
  readonly ageMs: number;
  /** true: an earlier check left it waiting. */
  readonly isTried: boolean;
  /** Time on the database's clock when the news was read, to the microsecond. */
  readonly readAt: string;
};

/** Maximum number of news items read at once. News with the same contents is settled together. */
export const MAX_NEWS_READ = 20;

const READ = {
  name: 'read_open_news',
  text: `
    SELECT account_id AS "accountId", connection_id AS "connectionId", deduplication_key AS "deduplicationKey", subject,
      kind, provider_payment_id AS "providerPaymentId", dispute AS stage, dispute_reference AS "disputeReference",
      disputed_minor_units AS "minorUnits", disputed_currency AS currency, dispute_facts AS facts, body, query, headers, received_at AS "receivedAt",
      extract(epoch FROM now() - received_at)::float8 * 1000 AS "ageMs", tried_at IS NOT NULL AS "isTried",
      now()::text AS "readAt"
    FROM notification WHERE account_id = $1 AND transaction_id = $2 AND settled_at IS NULL
    ORDER BY settled_at, tried_at NULLS FIRST, received_at LIMIT ${MAX_NEWS_READ}`,
};

type OpenRow = Nullable<Omit<OpenNews, 'dispute'>> & {
  readonly stage: DisputeStage | null;
  readonly disputeReference: string | null;
  readonly minorUnits: bigint | null;
  readonly currency: string | null;
  readonly facts: string | null;
};

/** Reads a transaction's unsettled news: the oldest that was never tried, then what was tried longest ago. */
export async function readOpenNews(
  database: Database,
  accountId: string,
  transactionId: string,
): Promise<OpenNews[]> {
  const { rows } = await database.query<OpenRow>(READ, [accountId, transactionId]);
  return rows.map(({ stage, disputeReference, minorUnits, currency, facts, ...row }) => {
    const money = minorUnits !== null && currency !== null ? { minorUnits, currency } : undefined;
    const reference = disputeReference ?? undefined;
    const dispute = stage ? { stage, reference, money, ...readFacts(facts) } : undefined;
    return { ...withoutNulls(row), dispute };
  });
}

// The query of a payer's return is no longer needed.
const SETTLE = {
  name: 'settle_news',
  text: `
    UPDATE notification
    SET result = $5, settled_at = now(), check_at = NULL, query = CASE WHEN kind = 'notification' THEN query ELSE '' END
    WHERE account_id = $1 AND connection_id = $2 AND deduplication_key = $3 AND subject = $4 AND settled_at IS NULL`,
};

/** Settles news with its result. */
export async function settleNews(database: Database, name: NewsName, result: string): Promise<void> {
  await database.query(SETTLE, [...keyOf(name), result]);
}

const LEAVE = {
  name: 'leave_news',
  text: `
    UPDATE notification SET tried_at = now()
    WHERE account_id = $1 AND connection_id = $2 AND settled_at IS NULL
      AND (deduplication_key, subject) IN (SELECT * FROM unnest($3::text[], $4::integer[]))`,
};

/** Records that a check of their transaction has left news waiting, so that it hides no other. */
export async function leaveNews(database: Database, left: readonly NewsName[]): Promise<void> {
  const [one] = left;
  if (!one) return;
  const keys = [left.map(({ deduplicationKey }) => deduplicationKey), left.map(({ subject }) => subject)];
  await database.query(LEAVE, [one.accountId, one.connectionId, ...keys]);
}

/** Maximum number of news items settled in one commit. */
export const MAX_SETTLED = 1_000;

// Locked in a fixed order, so that no two can deadlock.
const SETTLE_SERVED = {
  name: 'settle_served_news',
  text: `
    WITH served AS (
      SELECT connection_id, deduplication_key, subject FROM notification
      WHERE account_id = $1 AND transaction_id = $2 AND settled_at IS NULL AND received_at <= $3::timestamptz
        AND dispute IS NULL AND (
          kind = $4 AND provider_payment_id IS NOT DISTINCT FROM $5 AND (kind = 'notification' OR query = $6)
          OR $8 AND provider_payment_id IS NULL AND (kind = 'notification' OR kind = 'return' AND query = '')
        )
      ORDER BY settled_at, tried_at NULLS FIRST, received_at LIMIT ${MAX_SETTLED} FOR UPDATE
    )
    UPDATE notification n
    SET result = $7, settled_at = now(), check_at = NULL,
      query = CASE WHEN n.kind = 'notification' THEN n.query ELSE '' END
    FROM served
    WHERE n.account_id = $1 AND n.connection_id = served.connection_id
      AND n.deduplication_key = served.deduplication_key AND n.subject = served.subject
    RETURNING n.subject`,
};

/**
 * Settles the news that a query to the provider has covered: all news about the transaction with the same contents that
 * arrived before this news was read.
 *
 * @param isLookUp true: the query has also covered the news without details.
 * @returns the number settled; if it equals MAX_SETTLED, there may be more.
 */
export async function settleServed(
  database: Database,
  transactionId: string,
  { accountId, kind, providerPaymentId, query, readAt }: OpenNews,
  result: string,
  isLookUp: boolean,
): Promise<number> {
  const values = [accountId, transactionId, readAt, kind, providerPaymentId ?? null, query, result, isLookUp];
  return (await database.query(SETTLE_SERVED, values)).rows.length;
}

const IS_SETTLED = {
  name: 'is_news_settled',
  text: `
    SELECT 1 FROM notification
    WHERE account_id = $1 AND connection_id = $2 AND deduplication_key = $3 AND subject = $4 AND settled_at IS NULL`,
};

/** Returns true once news is settled. */
export async function isNewsSettled(database: Database, name: NewsName): Promise<boolean> {
  const { accountId, connectionId, deduplicationKey, subject } = name;
  const values = [accountId, connectionId, deduplicationKey, subject];
  return (await database.query(IS_SETTLED, values)).rows.length === 0;
}
