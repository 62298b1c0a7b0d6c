import type { Database, Nullable } from '../engine/database.ts';
import { DUE } from '../engine/due-work.ts';
import { firstRow, NIL_UUID, withoutNulls } from '../engine/rows.ts';
import type { WebhookName } from './outbox.ts';
import type { StoredWebhook } from './webhooks.ts';

/** A due delivery, leased to the caller. */
export type LeasedDelivery = {
  readonly id: string;
  /** Fencing token that any write about the attempt must present. */
  readonly attempts: number;
  /** End of the lease, to the microsecond. A redelivery changes it, and turning the webhook off clears it. */
  readonly leasedUntil: string;
  /** Number of earlier attempts in the current schedule. */
  readonly retry: number;
  readonly event: {
    readonly id: string;
    readonly type: string;
    readonly sequence: number;
    /** An encoded Payment, or StoredPaymentMethod for `enrollment.*`; empty for webhook.test. */
    readonly record: Uint8Array;
    readonly createdAt: Date;
    /** The payment's stored idempotency key; null for an event without a payment. */
    readonly idempotencyKey: string | null;
  };
};

type LeasedRow = Omit<LeasedDelivery, 'event'> & Omit<LeasedDelivery['event'], 'id'> & { eventId: string };

/** A webhook as its worker read it. */
export type ReadWebhook = Pick<
  StoredWebhook,
  'accountId' | 'id' | 'url' | 'secret' | 'previousSecret' | 'credentials'
>;

/**
 * Leases up to `limit` due deliveries of a webhook for `leaseS` seconds each, longest due first. Leases none if the
 * webhook is off, or its URL, secrets or credentials have changed.
 */
