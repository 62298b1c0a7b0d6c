import { timingSafeEqual } from 'node:crypto';
import { fieldRefusal, ServiceError } from '#src/service-error.ts';
import type { KeyHolder } from '#src/store/payments.ts';
import type { RequestHash } from './request-hash.ts';

const HEADER = 'x-idempotency-key';
const KEY_FORM = /^[\x20-\x7e]{1,255}$/;

/**
 * Returns the idempotency key of a call: 1 to 255 printable ASCII characters, opaque.
 *
 * @throws ServiceError IDEMPOTENCY_KEY_MISSING if it is absent or malformed.
 */
export function requireIdempotencyKey(header: string | undefined): string {
  if (header !== undefined && KEY_FORM.test(header)) return header;
  const message =
    header === undefined ? 'is required' : 'must be 1 to 255 printable ASCII characters, sent once';
  const code = header === undefined ? 'REQUIRED' : 'INVALID_FORMAT';
  throw fieldRefusal('IDEMPOTENCY_KEY_MISSING', HEADER, code, message);
}

/** Prefix for the public key alone. Not printable, so no merchant's key begins with it; older keys lack it. */
const PUBLIC_KEY_SPACE = '\u0001';

/**
 * Returns a caller's idempotency key as it is stored. Callers with the public key alone have a key space of their own:
 * the public key appears in web pages, where anybody could otherwise claim `order-1001`, or learn whether it is used.
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

/** Returns a stored idempotency key as its caller sent it. */
export function sentIdempotencyKey(stored: string): string {
  return stored.startsWith(PUBLIC_KEY_SPACE) ? stored.slice(PUBLIC_KEY_SPACE.length) : stored;
}

/**
 * Refuses another request under a key that is held. If a release that knows other fields hashed the holder's request,
 * the two cannot be compared: the request counts as the same and gets the holder's response, since a refusal would
 * make the merchant pay again under another key.
 *
 * @param field the key's name, as the caller sent it.
 * @throws ServiceError IDEMPOTENCY_KEY_REUSED.
 */
export function requireSameRequest(
  holder: Pick<KeyHolder, 'requestHash' | 'requestShape'>,
  request: RequestHash,
  field = HEADER,
): void {
  const isComparable = holder.requestShape !== undefined && areEqual(holder.requestShape, request.shape);
  if (!isComparable || areEqual(holder.requestHash, request.hash)) return;
  const message = 'was used before, with another request';
  throw fieldRefusal('IDEMPOTENCY_KEY_REUSED', field, 'NOT_ALLOWED', message);
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Limits of the wait for a held key's response: the key is read again, with growing pauses, for up to `waitMs`. */
export type Patience = {
  readonly waitMs: number;
  readonly retryAfterS: number;
  readonly pause: (ms: number) => Promise<unknown>;
};

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;

/**
 * Waits until the payment that holds a key has its response.
 *
 * @param first the holder, if it was read already.
 * @param read reads the holder again.
 * @throws ServiceError REQUEST_IN_PROGRESS if it has none in time.
 */
export async function awaitResponse(
  first: KeyHolder | undefined,
  read: () => Promise<KeyHolder | undefined>,
  patience: Patience,
): Promise<KeyHolder & { answer: Uint8Array }> {
  const deadline = performance.now() + patience.waitMs;
  let holder = first ?? (await read());
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    const answer = holder?.answer;
    if (holder && answer) return { ...holder, answer };
    if (performance.now() + pauseMs > deadline) {
      const message = 'the first call with this key has no response yet; repeat it with the same key';
      throw new ServiceError('REQUEST_IN_PROGRESS', message, { retryAfterS: patience.retryAfterS });
    }
    await patience.pause(pauseMs);
    holder = await read();
  }
}
