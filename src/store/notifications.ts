import type { Dispute, DisputeStage } from '#src/connectors/connector.ts';
import { NIL_UUID } from './account-rows.ts';
import type { Database } from './database.ts';

/** One subject of a provider's notification, as it is stored before the notification is acknowledged. */
export type StoredNotification = {
  readonly accountId: string;
  readonly connectionId: string;
  readonly deduplicationKey: string;
  readonly subject: number;
  readonly transactionId: string | undefined;
  readonly reference: string | undefined;
  /** The dispute that it reports, if any. */
  readonly dispute: Dispute | undefined;
};

/** A due notification, leased to the caller. */
export type DueNotification = StoredNotification & {
  readonly body: Uint8Array;
  readonly query: string;
  /** The headers that its signature covers, as JSON. */
  readonly headers: string;
  readonly receivedAt: Date;
  /** Number of leases so far, this one included. */
  readonly tries: number;
};

const INSERT = {
  name: 'insert_notification',
  text: `
    INSERT INTO notification
      (account_id, connection_id, deduplication_key, subject, transaction_id, reference, body, query, headers,
        dispute, dispute_reference, disputed_minor_units, disputed_currency)
    SELECT coalesce(p.account_id, '${NIL_UUID}'), $1, $2, s.number,
      coalesce(s.transaction_id, t.id), s.reference, $6, $7, $8,
      s.dispute, s.dispute_reference, s.disputed_minor_units, s.disputed_currency
    FROM unnest($3::integer[], $4::uuid[], $5::text[], $9::text[], $10::text[], $11::bigint[], $12::text[])
      AS s(number, transaction_id, reference, dispute, dispute_reference, disputed_minor_units, disputed_currency)
    LEFT JOIN LATERAL (
      SELECT id, payment_id FROM transaction
      WHERE connection_id = $1 AND (id = s.transaction_id OR reference = s.reference) LIMIT 1
    ) t ON true
    LEFT JOIN payment p ON p.id = t.payment_id
    ON CONFLICT DO NOTHING`,
};

/** Stores a notification once, however often it is delivered. It is due at once. */
export async function insertNotification(
  database: Database,
  notification: {
    readonly connectionId: string;
    readonly deduplicationKey: string;
    readonly subjects: readonly Pick<StoredNotification, 'transactionId' | 'reference' | 'dispute'>[];
    readonly body: Uint8Array;
    readonly query: string;
    /** The headers that its signature covers, as JSON. */
    readonly headers: string;
  },
): Promise<void> {
  const { subjects } = notification;
  await database.query(INSERT, [
    notification.connectionId,
    notification.deduplicationKey,
    subjects.map((_, i) => i),
    subjects.map(({ transactionId }) => transactionId ?? null),
    subjects.map(({ reference }) => reference ?? null),
    notification.body,
    notification.query,
    notification.headers,
    subjects.map(({ dispute }) => dispute?.stage ?? null),
    subjects.map(({ dispute }) => dispute?.reference ?? null),
    subjects.map(({ dispute }) => dispute?.money?.minorUnits ?? null),
    subjects.map(({ dispute }) => dispute?.money?.currency ?? null),
  ]);
}

type DueRow = {
  account_id: string;
  connection_id: string;
  deduplication_key: string;
  subject: number;
  transaction_id: string | null;
  reference: string | null;
  dispute: DisputeStage | null;
  dispute_reference: string | null;
  disputed_minor_units: bigint | null;
  disputed_currency: string | null;
  body: Buffer;
  query: string;
  headers: string;
  received_at: Date;
  tries: number;
};

const TAKE = {
  name: 'take_due_notifications',
  text: `
    WITH due AS (
      SELECT account_id, connection_id, deduplication_key, subject FROM notification
      WHERE process_at <= now() AND connection_id <> ALL ($3::text[])
      ORDER BY process_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    UPDATE notification n SET tries = n.tries + 1, process_at = now() + make_interval(secs => $2)
    FROM due
    WHERE n.account_id = due.account_id AND n.connection_id = due.connection_id
      AND n.deduplication_key = due.deduplication_key AND n.subject = due.subject
    RETURNING n.account_id, n.connection_id, n.deduplication_key, n.subject, n.transaction_id, n.reference, n.dispute,
      n.dispute_reference, n.disputed_minor_units, n.disputed_currency, n.body, n.query, n.headers, n.received_at,
      n.tries`,
};

/** Leases due notifications for `leaseS` seconds each, those of `except` connections left out. */
export async function takeDueNotifications(
  database: Database,
  limit: number,
  leaseS: number,
  except: readonly string[],
): Promise<DueNotification[]> {
  const { rows } = await database.query<DueRow>(TAKE, [limit, leaseS, except]);
  return rows.map((row) => ({
    accountId: row.account_id,
    connectionId: row.connection_id,
    deduplicationKey: row.deduplication_key,
    subject: row.subject,
    transactionId: row.transaction_id ?? undefined,
    reference: row.reference ?? undefined,
    dispute: disputeOf(row),
    body: row.body,
    query: row.query,
    headers: row.headers,
    receivedAt: row.received_at,
    tries: row.tries,
  }));
}

function disputeOf(row: DueRow): Dispute | undefined {
  const { dispute: stage, disputed_minor_units: minorUnits, disputed_currency: currency } = row;
  const money = minorUnits !== null && currency !== null ? { minorUnits, currency } : undefined;
  return stage ? { stage, reference: row.dispute_reference ?? undefined, money } : undefined;
}

const SETTLE = {
  name: 'settle_notification',
  text: `
    UPDATE notification SET result = $5, process_at = now() + make_interval(secs => $6::float8)
    WHERE account_id = $1 AND connection_id = $2 AND deduplication_key = $3 AND subject = $4`,
};

/** Writes the result of a notification. @param againInS seconds until it is tried again; undefined for never. */
export async function settleNotification(
  database: Database,
  notification: StoredNotification,
  result: string,
  againInS?: number,
): Promise<void> {
  const { accountId, connectionId, deduplicationKey, subject } = notification;
  await database.query(SETTLE, [
    accountId,
    connectionId,
    deduplicationKey,
    subject,
    result,
    againInS ?? null,
  ]);
}

const FIND = {
  name: 'find_notified_transaction',
  text: `
    SELECT id FROM transaction
    WHERE connection_id = $1 AND CASE WHEN $2::uuid IS NULL THEN reference = $3 ELSE id = $2::uuid END LIMIT 1`,
};

/**
 * Finds the transaction that a notification is about, by our id or else by the provider's reference. Only a
 * transaction of the notified connection counts: whoever can sign for one connection must not report on another's
 * payments.
 */
export async function findNotifiedTransaction(
  database: Database,
  {
    connectionId,
    transactionId,
    reference,
  }: Pick<StoredNotification, 'connectionId' | 'transactionId' | 'reference'>,
): Promise<string | undefined> {
  const { rows } = await database.query<{ id: string }>(FIND, [
    connectionId,
    transactionId ?? null,
    reference ?? null,
  ]);
  return rows[0]?.id;
}
