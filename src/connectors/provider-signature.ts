import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Secret } from '#src/secret.ts';
import type { NotificationReading } from './connector.ts';

/** A notification that counts for nothing. */
export function forged(detail: string): Extract<NotificationReading, { kind: 'forged' }> {
  return { kind: 'forged', detail };
}

/**
 * Returns true if one of the signatures is the HMAC-SHA-256 of the signed parts, put together, under one of the secrets.
 * In constant time for each.
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

/** Describes the fault of a signature by its time; undefined when there is none. */
export function faultOfTime(
  signedAtMs: number,
  nowMs: number,
  limits: { readonly maxAgeMs: number; readonly maxAheadMs: number },
): string | undefined {
  const ageMs = nowMs - signedAtMs;
  const isTimely = ageMs <= limits.maxAgeMs && ageMs >= -limits.maxAheadMs;
  return isTimely ? undefined : 'the signature is too old, or ahead of its time';
}
