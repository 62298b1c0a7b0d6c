import type { JsonObject } from '@bufbuild/protobuf';
import type { NotificationReading, NotificationSubject, RawNotification } from '#src/connectors/connector.ts';
import { isJsonObject, isTextLike, isUuid, readJsonObject } from '#src/connectors/provider-answer.ts';
import { faultOfTimedSignature, forged } from '#src/connectors/provider-signature.ts';
import type { Secret } from '#src/secret.ts';

const EVENT_ID = /^ev_[0-9a-f-]{36}$/;
const ID = /^[a-z]{2}_[0-9a-f-]{36}$/;

/** Reads a notification of the provider, which is signed as sandbox/README.md describes; pure. */
export function readNotification(
  { header, body }: RawNotification,
  secrets: readonly Secret[],
  nowMs: number,
): NotificationReading {
  const fault = faultOfTimedSignature(header('sandbox-signature'), body, secrets, nowMs);
  if (fault !== undefined) return forged(fault);
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
  return { reference: id, ...(isUuid(key) && { transactionId: key }) };
}
