import type { Behaviour, Order } from './behaviour.ts';
import type { EntryDetails, LedgerEntry, OrderDetails } from './ledger-entry.ts';
import {
  integer,
  type JsonRecord,
  objects,
  optionalInteger,
  optionalObject,
  optionalText,
  text,
} from './request-body.ts';

/** ISO 4217. */
export const CURRENCY = /^[A-Z]{3}$/;
const WEB_ADDRESS = /^https?:\/\/[^\s]+$/;
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/;
const QUANTITY = { min: 0, max: Number.MAX_SAFE_INTEGER };
const UNIT_AMOUNT = { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER };

/** Reads the options that every creating call has: where the payer returns to, and where and how to send notifications. */
export function readCommonDetails(body: JsonRecord, order: Order): EntryDetails {
  const returnUrl = optionalText(body, 'return_url', WEB_ADDRESS);
  const cancelUrl = optionalText(body, 'cancel_url', WEB_ADDRESS);
  const notificationUrl = optionalText(body, 'notification_url', WEB_ADDRESS);
  return {
    ...(returnUrl !== undefined && { returnUrl }),
    ...(cancelUrl !== undefined && { cancelUrl }),
    ...(notificationUrl !== undefined && { notificationUrl }),
    ...(order.notify && { notify: order.notify }),
    ...(order.staysOpen && { staysOpen: true }),
    ...(order.dispute && { dispute: order.dispute }),
    ...(order.settleWrong && { settleWrong: order.settleWrong }),
  };
}

/**
 * Reads the payer's deadline: the end of the provider's period, or `expires_at` if that is earlier.
 *
 * @returns milliseconds since the epoch.
 */
export function readExpiry(body: JsonRecord, order: Order, validMs: number): number {
  const now = Date.now();
  if (order.expireAfterMs !== undefined) return now + order.expireAfterMs;
  const asked = Date.parse(optionalText(body, 'expires_at', ISO_TIME) ?? '');
  return Math.min(now + validMs, Number.isNaN(asked) ? Number.POSITIVE_INFINITY : asked);
}

/** Returns the change that a behaviour schedules, if any. */
export function dueOf(behaviour: Behaviour, done: string, failed: string): LedgerEntry['due'] {
  if (behaviour.kind !== 'done_after' && behaviour.kind !== 'fail_after') return undefined;
  const status = behaviour.kind === 'done_after' ? done : failed;
  return { status, atMs: Date.now() + behaviour.delayMs };
}

/** Reads the amount, in integer minor units, and its currency. */
export function readMoney(body: JsonRecord): { amount: number; currency: string } {
  return {
    amount: integer(body, 'amount', { min: 1, max: Number.MAX_SAFE_INTEGER }),
    currency: text(body, 'currency', CURRENCY),
  };
}

/** Reads the texts that identify a payment to the merchant and the payer; absent ones are null. */
export function readTexts(body: JsonRecord): { reference: string | null; description: string | null } {
  return {
    reference: optionalText(body, 'reference') ?? null,
    description: optionalText(body, 'description') ?? null,
  };
}

/** Reads the content of the payer's page. */
export function readPage(body: JsonRecord): OrderDetails {
  const order = optionalObject(body, 'order');
  const items = order ? objects(order, 'order.items') : [];
  return {
    reference: optionalText(body, 'reference') ?? '',
    description: optionalText(body, 'description') ?? '',
    ...readMoney(body),
    items: items.map((item) => {
      const unitAmount = optionalInteger(item, 'order.items.unit_amount', UNIT_AMOUNT);
      return {
        name: optionalText(item, 'order.items.name') ?? '',
        quantity: optionalInteger(item, 'order.items.quantity', QUANTITY) ?? 1,
        ...(unitAmount !== undefined && { unitAmount }),
      };
    }),
  };
}
