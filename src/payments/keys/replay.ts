import { timingSafeEqual } from 'node:crypto';
import { fieldRefusal, ServiceError } from '#src/service-error.ts';
import { KEY_HEADER } from './key.ts';
import type { RequestHash } from './request-hash.ts';

/** The request of the call that holds a key. */
export type Holder = { readonly requestHash: Uint8Array; readonly requestShape: Uint8Array };

/** A caller's key: the call that holds it, and that call's response. */
export type Key<Held extends Holder, Response> = {
  /** Finds the call that holds the key, if any. */
  readonly find: () => Promise<Held | undefined>;
  /** Returns the hash of this call's request, in the form in which the holder's was hashed. */
  readonly hash: (holder: Held) => RequestHash | Promise<RequestHash>;
  /**
   * Returns the name of the field that contains the key, as the caller sent it; the header by default.
   *
   * @throws ServiceError IDEMPOTENCY_KEY_REUSED.
   */
  readonly field?: (holder: Held) => string;
  /** Reads the holder's response, and waits for it if there is none yet. */
  readonly read: (holder: Held) => Promise<Response>;
};

/** The response to a call under a key, which never changes. */
export type Replayable<Response> = Response & { readonly replayed: boolean };

/** Result of a claim: the claimed object, or the call that already holds the key. */
export type ClaimedOrHeld<Claimed, Held> = { readonly claimed: Claimed } | { readonly holder: Held };

/**
 * Makes a call under a key, or returns the response of the call that holds it.
 *
 * @param claim claims the key, before anything is sent.
 * @param work makes the call, and stores its response.
 * @throws ServiceError as `claim` and `work` do; IDEMPOTENCY_KEY_REUSED; REQUEST_IN_PROGRESS.
 */
export async function underKey<Held extends Holder, Response, Claimed>(
  key: Key<Held, Response>,
  claim: () => Promise<ClaimedOrHeld<Claimed, Held>>,
  work: (claimed: Claimed) => Promise<Replayable<Response>>,
): Promise<Replayable<Response>> {
  const result = await claim().catch(async (refusal) => {
    if (isFinal(refusal)) throw refusal;
    // A response outlives its request's references: the token may be gone by now, or the route closed. And another call
    // with the key may have caused this refusal.
    const holder = await key.find();
    if (holder) return { holder };
    throw refusal;
  });
  return 'holder' in result ? replay(key, result.holder) : work(result.claimed);
}

/**
 * Returns true for a refusal that is the response whatever holds the key: the caller may not know, or the claim may have
 * been committed, so that its own holder would be found.
 */
function isFinal(refusal: unknown): boolean {
  const { reason } = refusal instanceof ServiceError ? refusal : {};
  return reason === 'INVALID_CREDENTIALS' || reason === 'REQUEST_IN_PROGRESS';
}

/**
 * Returns the response that a key already has; undefined if nothing holds the key.
 *
 * @throws ServiceError as `replay` does.
 */
export async function replayIfHeld<Held extends Holder, Response>(
  key: Key<Held, Response>,
): Promise<Replayable<Response> | undefined> {
  const holder = await key.find();
  return holder && replay(key, holder);
}

/** Returns the holder's response. @throws ServiceError IDEMPOTENCY_KEY_REUSED for a different request; REQUEST_IN_PROGRESS. */
export async function replay<Held extends Holder, Response>(
  key: Key<Held, Response>,
  holder: Held,
): Promise<Replayable<Response>> {
  const field = key.field?.(holder);
  requireSameRequest(holder, await key.hash(holder), field);
  return { ...(await key.read(holder)), replayed: true };
}

/**
 * Rejects a different request under a held key.
 *
 * @param field the key's name, as the caller sent it.
 * @throws ServiceError IDEMPOTENCY_KEY_REUSED.
 */
export function requireSameRequest(holder: Holder, request: RequestHash, field = KEY_HEADER): void {
  if (isSameRequest(holder, request)) return;
  const message = 'was already used with a different request';
  throw fieldRefusal('IDEMPOTENCY_KEY_REUSED', field, 'NOT_ALLOWED', message);
}

/**
 * Compares a request with the holder's. If a release with other fields hashed the holder's request, the hashes cannot be
 * compared. The request then counts as the same and gets the holder's response, since a refusal would make the merchant
 * pay again under another key.
 */
export function isSameRequest(holder: Holder, request: RequestHash): boolean {
  const isComparable = areEqual(holder.requestShape, request.shape);
  return !isComparable || areEqual(holder.requestHash, request.hash);
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
