import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Secret } from '#src/secret.ts';
import type { NotificationReading } from '../port/connector.ts';

/** Builds the reading of a forged notification. */
export function forged(detail: string): Extract<NotificationReading, { kind: 'forged' }> {
  return { kind: 'forged', detail };
}

/**
 * Returns true if one of the signatures is the HMAC-SHA-256 of the concatenated parts with one of the secrets. Compares
 * in constant time.
 *
 * @param signatures 32 bytes each.
 * @param keysAre the encoding of the secrets.
 */
export function isSignedBy(
  secrets: readonly Secret[],
  signed: readonly (string | Uint8Array)[],
  signatures: readonly Uint8Array[],
  keysAre: 'utf8' | 'hex' = 'utf8',
): boolean {
  return secrets.some((secret) => {
    const mac = createHmac('sha256', Buffer.from(secret.reveal(), keysAre));
    for (const part of signed) mac.update(part);
    const expected = mac.digest();
    return signatures.some((signature) => timingSafeEqual(signature, expected));
  });
}

/** Maximum age of a timed signature, and maximum time by which it may be ahead of our clock. */
const TOLERANCE_MS = 300_000;
const UNIX_SECONDS = /^\d{1,12}$/;
const HEX_SHA256 = /^[0-9a-f]{64}$/;

/**
 * Describes the fault of a header `t=<unix seconds>,v1=<hex>[,v1=<hex>]`, whose `v1` is the HMAC-SHA-256 of
 * `<t>.<body>` with one of the secrets; undefined if the header is valid.
 */
export function faultOfTimedSignature(
  header: string | undefined,
  body: Uint8Array,
  secrets: readonly Secret[],
  nowMs: number,
): string | undefined {
  const elements = (header ?? '').split(',').map((element) => element.trim().split('=', 2));
  const time = elements.find(([name]) => name === 't')?.[1] ?? '';
  const signatures = elements.flatMap(([name, value]) =>
    name === 'v1' && value !== undefined && HEX_SHA256.test(value) ? [Buffer.from(value, 'hex')] : [],
  );
  if (!UNIX_SECONDS.test(time) || signatures.length === 0) return 'the signature is missing or malformed';
  if (!isSignedBy(secrets, [`${time}.`, body], signatures)) return 'the signature is wrong';
  // Checked last: a sender without the secret must not learn whether the time is acceptable.
  return faultOfTime(Number(time) * 1_000, nowMs, { maxAgeMs: TOLERANCE_MS, maxAheadMs: TOLERANCE_MS });
}

/** Describes why a signature's time is not acceptable; undefined if it is. */
export function faultOfTime(
  signedAtMs: number,
  nowMs: number,
  limits: { readonly maxAgeMs: number; readonly maxAheadMs: number },
): string | undefined {
  const ageMs = nowMs - signedAtMs;
  const isTimely = ageMs <= limits.maxAgeMs && ageMs >= -limits.maxAheadMs;
  return isTimely ? undefined : 'the signature is too old, or dated in the future';
}
