import { isOfAccount } from './account-rows.ts';
import type { Database } from './database.ts';

/** A payment's record, with everything that other tables hold about it. */
export type StoredStory = {
  /** An encoded Payment. */
  readonly record: Uint8Array;
  readonly idempotencyKey: string;
  readonly openOperation: string | undefined;
  readonly capturedMinorUnits: bigint;
  readonly refundedMinorUnits: bigint;
  /** true: nothing more may be captured. */
  readonly isReleased: boolean;
  /** Time at which the payer's personal data was erased from the record for its age. */
  readonly personalDataErasedAt: Date | undefined;
  readonly transactions: readonly TransactionState[];
  readonly notifications: readonly ToldNotification[];
  readonly events: readonly ToldEvent[];
};

/** State of a transaction. */
export type TransactionState = {
  readonly id: string;
  readonly type: string;
  readonly status: string;
  readonly connectionId: string;
  readonly reference: string | undefined;
  readonly minorUnits: bigint;
  readonly currency: string;
  /** false: an authorization only. */
  readonly capture: boolean;
  /** Time of the next look-up of its unknown outcome. */
  readonly lookUpAt: Date | undefined;
  /** Time of its next follow-up. */
  readonly followUpAt: Date | undefined;
  /** Number of times that its outcome was looked up. */
  readonly lookUps: number;
};

/** A provider's notification about one of the transactions. */
export type ToldNotification = {
  readonly transactionId: string;
  readonly connectionId: string;
  readonly dispute: string | undefined;
  readonly receivedAt: Date;
  readonly tries: number;
  /** undefined: it is still to be processed. */
  readonly result: string | undefined;
};

/** An event, and one of its deliveries if it has any. */
export type ToldEvent = {
  readonly eventId: string;
  readonly type: string;
  readonly sequence: number;
  readonly createdAt: Date;
  readonly delivery:
    | {
        readonly id: string;
        readonly url: string | undefined;
        readonly status: string;
        readonly attempts: number;
        readonly responseStatus: number | undefined;
        readonly error: string | undefined;
        readonly dueAt: Date | undefined;
        readonly deliveredAt: Date | undefined;
      }
    | undefined;
};

/** Limit on the rows of each kind that a page shows. */
const MAX_ROWS_SHOWN = 200;

const PAYMENT = {
  name: 'read_payment_story',
  text: `
    SELECT record, idempotency_key, open_operation, captured_minor_units, refunded_minor_units, released,
      personal_data_erased_at
    FROM payment WHERE account_id = $1 AND id = $2`,
};
const TRANSACTIONS = {
  name: 'read_story_transactions',
  text: `
    SELECT t.id, t.type, t.status, t.connection_id, t.reference, t.amount_minor_units, t.currency, t.capture,
      t.look_up_at, t.follow_up_at, t.fence
    FROM transaction t
    WHERE ${isOfAccount('t.account_id', '$1::uuid')} AND t.payment_id = $2 ORDER BY t.created_at, t.id LIMIT ${MAX_ROWS_SHOWN}`,
};
const NOTIFICATIONS = {
  name: 'read_story_notifications',
  text: `
    SELECT transaction_id, connection_id, dispute, received_at, tries, result FROM notification
    WHERE account_id = $1 AND transaction_id = ANY ($2::uuid[]) AND transaction_id IS NOT NULL
    ORDER BY received_at LIMIT ${MAX_ROWS_SHOWN}`,
};
const EVENTS = {
  name: 'read_story_events',
  text: `
    SELECT e.id AS event_id, e.type, e.sequence, e.created_at, d.id, w.url, d.status, d.attempts, d.response_status,
      d.error, d.due_at, d.delivered_at
    FROM event e
    LEFT JOIN delivery d ON d.account_id = $1 AND d.event_id = e.id
    LEFT JOIN webhook w ON w.account_id = $1 AND w.id = d.webhook_id
    WHERE e.account_id = $1 AND e.payment_id = $2 ORDER BY e.sequence, d.id LIMIT ${MAX_ROWS_SHOWN}`,
};

type PaymentRow = {
  record: Buffer;
  idempotency_key: string;
  open_operation: string | null;
  captured_minor_units: bigint;
  refunded_minor_units: bigint;
  released: boolean;
  personal_data_erased_at: Date | null;
};
type TransactionRow = {
  id: string;
  type: string;
  status: string;
  connection_id: string;
  reference: string | null;
  amount_minor_units: bigint;
  currency: string;
  capture: boolean;
  look_up_at: Date | null;
  follow_up_at: Date | null;
  fence: number;
};
type NotificationRow = {
  transaction_id: string;
  connection_id: string;
  dispute: string | null;
  received_at: Date;
  tries: number;
  result: string | null;
};
type EventRow = {
  event_id: string;
  type: string;
  sequence: number;
  created_at: Date;
  id: string | null;
  url: string | null;
  status: string;
  attempts: number;
  response_status: number | null;
  error: string | null;
  due_at: Date | null;
  delivered_at: Date | null;
};

/** Reads everything that is stored about a payment's course. @param paymentId a UUID, as is `accountId`. */
export async function readPaymentStory(
  database: Database,
  accountId: string,
  paymentId: string,
): Promise<StoredStory | undefined> {
  const payment = (await database.query<PaymentRow>(PAYMENT, [accountId, paymentId])).rows[0];
  if (!payment) return undefined;
  const transactions = (await database.query<TransactionRow>(TRANSACTIONS, [accountId, paymentId])).rows;
  const ids = transactions.map(({ id }) => id);
  const notifications = (await database.query<NotificationRow>(NOTIFICATIONS, [accountId, ids])).rows;
  const events = (await database.query<EventRow>(EVENTS, [accountId, paymentId])).rows;
  return {
    record: payment.record,
    idempotencyKey: payment.idempotency_key,
    openOperation: payment.open_operation ?? undefined,
    capturedMinorUnits: payment.captured_minor_units,
    refundedMinorUnits: payment.refunded_minor_units,
    isReleased: payment.released,
    personalDataErasedAt: payment.personal_data_erased_at ?? undefined,
    transactions: transactions.map((row) => ({
      id: row.id,
      type: row.type,
      status: row.status,
      connectionId: row.connection_id,
      reference: row.reference ?? undefined,
      minorUnits: row.amount_minor_units,
      currency: row.currency,
      capture: row.capture,
      lookUpAt: row.look_up_at ?? undefined,
      followUpAt: row.follow_up_at ?? undefined,
      lookUps: row.fence,
    })),
    notifications: notifications.map((row) => ({
      transactionId: row.transaction_id,
      connectionId: row.connection_id,
      dispute: row.dispute ?? undefined,
      receivedAt: row.received_at,
      tries: row.tries,
      result: row.result ?? undefined,
    })),
    events: events.map(toEvent),
  };
}

function toEvent(row: EventRow): ToldEvent {
  return {
    eventId: row.event_id,
    type: row.type,
    sequence: row.sequence,
    createdAt: row.created_at,
    delivery:
      row.id === null
        ? undefined
        : {
            id: row.id,
            url: row.url ?? undefined,
            status: row.status,
            attempts: row.attempts,
            responseStatus: row.response_status ?? undefined,
            error: row.error ?? undefined,
            dueAt: row.due_at ?? undefined,
            deliveredAt: row.delivered_at ?? undefined,
          },
  };
}
