import type { Secret } from '#src/secret.ts';
import {
  asIs,
  fields,
  optional,
  type Read,
  readJsonObject,
  textLike,
  uuidOf,
} from '../kit/provider-answer.ts';
import { faultOfTimedSignature, forged } from '../kit/provider-signature.ts';
import type { NotificationReading, NotificationSubject, RawNotification } from '../port/connector.ts';
import { ID } from './answers.ts';
import { DISPUTE_FIELDS, disputeOf } from './disputes.ts';

const readEvent = fields({
  id: textLike(/^ev_[0-9a-f-]{36}$/),
  data: optional(
    fields({
      ...{ object: asIs, id: textLike(ID), payment: textLike(ID), idempotency_key: uuidOf },
      ...DISPUTE_FIELDS,
    }),
  ),
});

/** Reads a notification of the provider, signed as sandbox/README.md describes; pure. */
export function readNotification(
  { header, body }: RawNotification,
  secrets: readonly Secret[],
  nowMs: number,
): NotificationReading {
  const fault = faultOfTimedSignature(header('sandbox-signature'), body, secrets, nowMs);
  if (fault !== undefined) return forged(fault);
  const { id: deduplicationKey, data } = readEvent(readJsonObject(body));
  const subject = data && subjectOf(data);
  if (deduplicationKey === undefined || !subject) return { kind: 'ignored' };
  return { kind: 'about', deduplicationKey, subjects: [subject] };
}

/** Returns the subject: for a completion its order, for anything else the object itself. */
function subjectOf(data: NonNullable<Read<typeof readEvent>['data']>): NotificationSubject | undefined {
  const { object, id, payment, idempotency_key: transactionId } = data;
  if (object === 'dispute') {
    const dispute = disputeOf(data);
    return dispute && payment !== undefined ? { providerPaymentId: payment, dispute } : undefined;
  }
  if (object === 'completion') return payment === undefined ? undefined : { providerPaymentId: payment };
  if (id === undefined) return undefined;
  return { providerPaymentId: id, ...(transactionId && { transactionId }) };
}
