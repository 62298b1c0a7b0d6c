import {
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import type { Caller } from '#src/payments/caller.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Database, Run } from '#src/store/engine/database.ts';
import { isSurelyNotCommitted, isUnavailable } from '#src/store/engine/database-error.ts';
import {
  type CallHolder,
  claimCall,
  findCall,
  type KeyedCall,
  keepResponse,
} from '#src/store/tables/replayed-calls.ts';
import { storedIdempotencyKey } from './key.ts';
import { type Key, type Replayable, replay, replayIfHeld } from './replay.ts';
import { type RequestHash, requestHasher } from './request-hash.ts';

/** A call that makes an object, with the hash that distinguishes a repeat from another request. */
export type OnceCall<Desc extends DescMessage> = {
  /** Name of the rpc. */
  readonly method: string;
  readonly caller: Caller;
  readonly requestHash: RequestHash;
  readonly response: Desc;
  /** Returns the id of the customer whose personal data a response contains. */
  readonly customerIn?: ((response: MessageShape<Desc>) => string) | undefined;
};

/**
 * Returns a function that describes calls of an rpc.
 *
 * @param options.canonical returns a copy of a request in the form to hash.
 * @param options.customerIn returns the id of the customer whose personal data a response contains.
 */
export function onceCallsOf<Input extends DescMessage, Output extends DescMessage>(
  { name: method, input, output: response }: DescMethodUnary<Input, Output>,
  {
    canonical,
    customerIn,
  }: {
    readonly canonical?: (request: MessageShape<Input>) => MessageShape<Input>;
    readonly customerIn?: (response: MessageShape<Output>) => string;
  } = {},
) {
  const hash = requestHasher(input, canonical);
  return (
    { requestHashKey }: { readonly requestHashKey: Uint8Array },
    request: MessageShape<Input>,
    caller: Caller,
  ): OnceCall<Output> => ({
    method,
    caller,
    requestHash: hash(requestHashKey, request),
    response,
    customerIn,
  });
}

/** The response to such a call. */
export type OnceResponse<Desc extends DescMessage> = Replayable<{ readonly message: MessageShape<Desc> }>;

/**
 * Makes an object and claims the call's idempotency key, if it has one, in one commit, so that a repeat gets the first
 * response. A call that `work` refuses does not use up its key.
 *
 * @throws ServiceError IDEMPOTENCY_KEY_MISSING for a malformed key, IDEMPOTENCY_KEY_REUSED for another request with the
 * same key, REQUEST_IN_PROGRESS if the object may have been made; and as `work` does.
 */
export async function callOnce<Desc extends DescMessage>(
  database: Database,
  call: OnceCall<Desc>,
  work: (run: Run) => Promise<MessageShape<Desc>>,
): Promise<OnceResponse<Desc>> {
  const { response, customerIn } = call;
  const keyed = keyedCall(call);
  return orMaybeDone(
    keyed !== undefined,
    database.transaction(async (run) => {
      const holder = keyed && (await claimCall(run, keyed));
      if (holder) return replay(keyOf(database, call), holder);
      const message = await work(run);
      if (keyed) await keepResponse(run, keyed, toBinary(response, message), customerIn?.(message));
      return { message, replayed: false };
    }),
  );
}

/**
 * Returns the response to an earlier call with the same key, for calls whose work begins outside the commit.
 *
 * @throws ServiceError as `callOnce` does.
 */
export function replayedCall<Desc extends DescMessage>(
  database: Database,
  call: OnceCall<Desc>,
): Promise<OnceResponse<Desc> | undefined> {
  return replayIfHeld(keyOf(database, call));
}

/** Returns the call's key. Nothing holds the key of a call without one. */
function keyOf<Desc extends DescMessage>(
  database: Database,
  call: OnceCall<Desc>,
): Key<CallHolder, { readonly message: MessageShape<Desc> }> {
  const keyed = keyedCall(call);
  return {
    find: async () => keyed && findCall(database, keyed),
    hash: () => call.requestHash,
    read: async ({ response }) => ({ message: fromBinary(call.response, response) }),
  };
}

/** Returns the call with its key; undefined without a key. */
function keyedCall({ caller, method, requestHash }: OnceCall<DescMessage>): KeyedCall | undefined {
  if (caller.idempotencyKey === undefined) return undefined;
  return {
    accountId: caller.accountId,
    method,
    idempotencyKey: storedIdempotencyKey(caller),
    requestHash: requestHash.hash,
    requestShape: requestHash.shape,
  };
}

/** Rejects with REQUEST_IN_PROGRESS if the acknowledgement was lost, since the commit may have succeeded. */
async function orMaybeDone<T>(isKeyed: boolean, promise: Promise<T>): Promise<T> {
  return promise.catch((cause) => {
    if (!isUnavailable(cause) || isSurelyNotCommitted(cause)) throw cause;
    // Without a key, a repeated call would be a new one, and make a second webhook or secret.
    const advice = isKeyed
      ? 'retry with the same key and request'
      : 'the call had no idempotency key, so check before you retry';
    const message = `the call may have been carried out; ${advice}`;
    throw new ServiceError('REQUEST_IN_PROGRESS', message, { retryAfterS: 1, cause });
  });
}
