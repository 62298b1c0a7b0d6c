import { createHmac, timingSafeEqual } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import type {
  NotificationReading,
  NotificationSubject,
  RawNotification,
  ReadNotification,
} from '#src/connectors/connector.ts';
import { isJsonObject, isTextLike, readJsonObject } from '#src/connectors/provider-answer.ts';
import type { Secret } from '#src/secret.ts';

const HEADER = 'sandbox-signature';
const TOLERANCE_MS = 5 * 60_000;
/** Number of signatures that are compared, more than the provider ever sends. */
const MAX_SIGNATURES = 8;
const EVENT_ID = /^ev_[0-9a-f-]{36}$/;
const ID = /^[a-z]{2}_[0-9a-f-]{36}$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Makes the reader of the provider's notifications. They are signed with an HMAC-SHA256 of the time and the body, as
 * src/sandbox/README.md describes. A signature by any of `secrets` counts, unless it is more than five minutes old.
 */
export function notificationReader(secrets: readonly Secret[]): ReadNotification {
  return async (notification, nowMs) => {
    const fault = faultOf(notification, secrets, nowMs);
    return fault === undefined ? read(notification) : { kind: 'forged', detail: fault };
  };
}

/** Returns the fault of a signature; undefined if it is valid. */
function faultOf(
  { header, body }: RawNotification,
  secrets: readonly Secret[],
  nowMs: number,
): string | undefined {
  const parts = (header(HEADER) ?? '').split(',');
  const time = /^t=(\d{1,12})$/.exec(parts[0] ?? '')?.[1];
  if (time === undefined) return 'the signature is missing or malformed';
  const given = parts
    .slice(1, 1 + MAX_SIGNATURES)
    .flatMap((part) => /^v1=([0-9a-f]{64})$/.exec(part)?.[1] ?? [])
    .map((hex) => Buffer.from(hex, 'hex'));
  const expected = secrets.map((secret) =>
    createHmac('sha256', secret.reveal()).update(`${time}.`).update(body).digest(),
  );
  const isGenuine = expected.some((mac) => given.some((other) => timingSafeEqual(mac, other)));
  if (!isGenuine) return 'the signature is wrong';
  // Checked last: a sender without a secret must not learn the right time.
  return Math.abs(nowMs - Number(time) * 1_000) > TOLERANCE_MS
    ? 'the signature is too old or too new'
    : undefined;
}

function read({ body }: RawNotification): NotificationReading {
  const event = readJsonObject(body);
  if (!event || !isTextLike(event.id, EVENT_ID) || !isJsonObject(event.data)) return { kind: 'ignored' };
  const subject = subjectOf(event.data);
  return subject ? { kind: 'about', deduplicationKey: event.id, subjects: [subject] } : { kind: 'ignored' };
}

/** Returns the subject: the order for its completion; for anything else, the object itself. */
function subjectOf(data: JsonObject): NotificationSubject | undefined {
  const { object, id, payment, idempotency_key: key } = data;
  if (object === 'completion') return isTextLike(payment, ID) ? { reference: payment } : undefined;
  if (!isTextLike(id, ID)) return undefined;
  return { reference: id, ...(isTextLike(key, UUID) && { transactionId: key }) };
}
