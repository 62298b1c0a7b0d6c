import { timingSafeEqual } from 'node:crypto';
import { fieldRefusal, ServiceError } from '#src/service-error.ts';
import type { KeyHolder } from '#src/store/payments.ts';
import type { RequestHash } from './request-hash.ts';

const HEADER = 'x-idempotency-key';
const KEY_FORM = /^[\x20-\x7e]{1,255}$/;

/**
 * The idempotency key of a call: 1 to 255 printable ASCII characters, opaque.
 *
 * @throws ServiceError IDEMPOTENCY_KEY_MISSING when it is absent or not of that form.
 */
export function requireIdempotencyKey(header: string | undefined): string {
  if (header !== undefined && KEY_FORM.test(header)) return header;
  const message = header === undefined ? 'is required' : 'must be 1 to 255 printable ASCII characters';
  const code = header === undefined ? 'REQUIRED' : 'INVALID_FORMAT';
  throw fieldRefusal('IDEMPOTENCY_KEY_MISSING', HEADER, code, message);
}

/** Not printable, so no merchant's key begins with it; keys stored before it was used stay where they were. */
const PUBLIC_KEY_SPACE = '\u0001';

/**
 * The idempotency key of a caller as it is stored. Keys of callers with the public key alone are a space of their own:
 * that key stands in web pages, where anybody could claim `order-1001`, or learn whether it is used.
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

/**
 * Refuses another request under a key that is held. Where the holder was hashed by a release that knows other fields, the
 * two cannot be compared, and the request passes for the same: it gets the holder's response. A refusal would make the
 * merchant pay again under another key.
 *
 * @throws ServiceError IDEMPOTENCY_KEY_REUSED.
 */
export function requireSameRequest(
  holder: Pick<KeyHolder, 'requestHash' | 'requestShape'>,
  request: RequestHash,
): void {
  const isComparable = holder.requestShape !== undefined && areEqual(holder.requestShape, request.shape);
  if (!isComparable || areEqual(holder.requestHash, request.hash)) return;
  const message = 'was used before, with another request';
  throw fieldRefusal('IDEMPOTENCY_KEY_REUSED', HEADER, 'NOT_ALLOWED', message);
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Patience with a held key: it is read again, with growing pauses, up to a bound. */
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
 * @param first the holder, when it was read already.
 * @param read reads the holder again.
 * @throws ServiceError REQUEST_IN_PROGRESS when it has none by then.
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
      throw new ServiceError(
        'REQUEST_IN_PROGRESS',
        'the first call with this key has no response yet; repeat it with the same key',
        {
          retryAfterS: patience.retryAfterS,
        },
      );
    }
    await patience.pause(pauseMs);
    holder = await read();
  }
}
