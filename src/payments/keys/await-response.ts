import { ServiceError } from '#src/service-error.ts';
import { isUnavailable } from '#src/store/engine/database-error.ts';
import type { KeyHolder } from '#src/store/tables/payment-keys.ts';
import { type PaymentResponse, readResponse, type StoredResponses } from './stored-response.ts';

/** Dependencies of a payment's or operation's replay. */
export type ReplayDeps = {
  readonly responses: StoredResponses;
  readonly patience: Patience;
  readonly observer: { replayed(): void };
};

/** Kind of object made under a key. */
type Keyed = 'payment' | 'operation';

/** The part of a key's holder that contains its response; there is none yet while `response` is absent. */
type Responded = Pick<KeyHolder, 'record' | 'response'>;

/**
 * Waits for the response of a key's holder, and reads it.
 *
 * @param first the holder, if already read.
 * @throws ServiceError REQUEST_IN_PROGRESS if there is no response in time or the database cannot be reached.
 */
export async function awaitResponse(
  { responses, patience }: Omit<ReplayDeps, 'observer'>,
  keyed: Keyed,
  read: () => Promise<Responded | undefined>,
  first?: Responded,
): Promise<PaymentResponse> {
  const response = awaitHolder(first, read, patience).then((found) => readResponse(responses, found));
  return afterClaim(patience, keyed, response);
}

/**
 * Awaits work that follows a claim.
 *
 * @throws ServiceError REQUEST_IN_PROGRESS if the database is unavailable, since something may have been sent. The
 * claimed payment or operation always gets a response, which a retry returns.
 */
export async function afterClaim<T>(patience: Patience, keyed: Keyed, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw isUnavailable(error) ? inProgress(patience, keyed, error) : error;
  }
}

/** Returns the error for a call whose payment or operation has been, or may have been, claimed. */
export function inProgress({ retryAfterS }: Patience, keyed: Keyed, cause?: unknown): ServiceError {
  const message = `the ${keyed} may have been sent; retry with the same key to get its response`;
  return new ServiceError('REQUEST_IN_PROGRESS', message, { retryAfterS, cause });
}

/** Limits on waiting for a write by another call or worker; the wait polls for up to `waitMs`. */
export type Patience = {
  readonly waitMs: number;
  readonly retryAfterS: number;
  readonly pause: (ms: number) => Promise<unknown>;
};

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;

/**
 * Waits until the payment that holds a key has a response.
 *
 * @param first the holder, if already read.
 * @param read rereads the holder.
 * @throws ServiceError REQUEST_IN_PROGRESS if there is no response in time.
 */
export async function awaitHolder(
  first: Responded | undefined,
  read: () => Promise<Responded | undefined>,
  patience: Patience,
): Promise<Responded & { readonly response: Uint8Array }> {
  let holder = first;
  const found = await waitFor(async () => {
    holder ??= await read();
    const { record, response } = holder ?? {};
    holder = undefined;
    return record && response && { record, response };
  }, patience);
  if (found) return found;
  const message = 'the first call with this key has no response yet; retry with the same key';
  throw new ServiceError('REQUEST_IN_PROGRESS', message, { retryAfterS: patience.retryAfterS });
}

/**
 * Polls with growing pauses until `read` returns a value.
 *
 * @returns undefined if there is none in time.
 */
export async function waitFor<T>(
  read: () => Promise<T | undefined>,
  { waitMs, pause }: Patience,
): Promise<T | undefined> {
  const deadline = performance.now() + waitMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    const found = await read();
    if (found !== undefined || performance.now() + pauseMs > deadline) return found;
    await pause(pauseMs);
  }
}
