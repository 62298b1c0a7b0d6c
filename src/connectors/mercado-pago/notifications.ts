import { createHash } from 'node:crypto';
import type { Secret } from '#src/secret.ts';
import { faultOfTime, forged, isSignedBy } from '../kit/provider-signature.ts';
import type { NotificationReading, RawNotification } from '../port/connector.ts';

/** A genuine notification: the id of the payment or chargeback that it is about, and its deduplication key. */
export type GenuineNotification = {
  readonly kind: 'genuine';
  readonly about: 'payment' | 'chargeback';
  readonly id: string;
  readonly deduplicationKey: string;
};

/**
 * Maximum age of a signature. Deliveries are repeated for hours, and it is undocumented whether repeats are signed
 * again. An old signature can only cause another query to the provider.
 */
const MAX_AGE_MS = 24 * 60 * 60_000;
/** Time by which the provider's clock may be ahead of ours. */
const MAX_AHEAD_MS = 5 * 60_000;
/** Boundary between seconds and milliseconds: in seconds it is the year 5138, in milliseconds 1973. */
const FIRST_MILLISECONDS = 1e11;
const TIME = /^\d{1,15}$/;
const HEX_SHA256 = /^[0-9a-f]{64}$/;
/** Types of the notifications that are read, with the form of their ids. */
const TOPICS: Readonly<Record<string, { about: GenuineNotification['about']; id: RegExp }>> = {
  payment: { about: 'payment', id: /^\d{1,20}$/ },
  topic_chargebacks_wh: { about: 'chargeback', id: /^[0-9A-Za-z-]{1,64}$/ },
};

/**
 * Verifies a notification; pure. `x-signature: ts=…,v1=<hex>` is the HMAC-SHA-256 of `id:…;request-id:…;ts:…;` with one
 * of the secrets. The signature covers the id in the query string, but neither the type, which only says where the id is
 * looked up, nor the body, which is therefore not read.
 */
export function verifyNotification(
  { header, query }: RawNotification,
  secrets: readonly Secret[],
  nowMs: number,
): GenuineNotification | NotificationReading {
  const parameters = new URLSearchParams(query);
  const elements = new Map(
    (header('x-signature') ?? '').split(',').map((element): [string, string] => {
      const [name = '', value = ''] = element.split('=', 2);
      return [name.trim(), value.trim()];
    }),
  );
  const time = elements.get('ts') ?? '';
  const signature = elements.get('v1') ?? '';
  if (!TIME.test(time) || !HEX_SHA256.test(signature)) return forged('the signature is missing or malformed');

  const [id, type] = [parameters.get('data.id') ?? '', parameters.get('type') ?? ''];
  const requestId = header('x-request-id') ?? '';
  // According to the documentation, an id is signed in lower case; the provider's own SDK signs it unchanged.
  const manifests = [...new Set([id, id.toLowerCase()])].map((signed) => manifestOf(signed, requestId, time));
  const given = [Buffer.from(signature, 'hex')];
  if (!manifests.some((manifest) => isSignedBy(secrets, [manifest], given))) {
    return forged('the signature is wrong');
  }
  const timeMs = Number(time) >= FIRST_MILLISECONDS ? Number(time) : Number(time) * 1000;
  const fault = faultOfTime(timeMs, nowMs, { maxAgeMs: MAX_AGE_MS, maxAheadMs: MAX_AHEAD_MS });
  if (fault !== undefined) return forged(fault);
  const topic = Object.hasOwn(TOPICS, type) ? TOPICS[type] : undefined;
  if (!topic?.id.test(id)) return { kind: 'ignored' };
  const deduplicationKey = createHash('sha256')
    .update(manifestOf(id, requestId, time))
    .digest('hex');
  return { kind: 'genuine', about: topic.about, id, deduplicationKey };
}

/** Returns the signed text. It omits a missing part together with its name. */
function manifestOf(id: string, requestId: string, time: string): string {
  return `${id && `id:${id};`}${requestId && `request-id:${requestId};`}ts:${time};`;
}
