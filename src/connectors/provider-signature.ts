import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Secret } from '#src/secret.ts';
import type { NotificationReading } from './connector.ts';

/** Makes the reading of a notification that is not genuine. */
export function forged(detail: string): Extract<NotificationReading, { kind: 'forged' }> {
  return { kind: 'forged', detail };
}

/**
 * Returns true if one of the signatures is the HMAC-SHA-256 of the concatenated parts under one of the secrets.
 * Compares in constant time.
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

/** Describes why a signature's time is not acceptable; undefined if it is. */
export function faultOfTime(
  signedAtMs: number,
  nowMs: number,
  limits: { readonly maxAgeMs: number; readonly maxAheadMs: number },
): string | undefined {
  const ageMs = nowMs - signedAtMs;
  const isTimely = ageMs <= limits.maxAgeMs && ageMs >= -limits.maxAheadMs;
  return isTimely ? undefined : 'the signature is too old, or ahead of its time';
}
