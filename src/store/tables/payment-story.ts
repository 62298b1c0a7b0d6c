import type { Database, Nullable } from '../engine/database.ts';
import { withoutNulls } from '../engine/rows.ts';
import type { NewsKind } from './notifications.ts';

/** A payment's record, with the related data of other tables. */
export type StoredStory = {
  /** An encoded Payment. */
  readonly record: Uint8Array;
  readonly idempotencyKey: string;
  readonly openOperation: string | undefined;
  readonly capturedMinorUnits: bigint;
  readonly refundedMinorUnits: bigint;
  /** true: nothing more may be captured. */
  readonly isReleased: boolean;
  /** Time when the payer's personal data was erased from the record because of its age. */
  readonly personalDataErasedAt: Date | undefined;
  readonly transactions: readonly TransactionState[];
  readonly notifications: readonly ToldNotification[];
  readonly events: readonly ToldEvent[];
  /** Operators' actions on the payment, the oldest first. */
  readonly actions: readonly ToldAction[];
};

/** An operator's action on the payment, from the audit log. */
export type ToldAction = { readonly actor: string; readonly detail: string };

/** The state of a transaction. */
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
  /** true: the payer was redirected, or has returned and the provider has yet to confirm. */
  readonly awaitsPayer: boolean;
  /** The kind of its payment method; undefined for operations. */
  readonly methodKind: string | undefined;
  /** When the payer can no longer pay; undefined if nobody waits for a payer. */
  readonly payerDueAt: Date | undefined;
  /** Time of the next check. */
  readonly checkAt: Date | undefined;
  /** The version of the catalogue that it was sent with; 0 for a catalogue from a file. */
  readonly catalogueVersion: number;
  /** undefined if the merchant sent none. */
  readonly merchantReference: string | undefined;
  /** The stored key of the call that requested an operation, if it has one. */
  readonly idempotencyKey: string | undefined;
};

/** A provider's notification about one of the payment's transactions. */
export type ToldNotification = {
  readonly transactionId: string;
  readonly connectionId: string;
  readonly kind: NewsKind;
  readonly dispute: string | undefined;
  readonly receivedAt: Date;
  /** undefined while unsettled. */
  readonly result: string | undefined;
};

/** An event, with one of its deliveries if it has any. */
export type ToldEvent = {
  readonly eventId: string;
  readonly type: string;
  readonly sequence: number;
  readonly createdAt: Date;
  readonly delivery:
    | {
        readonly id: string;
        readonly webhookId: string;
        /** undefined if the webhook was deleted. */
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

/** Maximum number of rows of each kind that a page shows. */
const MAX_ROWS_SHOWN = 200;

const PAYMENT = {
  name: 'read_payment_story',
  text: `
    SELECT record, idempotency_key AS "idempotencyKey", open_operation AS "openOperation",
      captured_minor_units AS "capturedMinorUnits", refunded_minor_units AS "refundedMinorUnits",
      released AS "isReleased", personal_data_erased_at AS "personalDataErasedAt"
    FROM payment WHERE account_id = $1 AND id = $2`,
};
const TRANSACTIONS = {
  name: 'read_story_transactions',
  text: `
    SELECT t.id, t.type, t.status, t.connection_id AS "connectionId", t.reference,
      t.amount_minor_units AS "minorUnits", t.currency, t.capture, t.awaits_payer AS "awaitsPayer",
      t.method_kind AS "methodKind", t.payer_due_at AS "payerDueAt",
      t.catalogue_version AS "catalogueVersion", t.merchant_reference AS "merchantReference",
      t.check_at AS "checkAt", t.idempotency_key AS "idempotencyKey"
    FROM transaction t
    WHERE t.account_id = $1::uuid AND t.payment_id = $2 ORDER BY t.created_at, t.id LIMIT ${MAX_ROWS_SHOWN}`,
};
const NOTIFICATIONS = {
  name: 'read_story_notifications',
  text: `
    SELECT transaction_id AS "transactionId", connection_id AS "connectionId", kind, dispute,
      received_at AS "receivedAt", result
    FROM notification
    WHERE account_id = $1 AND transaction_id = ANY ($2::uuid[]) AND transaction_id IS NOT NULL
    ORDER BY received_at LIMIT ${MAX_ROWS_SHOWN}`,
};
const EVENTS = {
  name: 'read_story_events',
  text: `
    SELECT e.id AS "eventId", e.type, e.sequence, e.created_at AS "createdAt", d.id,
      d.webhook_id AS "webhookId", w.url, d.status, d.attempts,
      d.response_status AS "responseStatus", d.error, d.due_at AS "dueAt", d.delivered_at AS "deliveredAt"
    FROM event e
    LEFT JOIN delivery d ON d.account_id = $1 AND d.event_id = e.id
    LEFT JOIN webhook w ON w.account_id = $1 AND w.id = d.webhook_id
    WHERE e.account_id = $1 AND e.payment_id = $2 ORDER BY e.sequence, d.id LIMIT ${MAX_ROWS_SHOWN}`,
};

const ACTIONS = {
  name: 'read_story_actions',
  text: `
    SELECT actor, detail FROM audit_log
    WHERE account_id = $1 AND subject = $2 ORDER BY id LIMIT ${MAX_ROWS_SHOWN}`,
};

type PaymentRow = Nullable<Omit<StoredStory, 'transactions' | 'notifications' | 'events' | 'actions'>>;
type TransactionRow = Nullable<TransactionState>;
type NotificationRow = Nullable<ToldNotification>;
type EventRow = Omit<ToldEvent, 'delivery'> & Nullable<NonNullable<ToldEvent['delivery']>>;

/** Reads everything stored about the history of a payment. @param paymentId a UUID, like `accountId`. */
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
  const actions = (await database.query<ToldAction>(ACTIONS, [accountId, paymentId])).rows;
  return {
    ...withoutNulls(payment),
    actions,
    transactions: transactions.map(withoutNulls),
    notifications: notifications.map(withoutNulls),
    events: events.map(toEvent),
  };
}

function toEvent({ eventId, type, sequence, createdAt, ...delivery }: EventRow): ToldEvent {
  const told = delivery.id === null ? undefined : withoutNulls(delivery);
  return { eventId, type, sequence, createdAt, delivery: told };
}
