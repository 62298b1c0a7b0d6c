import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { openConnection } from '#src/payments/route/live-catalogue.ts';
import { OverloadError, type ServiceError } from '#src/service-error.ts';
import type { Claim } from '#src/store/engine/claim-payment.ts';
import { isSurelyNotCommitted, isUnavailable, NodeIllError } from '#src/store/engine/database-error.ts';
import { claimGrouped } from '#src/store/engine/grouped-writes.ts';
import { findByKey, type KeyHolder } from '#src/store/tables/payment-keys.ts';
import { AlreadyUsedError } from '#src/store/tables/single-uses.ts';
import { type Caller, requireMayPay, requireOwnAccount } from '../caller.ts';
import { afterClaim, awaitResponse, inProgress, type ReplayDeps } from '../keys/await-response.ts';
import { storedIdempotencyKey } from '../keys/key.ts';
import { type ClaimedOrHeld, isSameRequest, type Key, replayIfHeld, underKey } from '../keys/replay.ts';
import { hashPaymentRequest, type RequestHash } from '../keys/request-hash.ts';
import type { KeyedResponse, PaymentResponse } from '../keys/stored-response.ts';
import { callsBeginWithinMs } from '../model/schedule.ts';
import { decodeRecord } from '../stored-record.ts';
import { type WriteObserver, within, writeWaitMs } from '../until-written.ts';
import { type WriteDeps, writeOwnOutcome } from '../write-change.ts';
import { acquireSlot, type ConnectionSlot } from './connection-slots.ts';
import { type AttemptDeps, makeAttempts } from './make-attempts.ts';
import { type PrepareDeps, type PreparedPayment, preparePayment } from './prepare-payment.ts';

/** Dependencies of createPayment. */
export type PaymentDeps = PrepareDeps &
  WriteDeps &
  ReplayDeps & {
    /** Key of the hash that distinguishes a retry from another request. */
    readonly requestHashKey: Uint8Array;
    readonly observer: PaymentObserver;
  };

/** Observer of payments, for metrics, traces and logs. */
export type PaymentObserver = WriteObserver &
  ReplayDeps['observer'] &
  AttemptDeps['observer'] & {
    /** Called when a connection has no free slot for a payment. */
    refused(): void;
  };

/** A payment as its caller asks for it. */
export type AskedPayment = {
  /** Satisfies the rules of its .proto and checkRequest. */
  readonly request: CreatePaymentRequest;
  readonly caller: Caller;
  /**
   * Returns the request on the terms of an earlier payment, for a request that was completed from terms which may have
   * changed since; undefined if the payment was not made on such terms.
   */
  readonly onTermsOf?: (earlier: Payment) => CreatePaymentRequest | undefined;
  /** Asks for the payment on the terms of the session as it is now; undefined if the caller gave the terms. */
  readonly again?: () => Promise<AskedPayment>;
};

/**
 * Makes a payment, or returns the response stored under the same key.
 *
 * @param request satisfies the rules of its .proto and checkRequest.
 * @throws ServiceError as `payAsked` does.
 */
export function createPayment(
  deps: PaymentDeps,
  request: CreatePaymentRequest,
  caller: Caller,
): Promise<KeyedResponse> {
  return payAsked(deps, { request, caller });
}

/** Limit on tries to claim: a session may change after its payment is prepared, but hardly this often by accident. */
const CLAIM_TRIES = 5;

/**
 * Makes a payment, or returns the response stored under the same key. THE main path: two commits (and one for each
 * further attempt), and no database transaction is open during a provider call.
 *
 * @param asked asked for again if its session has changed, or was used, before the payment is claimed.
 * @throws ServiceError if the payment is refused. REQUEST_IN_PROGRESS: the payment may have been claimed, and its
 * response is still to come under the same key. Any other reason: this call claimed nothing and sent nothing.
 * @throws Error for a fault of ours, after which the payment may be claimed: the checker learns its outcome, and the
 * key gets its response.
 */
export async function payAsked(deps: PaymentDeps, asked: AskedPayment, tries = 1): Promise<KeyedResponse> {
  // 1. The key, its account, and the hash of its request.
  const key = readKey(deps, asked);
  try {
    return await underKey(
      key,
      () => prepareAndClaim(deps, asked, key),
      (claimed) => afterClaim(deps.patience, 'payment', payClaimed(deps, claimed, key.find)),
    );
  } catch (error) {
    if (error instanceof OverloadError) deps.observer.refused();
    if (!(error instanceof AlreadyUsedError) || tries === CLAIM_TRIES) throw error;
  }
  return payAsked(deps, asked.again ? await asked.again() : asked, tries + 1);
}

/** Makes a claimed payment. */
async function payClaimed(
  deps: PaymentDeps,
  { prepared, claim, claimBeforeMs, slot }: Claimed,
  read: () => Promise<KeyHolder | undefined>,
): Promise<KeyedResponse> {
  // 3. The provider is called once, and another provider only if the previous call is known to have failed.
  const beganMs = performance.now();
  const attempts = makeAttempts(deps, prepared, slot, claimBeforeMs).finally(slot.release);
  const { transactionId, outcome, record, version } = await attempts;

  // 4. Commit 2: the outcome so far, and the response.
  const vaultedToken = claim.vault?.token ?? claim.storedMethod;
  const own = {
    ...{ accountId: claim.accountId, paymentId: claim.paymentId, transactionId, fence: 0, version, record },
    stepMs: performance.now() - beganMs,
    attempt: {
      ...{ id: transactionId, vaultedToken, cardFingerprint: claim.cardFingerprint },
      ...{ capture: claim.capture, methodKind: claim.methodKind, awaitsPayer: false },
    },
  };
  const written = await within(writeOwnOutcome(deps, own, outcome), writeWaitMs(deps.schedule));
  if (written === undefined) throw inProgress(deps.patience, 'payment');
  const isWritten = typeof written !== 'string';
  if (isWritten && !written.earlier) return { record: written.record, body: undefined, replayed: false };
  // The stored response wins: the checker may have written first, or have stored that the outcome is unknown.
  const earlier = await awaitResponse(deps, 'payment', read, isWritten ? written.earlier : undefined);
  return { ...earlier, replayed: false };
}

