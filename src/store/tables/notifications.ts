import type { Dispute, DisputeStage } from '#src/connectors/dispute-report.ts';
import type { Database, Nullable } from '../engine/database.ts';
import { firstRow, NIL_UUID, withoutNulls } from '../engine/rows.ts';

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
    SELECT coalesce(t.account_id, '${NIL_UUID}'), $1, $2, s.number,
      coalesce(s.transaction_id, t.id), s.reference, $6, $7, $8,
      s.dispute, s.dispute_reference, s.disputed_minor_units, s.disputed_currency
    FROM unnest($3::integer[], $4::uuid[], $5::text[], $9::text[], $10::text[], $11::bigint[], $12::text[])
      AS s(number, transaction_id, reference, dispute, dispute_reference, disputed_minor_units, disputed_currency)
    LEFT JOIN LATERAL (
      SELECT id, account_id FROM transaction
      WHERE connection_id = $1 AND (id = s.transaction_id OR reference = s.reference) LIMIT 1
    ) t ON true
    ON CONFLICT DO NOTHING`,
};

/** Stores a notification once, however often it is delivered. It is due at once. */
export async function insertNotification(
  database: Database,
  notification: {
    readonly connectionId: string;
    readonly deduplicationKey: string;
    readonly subjects: readonly Partial<
      Pick<StoredNotification, 'transactionId' | 'reference' | 'dispute'>
    >[];
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

type DueRow = Nullable<Omit<DueNotification, 'dispute'>> & {
  readonly stage: DisputeStage | null;
  readonly disputeReference: string | null;
  readonly minorUnits: bigint | null;
  readonly currency: string | null;
};

/** Limit on the notifications that are taken at once. */
export const MAX_NOTIFICATIONS_TAKEN = 10;

// Hops from connection to connection in the index of open notifications, so that one that is left out costs one step,
// however many of it wait. The planner takes an unknown limit for a tenth of the table: hence the constant one.
const TAKE = {
  name: 'take_due_notifications',
  text: `
    WITH RECURSIVE waiting AS (
      (SELECT connection_id FROM notification WHERE process_at IS NOT NULL ORDER BY connection_id LIMIT 1)
      UNION ALL
      SELECT next.connection_id FROM waiting w CROSS JOIN LATERAL (
        SELECT connection_id FROM notification n
        WHERE process_at IS NOT NULL AND n.connection_id > w.connection_id ORDER BY connection_id LIMIT 1
      ) next
    ), due AS (
      SELECT longest.* FROM waiting w CROSS JOIN LATERAL (
        SELECT account_id, connection_id, deduplication_key, subject, process_at FROM notification n
        WHERE n.connection_id = w.connection_id AND process_at <= now()
        ORDER BY process_at LIMIT ${MAX_NOTIFICATIONS_TAKEN} FOR UPDATE SKIP LOCKED
      ) longest
      WHERE w.connection_id <> ALL ($3::text[])
      ORDER BY longest.process_at LIMIT $1
    )
    UPDATE notification n SET tries = n.tries + 1, process_at = now() + make_interval(secs => $2)
    FROM due
    WHERE n.account_id = due.account_id AND n.connection_id = due.connection_id
      AND n.deduplication_key = due.deduplication_key AND n.subject = due.subject
    RETURNING n.account_id AS "accountId", n.connection_id AS "connectionId",
      n.deduplication_key AS "deduplicationKey", n.subject, n.transaction_id AS "transactionId", n.reference,
      n.dispute AS stage, n.dispute_reference AS "disputeReference", n.disputed_minor_units AS "minorUnits",
      n.disputed_currency AS currency, n.body, n.query, n.headers, n.received_at AS "receivedAt", n.tries`,
};

/**
 * Leases due notifications for `leaseS` seconds each, those of `except` connections left out: up to `limit`, and
 * MAX_NOTIFICATIONS_TAKEN at most.
 */
export async function takeDueNotifications(
  database: Database,
  limit: number,
  leaseS: number,
  except: readonly string[],
): Promise<DueNotification[]> {
  const { rows } = await database.query<DueRow>(TAKE, [limit, leaseS, except]);
  return rows.map(({ stage, disputeReference, minorUnits, currency, ...row }) => {
    const money = minorUnits !== null && currency !== null ? { minorUnits, currency } : undefined;
    const dispute = stage ? { stage, reference: disputeReference ?? undefined, money } : undefined;
    return { ...withoutNulls(row), dispute };
  });
}

const SETTLE = {
  name: 'settle_notification',
  text: `
    UPDATE notification SET result = $5, process_at = now() + make_interval(secs => $6::float8)
    WHERE account_id = $1 AND connection_id = $2 AND deduplication_key = $3 AND subject = $4
      AND process_at IS NOT NULL`,
};

/**
 * Writes the result of a notification, unless another's look-up has settled it meanwhile.
 *
 * @param againInS seconds until it is tried again; undefined for never.
 */
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

/** Ways to find a transaction, each by its index: one condition for both would keep a plan that reads the table. */
const NOTIFIED_BY = {
  id: 'connection_id = $1 AND id = $2::uuid LIMIT 1',
  reference: 'connection_id = $1 AND reference = $2 LIMIT 1',
} as const;

const FIND = {
  id: { name: 'find_notified_transaction', text: `SELECT id FROM transaction WHERE ${NOTIFIED_BY.id}` },
  reference: {
    name: 'find_referred_transaction',
    text: `SELECT id FROM transaction WHERE ${NOTIFIED_BY.reference}`,
  },
};

/**
 * Finds the transaction that a notification is about, by our id or else by the provider's reference. Only a
 * transaction of the notified connection counts: whoever can sign for one connection must not report on another's
 * payments.
 */
export async function findNotifiedTransaction(
  database: Database,
  notification: Notified,
): Promise<string | undefined> {
  const { by, values } = notifiedBy(notification);
  return (await database.query<{ id: string }>(FIND[by], values)).rows[0]?.id;
}

type Notified = Pick<StoredNotification, 'connectionId' | 'transactionId' | 'reference'>;

function notifiedBy({ connectionId, transactionId, reference }: Notified) {
  return transactionId === undefined
    ? { by: 'reference' as const, values: [connectionId, reference ?? null] }
    : { by: 'id' as const, values: [connectionId, transactionId] };
}

/** A look-up that a notification may begin: at once if `begunAt` is there, and otherwise in so many seconds. */
export type NotifiedLookUp = {
  readonly transactionId: string;
  /** The database's time, to the microsecond. */
  readonly begunAt: string | undefined;
  readonly waitS: number;
};

const foundBy = (notified: string) =>
  `found AS (SELECT id, notified_look_up_at FROM transaction WHERE ${notified})`;
const BEGUN = `begun AS (
    UPDATE transaction t SET notified_look_up_at = now() FROM found
    WHERE t.id = found.id
      AND (t.notified_look_up_at IS NULL OR t.notified_look_up_at <= now() - make_interval(secs => $3::float8))
    RETURNING t.notified_look_up_at::text AS begun_at
  )
  SELECT found.id AS "transactionId", begun.begun_at AS "begunAt",
    greatest(0, extract(epoch FROM found.notified_look_up_at - now())::float8 + $3::float8) AS "waitS"
  FROM found LEFT JOIN begun ON true`;
const BEGIN = {
  id: { name: 'begin_notified_look_up', text: `WITH ${foundBy(NOTIFIED_BY.id)}, ${BEGUN}` },
  reference: { name: 'begin_referred_look_up', text: `WITH ${foundBy(NOTIFIED_BY.reference)}, ${BEGUN}` },
};

/**
 * Finds the transaction that a notification is about, and begins its look-up, unless another notification had it looked
 * up less than `apartS` seconds ago: in any process, since it goes by the row and the database's clock.
 */
export async function beginNotifiedLookUp(
  database: Database,
  notification: Notified,
  apartS: number,
): Promise<NotifiedLookUp | undefined> {
  const { by, values } = notifiedBy(notification);
  return firstRow(await database.query<Nullable<NotifiedLookUp>>(BEGIN[by], [...values, apartS]));
}

/** Limit on the notifications that are settled in one commit. */
export const MAX_SETTLED = 1_000;

// Waits for rows that another process has locked, which may be about to postpone them. Locked in one order, so that two
// cannot deadlock.
const SETTLE_SERVED = {
  name: 'settle_served_notifications',
  text: `
    WITH served AS (
      SELECT deduplication_key, subject FROM notification
      WHERE account_id = $1 AND transaction_id = $2 AND connection_id = $3 AND reference IS NOT DISTINCT FROM $4
        AND dispute IS NULL AND received_at < $5::timestamptz AND num_nonnulls(process_at) = 1
        AND (deduplication_key <> $6 OR subject <> $7)
      ORDER BY deduplication_key, subject LIMIT ${MAX_SETTLED} FOR UPDATE
    )
    UPDATE notification n SET result = 'unchanged', process_at = NULL FROM served
    WHERE n.account_id = $1 AND n.connection_id = $3 AND n.deduplication_key = served.deduplication_key
      AND n.subject = served.subject
    RETURNING n.subject`,
};

/**
 * Settles notifications that a look-up has served besides the one that began it: they tell the same of the same
 * transaction, and came before it began.
 *
 * @returns the number of notifications settled; if that is MAX_SETTLED, there may be more.
 */
export async function settleServed(
  database: Database,
  { accountId, connectionId, reference, deduplicationKey, subject }: StoredNotification,
  lookUp: { readonly transactionId: string; readonly begunAt: string },
): Promise<number> {
  const { rows } = await database.query(SETTLE_SERVED, [
    accountId,
    lookUp.transactionId,
    connectionId,
    reference ?? null,
    lookUp.begunAt,
    deduplicationKey,
    subject,
  ]);
  return rows.length;
}
