import { createHmac } from 'node:crypto';

/** Returns a keyed hash of a text in UUID form: the first 16 bytes of its HMAC-SHA-256. */
export function keyedHash(key: Uint8Array, text: string): string {
  const hex = createHmac('sha256', key).update(text).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}
