import { fieldRefusal } from '#src/service-error.ts';

/** The header with a call's key. */
export const KEY_HEADER = 'x-idempotency-key';
const KEY_FORM = /^[\x20-\x7e]{1,255}$/;

/**
 * Returns the idempotency key of a call: 1 to 255 printable ASCII characters, opaque.
 *
 * @throws ServiceError IDEMPOTENCY_KEY_MISSING if it is absent, malformed or sent twice.
 */
export function requireIdempotencyKey(header: string | undefined): string {
  if (header !== undefined && KEY_FORM.test(header) && !isJoined(header)) return header;
  const message =
    header === undefined ? 'is required' : 'must be 1 to 255 printable ASCII characters, sent once';
  const code = header === undefined ? 'REQUIRED' : 'INVALID_FORMAT';
  throw fieldRefusal('IDEMPOTENCY_KEY_MISSING', KEY_HEADER, code, message);
}

/**
 * Reports whether a header was sent twice with the same value and then joined into one line (RFC 9110, section 5.3), as
 * proxies and `Headers.append` do. Taken as a key of its own, it would make a second payment. A list of different
 * members is a key that contains commas.
 */
function isJoined(header: string): boolean {
  const members = header.split(',').map((member) => member.trim());
  return members.length > 1 && new Set(members.filter(Boolean)).size < 2;
}

/**
 * Prefix of stored keys of callers with only the public key. Unprintable, so no merchant's key begins with it. Older
 * keys lack it.
 */
const PUBLIC_KEY_SPACE = '\u0001';

/**
 * Returns a caller's idempotency key in its stored form. Callers with only the public key have a separate key space:
 * the public key appears in web pages, so anyone could otherwise claim `order-1001` or learn whether it is used.
 *
 * @throws ServiceError as requireIdempotencyKey does.
 */
export function storedIdempotencyKey(caller: {
  readonly idempotencyKey: string | undefined;
  readonly secretPresented: boolean;
}): string {
  const key = requireIdempotencyKey(caller.idempotencyKey);
  return caller.secretPresented ? key : PUBLIC_KEY_SPACE + key;
}

/** Prefix of keys made from a merchant's reference. Unprintable, so no key in a header begins with it. */
const REFERENCE_SPACE = '\u0001';

/** Returns the stored key of an operation that its merchant's reference within the payment identifies. */
export function referenceKey(paymentId: string, merchantReference: string): string {
  return [REFERENCE_SPACE, paymentId.toLowerCase(), REFERENCE_SPACE, merchantReference].join('');
}

/** Returns true for a stored key that was made from a merchant's reference. */
export function isReferenceKey(stored: string | undefined): boolean {
  return stored?.startsWith(REFERENCE_SPACE) ?? false;
}

/** Returns true for a stored idempotency key that its caller sent in the header, with the secret key. */
export function isSentKey(stored: string): boolean {
  return !stored.startsWith(PUBLIC_KEY_SPACE);
}

/** Returns a stored idempotency key as its caller sent it. */
export function sentIdempotencyKey(stored: string): string {
  return stored.startsWith(PUBLIC_KEY_SPACE) ? stored.slice(PUBLIC_KEY_SPACE.length) : stored;
}
