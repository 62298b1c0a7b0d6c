import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { OverloadError, ServiceError } from '#src/service-error.ts';
import { type Claim, claimGrouped } from '#src/store/engine/claim-payment.ts';
import { isSurelyNotCommitted, isUnavailable, NodeIllError } from '#src/store/engine/database-error.ts';
import { findByKey, type KeyHolder } from '#src/store/tables/payment-keys.ts';
import { AlreadyUsedError } from '#src/store/tables/single-uses.ts';
import { type Caller, type KeyedCaller, requireMayPay, requireOwnAccount } from '../caller.ts';
import { storedIdempotencyKey } from '../keys/key.ts';
import { afterClaim, inProgress, type ReplayDeps, replay, storedResponse } from '../keys/replay.ts';
import { hashPaymentRequest, type RequestHash } from '../keys/request-hash.ts';
import type { KeyedResponse } from '../keys/stored-response.ts';
import { callsBeginWithinMs } from '../model/schedule.ts';
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

/**
 * Makes a payment, or returns the response stored under the same key. THE main path: two commits (and one for each
 * further attempt), and no database transaction is open during a provider call.
 *
 * @param request satisfies the rules of its .proto and checkRequest.
 * @throws ServiceError if the payment is refused. REQUEST_IN_PROGRESS: the payment may have been claimed, and its
 * response is still to come under the same key. Any other reason: this call claimed nothing and sent nothing.
 * @throws Error for a fault of ours, after which the payment may be claimed: the checker learns its outcome, and the
 * key gets its response.
 */
export async function createPayment(
  deps: PaymentDeps,
  request: CreatePaymentRequest,
  caller: Caller,
): Promise<KeyedResponse> {
  // 1. The key, its account, and the hash of its request.
  const { idempotencyKey, requestHash, read } = readKey(deps, request, caller);

  // 2. Stored objects, payment method and route; then commit 1, which claims the key and stores the payment before
  // anything is sent.
  const claimed = await prepareAndClaim(deps, request, requestHash, { ...caller, idempotencyKey }, read);
  if ('holder' in claimed) return replay(deps, 'payment', claimed.holder, requestHash, read);
  return afterClaim(deps.patience, 'payment', payClaimed(deps, claimed, read));
}

/** Makes a claimed payment. */
async function payClaimed(
  deps: PaymentDeps,
  { prepared, claim, claimBeforeMs, slot }: Claimed,
  read: () => Promise<KeyHolder | undefined>,
): Promise<KeyedResponse> {
  // 3. The provider is called once, and another provider only if the previous call is known to have failed.
  const attempts = makeAttempts(deps, prepared, slot, claimBeforeMs).finally(slot.release);
  const { transactionId, outcome, record, version } = await attempts;

  // 4. Commit 2: the outcome so far, and the response.
  const vaultedToken = claim.vault?.token ?? claim.storedMethod;
  const own = {
    ...{ accountId: claim.accountId, paymentId: claim.paymentId, transactionId, fence: 0, version, record },
    attempt: {
      ...{ id: transactionId, vaultedToken, cardFingerprint: claim.cardFingerprint },
      ...{ capture: claim.capture, awaitsPayer: false },
    },
  };
  const written = await within(writeOwnOutcome(deps, own, outcome), writeWaitMs(deps.schedule));
  if (written === undefined) throw inProgress(deps.patience, 'payment');
  const isWritten = typeof written !== 'string';
  if (isWritten && !written.earlier) return { record: written.record, body: undefined, replayed: false };
  // The stored response wins: the checker may have written first, or have stored that the outcome is unknown.
  const earlier = await storedResponse(deps, 'payment', read, isWritten ? written.earlier : undefined);
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
  request: CreatePaymentRequest,
  caller: Caller,
  refusal: ServiceError,
): Promise<KeyedResponse> {
  const { requestHash, read } = readKey(deps, request, caller);
  const holder = await read();
  if (!holder) throw refusal;
  return replay(deps, 'payment', holder, requestHash, read);
}

/** Returns a request's key and hash, and a function that finds the payment that holds the key. */
function readKey(deps: PaymentDeps, request: CreatePaymentRequest, caller: Caller) {
  const idempotencyKey = storedIdempotencyKey(caller);
  requireMayPay(caller);
  requireOwnAccount(request.accountId, caller);
  const requestHash = hashPaymentRequest(deps.requestHashKey, request);
  const read = () => findByKey(deps.database, caller.accountId, idempotencyKey);
  return { idempotencyKey, requestHash, read };
}

/** A claimed payment. */
type Claimed = {
  readonly prepared: PreparedPayment;
  readonly claim: Claim;
  readonly claimBeforeMs: number;
  /** The payment's slot, released once the attempts are over. */
  readonly slot: ConnectionSlot;
};

/** Limit on tries to claim: a session may change after its payment is prepared, but hardly this often by accident. */
const CLAIM_TRIES = 5;

/** Prepares the payment and claims its key. @returns the key's holder, if that is another payment. */
async function prepareAndClaim(
  deps: PaymentDeps,
  request: CreatePaymentRequest,
  { hash: requestHash, shape: requestShape }: RequestHash,
  caller: KeyedCaller,
  read: () => Promise<KeyHolder | undefined>,
): Promise<Claimed | { readonly holder: KeyHolder }> {
  const { accountId, idempotencyKey } = caller;
  for (let tries = 1; ; tries++) {
    let prepared: PreparedPayment;
    let slot: ConnectionSlot;
    try {
      prepared = await preparePayment(deps, request, caller);
      slot = acquireSlot(prepared);
    } catch (refusal) {
      if (refusal instanceof ServiceError && refusal.reason === 'INVALID_CREDENTIALS') throw refusal;
      // A response outlives its request's references: the token may be gone by now, or the route closed.
      const holder = await read();
      if (holder) return { holder };
      if (refusal instanceof OverloadError) deps.observer.refused();
      throw refusal;
    }
    const claimBeforeMs = performance.now() + callsBeginWithinMs(deps.schedule);
    const claim: Claim = { ...prepared.claim, accountId, idempotencyKey, requestHash, requestShape };
    try {
      const holder = await claimKey(deps, claim, read, claimBeforeMs);
      if (!holder) return { prepared, claim, claimBeforeMs, slot };
      slot.release();
      return { holder };
    } catch (error) {
      slot.release();
      // Another payment was faster, or the session has changed: prepare again from the current session.
      if (!(error instanceof AlreadyUsedError) || tries === CLAIM_TRIES) throw error;
    }
  }
}

const CLAIM_PAUSE_MS = 50;

/**
 * Claims the key. If the acknowledgement is lost, the claim may have been committed, and only the database knows: it is
 * queried until `beforeMs`, and then the caller gets REQUEST_IN_PROGRESS rather than "nothing was accepted".
 *
 * @returns the key's holder, if that is not this payment.
 */
async function claimKey(
  deps: PaymentDeps,
  claim: Claim,
  read: () => Promise<KeyHolder | undefined>,
  beforeMs: number,
): Promise<KeyHolder | undefined> {
  let mayBeClaimed = false;
  for (;;) {
    try {
      if (await claimGrouped(deps.database, claim)) return undefined;
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
