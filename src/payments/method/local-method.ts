import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { PaymentMethodInput } from '#gen/payments/v1/payment_method_pb.js';
import { Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import type { LocalMethodOfPayer } from '#src/connectors/port/attempt.ts';
import type { Capabilities, LocalMethod } from '#src/connectors/port/capabilities.ts';
import { notAllowed } from '#src/service-error.ts';

/** A category of local methods, by its group in `payment_method.detail` and in words. */
const CATEGORIES = {
  [Transaction_Category.BANK_TRANSFER]: {
    category: 'BANK_TRANSFER',
    group: 'bankTransfer',
    what: 'a bank transfer',
  },
  [Transaction_Category.TICKET]: { category: 'TICKET', group: 'ticket', what: 'a ticket' },
} as const;

/** Returns true for a category of local methods, which their payers pay later. */
export function isLocal(category: Transaction_Category): category is keyof typeof CATEGORIES {
  return category in CATEGORIES;
}

/**
 * Reads a local method from a valid request.
 *
 * @throws ServiceError INVALID_PARAMETERS if the request also names a card, a wallet or a stored method.
 */
export function readLocalMethod(
  { type, detail, token, vaultedToken, vaultOnSuccess }: PaymentMethodInput,
  of: keyof typeof CATEGORIES,
): LocalMethodOfPayer {
  const { category, group, what } = CATEGORIES[of];
  const refuse = (field: string) => notAllowed(`payment_method.${field}`, `must not be sent with ${what}`);
  if (token) throw refuse('token');
  if (vaultedToken) throw refuse('vaulted_token');
  if (vaultOnSuccess) throw refuse('vault_on_success');
  const kind = detail?.kind;
  if (kind?.case && kind.case !== group) throw refuse(`detail.${GROUP_NAMES[kind.case]}`);
  const { expiresAt } = kind?.case === 'bankTransfer' || kind?.case === 'ticket' ? kind.value : {};
  const transfer = kind?.case === 'bankTransfer' ? kind.value : undefined;
  return {
    ...{ by: 'payer', type, show: 'instructions', category },
    wantedExpiryMs: expiresAt && timestampMs(expiresAt),
    bankId: transfer?.bankId ?? '',
    accountType: (transfer?.accountType || undefined) as LocalMethodOfPayer['accountType'],
  };
}

/** The groups of `payment_method.detail`, by their names in the .proto. */
export const GROUP_NAMES = {
  card: 'card',
  wallet: 'wallet',
  bankTransfer: 'bank_transfer',
  ticket: 'ticket',
} as const;

/** Returns what a connection can do with payments of a method: a local method's own terms replace the connection's. */
export function capabilitiesFor(
  can: Capabilities,
  { type, isLocal }: { readonly type: string; readonly isLocal: boolean },
): Capabilities {
  if (!isLocal) return can;
  const { refunds = 'none', refundableDays, close = false } = can.localMethods[type] ?? {};
  return { ...can, refunds, close, ...(refundableDays !== undefined && { refundableDays }) };
}

const MINUTE_MS = 60_000;

/**
 * Returns when a local method's code is to expire, in milliseconds since the epoch: at the wanted time or, by default,
 * after the method's own term. Where the provider counts days, at the end of its last day that is not later. undefined if
 * that is outside the method's range.
 */
export function expiryOf(
  { expiry, expiresWithDayIn: zone }: LocalMethod,
  wantedMs: number | undefined,
  nowMs: number,
): number | undefined {
  const leastMs = nowMs + expiry.least * MINUTE_MS;
  const greatestMs = nowMs + expiry.greatest * MINUTE_MS;
  const ms = wantedMs ?? nowMs + expiry.default * MINUTE_MS;
  if (zone === undefined) return leastMs <= ms && ms <= greatestMs ? ms : undefined;
  // By default, the provider's last day counts whole.
  const endMs = wantedMs === undefined ? endOfDay(ms, zone) : lastEndOfDay(ms, zone);
  const isWithin = endMs >= leastMs && (wantedMs === undefined || ms <= greatestMs);
  return isWithin ? endMs : undefined;
}

/** Describes the range in which a local method's code may expire: "from 30 minutes to 30 days from now". */
export function rangeOf({ expiry, expiresWithDayIn: zone }: LocalMethod): string {
  const range = `from ${inWords(expiry.least)} to ${inWords(expiry.greatest)} from now`;
  return zone === undefined ? range : `${range}, and not before the end of a day in ${zone}`;
}

function inWords(minutes: number): string {
  const [count, unit] =
    minutes % 1_440 === 0
      ? [minutes / 1_440, 'day']
      : minutes % 60 === 0
        ? [minutes / 60, 'hour']
        : [minutes, 'minute'];
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

const SECOND_MS = 1_000;

/** Returns the last second of the day in a time zone in which a time lies. */
function endOfDay(ms: number, zone: string): number {
  return dayOf(ms, zone).add({ days: 1 }).epochMilliseconds - SECOND_MS;
}

/** Returns the last end of a day in a time zone that is not after a time. */
function lastEndOfDay(ms: number, zone: string): number {
  const end = endOfDay(ms, zone);
  return end <= ms ? end : dayOf(ms, zone).epochMilliseconds - SECOND_MS;
}

function dayOf(ms: number, zone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone).startOfDay();
}