export async function takeDueDeliveries(
  database: Database,
  { accountId, id: webhookId, url, secret, previousSecret = null, credentials = null }: Nullable<ReadWebhook>,
  limit: number,
  leaseS: number,
): Promise<LeasedDelivery[]> {
  const values = [accountId, webhookId, limit, leaseS, url, secret, previousSecret, credentials];
  const { rows } = await database.query<LeasedRow>(DUE.deliveries.take, values);
  const leased = rows.map(({ id, attempts, leasedUntil, retry, eventId, ...event }) => ({
    ...{ id, attempts, leasedUntil, retry },
    event: { ...event, id: eventId },
  }));
  // An UPDATE returns rows in no particular order; ids are ordered by time.
  return leased.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The result of an attempt. */
export type AttemptResult = {
  readonly responseStatus: number | undefined;
  /** undefined if the receiver accepted the delivery. */
  readonly error: string | undefined;
  /** Seconds until the next attempt; undefined if there is none. */
  readonly retryInS: number | undefined;
};

// A delivery that was made due again during its attempt stays due. A plain equality would make PostgreSQL search all
// due deliveries. A result from an earlier URL does not apply to the webhook's current one.
const FINISH = {
  name: 'finish_delivery',
  text: `
    WITH finished AS (
      UPDATE delivery SET
        status = CASE WHEN $5::text IS NULL THEN 'DELIVERED' WHEN $6::float8 IS NULL THEN 'FAILED' ELSE 'PENDING' END,
        due_at = now() + make_interval(secs => $6), response_status = $4, error = $5, retry = retry + 1,
        delivered_at = CASE WHEN $5 IS NULL THEN now() END
      WHERE account_id = $1 AND id = $2 AND attempts = $3 AND due_at IS NOT DISTINCT FROM $7::timestamptz
      RETURNING webhook_id
    )
    UPDATE webhook w SET failing_since = CASE WHEN $5 IS NOT NULL THEN now() END
    FROM finished
    WHERE w.account_id = $1 AND w.id = finished.webhook_id AND w.url = $8
      AND (w.failing_since IS NULL) = ($5 IS NOT NULL)`,
};

/**
 * Writes the result of an attempt, unless the delivery has been leased by another worker, redelivered or ended since.
 *
 * @param webhook the webhook as of the delivery's lease.
 */
export async function finishDelivery(
  database: Database,
  { accountId, url }: Pick<ReadWebhook, 'accountId' | 'url'>,
  { id, attempts, leasedUntil }: Pick<LeasedDelivery, 'id' | 'attempts' | 'leasedUntil'>,
  { responseStatus = null, error = null, retryInS = null }: Nullable<AttemptResult>,
): Promise<void> {
  const values = [accountId, id, attempts, responseStatus, error, retryInS, leasedUntil, url];
  await database.query(FINISH, values);
}

const END_EVENTLESS = {
  name: 'end_eventless_deliveries',
  text: `
    UPDATE delivery d SET status = 'FAILED', due_at = NULL, error = 'EVENT_GONE'
    WHERE account_id = $1 AND webhook_id = $2 AND due_at <= now()
      AND NOT EXISTS (SELECT 1 FROM event e WHERE e.account_id = $1 AND e.id = d.event_id)`,
};

/** Marks a webhook's due deliveries FAILED if their events were deleted, since there is nothing left to send. */
export async function endEventlessDeliveries(
  database: Database,
  { accountId, webhookId }: WebhookName,
): Promise<void> {
  await database.query(END_EVENTLESS, [accountId, webhookId]);
}

const NEXT_DUE = {
  name: 'next_due_delivery',
  text: `
    SELECT extract(epoch FROM min(due_at) - now())::float8 AS in_s FROM delivery
    WHERE account_id = $1 AND webhook_id = $2 AND due_at IS NOT NULL`,
};

/** Returns the seconds until a webhook's next delivery is due; undefined if none is open. */
export async function nextDueInS(
  database: Database,
  { accountId, webhookId }: WebhookName,
): Promise<number | undefined> {
  const { rows } = await database.query<{ in_s: number | null }>(NEXT_DUE, [accountId, webhookId]);
  // Not greatest() in SQL, which ignores NULL and would make a webhook without open deliveries due at once.
  const inS = rows[0]?.in_s ?? undefined;
  return inS === undefined ? undefined : Math.max(0, inS);
}

/** A delivery as shown to its account. */
export type StoredDelivery = {
  readonly id: string;
  readonly webhookId: string;
  readonly eventId: string;
  readonly type: string;
  readonly paymentId: string;
  readonly status: string;
  readonly attempts: number;
  readonly responseStatus: number | undefined;
  readonly error: string | undefined;
  readonly dueAt: Date | undefined;
  readonly createdAt: Date;
  readonly deliveredAt: Date | undefined;
};

type DeliveryRow = Nullable<StoredDelivery>;

const COLUMNS = `d.id, d.webhook_id AS "webhookId", d.event_id AS "eventId", coalesce(e.type, '') AS type,
      coalesce(e.payment_id, '${NIL_UUID}') AS "paymentId", d.status, d.attempts,
      d.response_status AS "responseStatus", d.error, d.due_at AS "dueAt",
      d.created_at AS "createdAt", d.delivered_at AS "deliveredAt"`;
const SELECT = `
    SELECT ${COLUMNS}
    FROM delivery d LEFT JOIN event e ON e.account_id = $1 AND e.id = d.event_id`;
const LIST = {
  name: 'list_deliveries',
  text: `${SELECT}
    WHERE d.account_id = $1 AND d.webhook_id = $2 AND ($3::uuid IS NULL OR d.id < $3)
    ORDER BY d.id DESC LIMIT $4`,
};

/** Lists a webhook's deliveries before `beforeId`, newest first. */
export async function listDeliveries(
  database: Database,
  { accountId, webhookId }: WebhookName,
  beforeId: string | undefined,
  limit: number,
): Promise<StoredDelivery[]> {
  const values = [accountId, webhookId, beforeId ?? null, limit];
  return (await database.query<DeliveryRow>(LIST, values)).rows.map(withoutNulls);
}

const GET = {
  name: 'get_delivery',
  text: `${SELECT}
    WHERE d.account_id = $1 AND d.id = $2`,
};

/** Returns a delivery of an account. @param id a UUID. */
export async function getDelivery(
  database: Database,
  accountId: string,
  id: string,
): Promise<StoredDelivery | undefined> {
  return firstRow(await database.query<DeliveryRow>(GET, [accountId, id]));
}

const REDELIVER = {
  name: 'redeliver',
  text: `
    UPDATE delivery d SET status = 'PENDING', due_at = now(), retry = 0, delivered_at = NULL FROM event e
    WHERE d.account_id = $1 AND d.id = $2 AND e.account_id = $1 AND e.id = d.event_id
    RETURNING ${COLUMNS}`,
};
// Ids are ordered by time, so the index of the webhook's deliveries also finds those since a given time.
const REDELIVER_FAILED = {
  name: 'redeliver_failed',
  text: `
    WITH failed AS (
      SELECT id FROM delivery
      WHERE account_id = $1 AND webhook_id = $2 AND status = 'FAILED' AND created_at >= $3
        AND EXISTS (SELECT 1 FROM event e WHERE e.account_id = $1 AND e.id = delivery.event_id)
        AND id >= (lpad(to_hex(greatest(0, (extract(epoch FROM $3::timestamptz) * 1000)::bigint)), 12, '0')
          || repeat('0', 20))::uuid
      ORDER BY id LIMIT $4 FOR NO KEY UPDATE
    )
    UPDATE delivery d SET status = 'PENDING', due_at = now(), retry = 0 FROM failed
    WHERE d.account_id = $1 AND d.id = failed.id`,
};

/** Makes a delivery due now and restarts its schedule. @returns its new state, before it is sent. */
export async function redeliver(
  database: Database,
  accountId: string,
  id: string,
): Promise<StoredDelivery | undefined> {
  return firstRow(await database.query<DeliveryRow>(REDELIVER, [accountId, id]));
}

/**
 * Makes up to `limit` of a webhook's FAILED deliveries since a given time due now, oldest first. @returns their number.
 */
export async function redeliverFailed(
  database: Database,
  { accountId, webhookId }: WebhookName,
  since: Date,
  limit: number,
): Promise<number> {
  const result = await database.query(REDELIVER_FAILED, [accountId, webhookId, since, limit]);
  return result.rowCount ?? 0;
}