/**
 * Returns the response that a key already has, for a request that is refused because of an unsupported field: a release
 * that does not know the field ignores it, and may have made the request's payment.
 *
 * @throws ServiceError `refusal` if nothing holds the key; otherwise as `createPayment` does.
 */
export async function replayOrRefuse(
  deps: PaymentDeps,
  asked: AskedPayment,
  refusal: ServiceError,
): Promise<KeyedResponse> {
  const replayed = await replayIfHeld(readKey(deps, asked));
  if (!replayed) throw refusal;
  return replayed;
}

/** A payment's key. */
type PaymentKey = Key<KeyHolder, PaymentResponse> & {
  readonly idempotencyKey: string;
  readonly requestHash: RequestHash;
};

/** Returns the key of a payment, with the hash of its request. */
function readKey(deps: PaymentDeps, { request, caller, onTermsOf }: AskedPayment): PaymentKey {
  const idempotencyKey = storedIdempotencyKey(caller);
  requireMayPay(caller);
  requireOwnAccount(request.accountId, caller);
  const requestHash = hashPaymentRequest(deps.requestHashKey, request);
  const find = () => findByKey(deps.database, caller.accountId, idempotencyKey);
  return {
    ...{ idempotencyKey, requestHash, find },
    hash(holder) {
      if (isSameRequest(holder, requestHash)) return requestHash;
      const first = onTermsOf?.(decodeRecord(holder.record));
      return first ? hashPaymentRequest(deps.requestHashKey, first) : requestHash;
    },
    async read(holder) {
      const response = await awaitResponse(deps, 'payment', find, holder);
      deps.observer.replayed();
      return response;
    },
  };
}

/** A claimed payment. */
type Claimed = {
  readonly prepared: PreparedPayment;
  readonly claim: Claim;
  readonly claimBeforeMs: number;
  /** The payment's slot, released once the attempts are over. */
  readonly slot: ConnectionSlot;
};

/**
 * Prepares the payment and claims its key.
 *
 * @returns the key's holder, if that is another payment.
 * @throws AlreadyUsedError if the session has changed or was used in the meantime.
 */
async function prepareAndClaim(
  deps: PaymentDeps,
  { request, caller }: AskedPayment,
  key: PaymentKey,
): Promise<ClaimedOrHeld<Claimed, KeyHolder>> {
  // 2. Stored objects, payment method and route; then commit 1, which claims the key and stores the payment before
  // anything is sent.
  const { idempotencyKey, requestHash } = key;
  const prepared = await preparePayment(deps, request, { ...caller, idempotencyKey });
  const slot = acquireSlot(prepared);
  try {
    const claimBeforeMs = performance.now() + callsBeginWithinMs(deps.schedule);
    const named = { accountId: caller.accountId, idempotencyKey };
    const { hash, shape } = requestHash;
    const claim: Claim = { ...prepared.claim, ...named, requestHash: hash, requestShape: shape };
    const stepMs = openConnection(prepared.catalogue, claim.connectionId).recentLatencyMs?.();
    const holder = await claimKey(deps, claim, key.find, { beforeMs: claimBeforeMs, stepMs });
    if (!holder) return { claimed: { prepared, claim, claimBeforeMs, slot } };
    slot.release();
    return { holder };
  } catch (error) {
    slot.release();
    throw error;
  }
}

const CLAIM_PAUSE_MS = 50;

/**
 * Claims the key. If the acknowledgement is lost, or the holder of the key cannot be read, only the database knows: it is
 * queried until `beforeMs`, and then the caller gets REQUEST_IN_PROGRESS rather than "nothing was accepted".
 *
 * @param timing.stepMs how long the call takes that the claim precedes.
 * @returns the key's holder, if that is not this payment.
 */
async function claimKey(
  deps: PaymentDeps,
  claim: Claim,
  read: () => Promise<KeyHolder | undefined>,
  { beforeMs, stepMs }: { readonly beforeMs: number; readonly stepMs: number | undefined },
): Promise<KeyHolder | undefined> {
  let mayBeClaimed = false;
  for (;;) {
    try {
      if (await claimGrouped(deps.database, claim, stepMs)) return undefined;
      // A payment holds the key, perhaps this one.
      mayBeClaimed = true;
      const holder = await read();
      if (!holder) throw new Error('the idempotency key is taken, but its payment was not found');
      return holder.paymentId === claim.paymentId ? undefined : holder;
    } catch (error) {
      if (error instanceof AlreadyUsedError) throw error;
      mayBeClaimed ||= !isSurelyNotCommitted(error);
      if (!mayBeClaimed) throw error;
      const isVain = !isUnavailable(error) || error instanceof NodeIllError;
      if (isVain || performance.now() > beforeMs) throw inProgress(deps.patience, 'payment', error);
      await new Promise((resolve) => setTimeout(resolve, CLAIM_PAUSE_MS));
    }
  }
}
