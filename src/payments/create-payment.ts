import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { PaymentError } from '#src/service-error.ts';
import { isSurelyNotCommitted, isUnavailable } from '#src/store/database.ts';
import { type Claim, claimPayment, findByKey, type Held } from '#src/store/payments.ts';
import { orUnavailable } from '#src/store/unavailable.ts';
import { type FinishObserver, type FinishParts, finishOf, within, writeFinish } from './finish-payment.ts';
import {
  awaitAnswer,
  hashRequest,
  type Patience,
  requireIdempotencyKey,
  requireSameRequest,
} from './idempotency.ts';
import { type AttemptParts, makeAttempts } from './make-attempts.ts';
import { type PreparedPayment, type PrepareParts, preparePayment } from './prepare-payment.ts';
import { decodeRecord } from './stored-record.ts';

/** What creating a payment needs. */
export type PaymentParts = PrepareParts &
  FinishParts & {
    /** What requests are hashed with, to tell a retry from another request. */
    readonly requestHashKey: Uint8Array;
    readonly patience: Patience;
    readonly observer: PaymentObserver;
  };

/** Is told what happens, for metrics, traces and logs. */
export type PaymentObserver = FinishObserver &
  AttemptParts['observer'] & {
    answered(record: Payment): void;
    replayed(): void;
  };

/** Who calls, and under which key. */
export type Caller = {
  readonly accountId: string;
  readonly idempotencyKey: string | undefined;
  /** false when only the public key was sent. */
  readonly secretPresented: boolean;
};

/** The answer to a call; the same for the same key, ever. */
export type CreatedPayment = {
  readonly record: Payment;
  /** The record as REST answers it, byte for byte. */
  readonly body: Uint8Array;
  readonly replayed: boolean;
};

/**
 * Makes a payment, or answers again what was answered under the same key. THE main path: two commits (and one for each
 * further attempt), and no database transaction is open while a provider is called.
 *
 * @param request satisfies the rules of its .proto and checkRequest.
 * @throws PaymentError when the payment was refused; REQUEST_IN_PROGRESS when it may stand, and its answer is still to
 *   come under the same key; for every other reason nothing was claimed and nothing was sent.
 */
export async function createPayment(
  parts: PaymentParts,
  request: CreatePaymentRequest,
  caller: Caller,
): Promise<CreatedPayment> {
  // 1. Whose key it is, and which request it stands for.
  const idempotencyKey = requireIdempotencyKey(caller.idempotencyKey);
  requireOwnAccount(request, caller);
  const { accountId } = caller;
  const requestHash = hashRequest(parts.requestHashKey, request);
  const read = () => findByKey(parts.database, accountId, idempotencyKey);

  // 2. What is stored, how it is paid, where it goes.
  let prepared: PreparedPayment;
  try {
    prepared = await orUnavailable(preparePayment(parts, request, { ...caller, idempotencyKey }));
  } catch (refusal) {
    if (refusal instanceof PaymentError && refusal.reason === 'INVALID_CREDENTIALS') throw refusal;
    // An answer outlives what it was made from: a token since removed, a route since closed.
    const held = await orUnavailable(read());
    if (!held) throw refusal;
    return replay(parts, held, requestHash, read);
  }

  // 3. Commit 1: the key is claimed and the payment stands, before anything is sent.
  const claimBeforeMs = performance.now() + parts.schedule.leaseMarginMs / 2;
  const claim: Claim = { ...prepared.claim, accountId, idempotencyKey, requestHash };
  const holder = await claimKey(parts, claim, read, claimBeforeMs);
  if (holder) return replay(parts, holder, requestHash, read);

  // 4. The provider is called, once; another one only where it is known that nothing came of it.
  const { transactionId, outcome, record } = await makeAttempts(parts, prepared, claimBeforeMs);

  // 5. Commit 2: what is known of it now, and the answer.
  const taken = { ...claim, transactionId, fence: 0, lookUps: 0, vaultedToken: claim.vault?.token };
  const finish = finishOf(parts, taken, record, outcome);
  const written = await within(writeFinish(parts, finish), FINISH_WAIT_MS);
  if (written === undefined) throw inProgress(parts.patience);
  if (!written) {
    // Recovery wrote first, or our own acknowledgement was lost: what stands written is the answer.
    const held = await orInProgress(parts.patience, awaitAnswer(undefined, read, parts.patience));
    return { record: decodeRecord(held.record), body: held.answer, replayed: false };
  }
  parts.observer.answered(record);
  return { record, body: finish.answer, replayed: false };
}

/** How long the caller waits for commit 2 while the database is away; it is tried for longer. */
const FINISH_WAIT_MS = 5_000;

/** Objects and payments belong to accounts: a key speaks for its own only. */
function requireOwnAccount(request: CreatePaymentRequest, caller: Caller): void {
  if (request.accountId === caller.accountId) return;
  const message = 'is not the account of these keys';
  throw new PaymentError('AUTHORIZATION_REQUIRED', `account_id: ${message}`, {
    fields: [{ field: 'account_id', code: 'NOT_ALLOWED', message }],
  });
}

const CLAIM_PAUSE_MS = 50;

/**
 * Claims the key. Once a claim may have been committed although its acknowledgement was lost, only the database can tell
 * whether it was: it is asked until `beforeMs`, and the caller is told "in progress" rather than "nothing was accepted".
 *
 * @returns who holds the key, when it is not this payment.
 */
async function claimKey(
  parts: PaymentParts,
  claim: Claim,
  read: () => Promise<Held | undefined>,
  beforeMs: number,
): Promise<Held | undefined> {
  let mayBeClaimed = false;
  for (;;) {
    try {
      if (await claimPayment(parts.database, claim)) return undefined;
      const holder = await read();
      if (!holder) throw new Error('the key is held, and nobody holds it');
      return holder.paymentId === claim.paymentId ? undefined : holder;
    } catch (error) {
      mayBeClaimed ||= !isSurelyNotCommitted(error);
      if (!mayBeClaimed) return orUnavailable(Promise.reject(error));
      if (!isUnavailable(error) || performance.now() > beforeMs) throw inProgress(parts.patience, error);
      await new Promise((resolve) => setTimeout(resolve, CLAIM_PAUSE_MS));
    }
  }
}

async function replay(
  parts: PaymentParts,
  held: Held,
  requestHash: Uint8Array,
  read: () => Promise<Held | undefined>,
): Promise<CreatedPayment> {
  requireSameRequest(held, requestHash);
  const waited = awaitAnswer(held, read, parts.patience);
  const { record, answer } = await orInProgress(parts.patience, waited);
  parts.observer.replayed();
  return { record: decodeRecord(record), body: answer, replayed: true };
}

/** Once a payment stands, a database that cannot be reached refuses nothing: the answer is there to be asked for. */
async function orInProgress<T>(patience: Patience, promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw isUnavailable(error) ? inProgress(patience, error) : error;
  }
}

function inProgress({ retryAfterS }: Patience, cause?: unknown): PaymentError {
  const message = 'the payment was taken, or is being taken; its answer comes under the same key';
  return new PaymentError('REQUEST_IN_PROGRESS', message, { retryAfterS, cause });
}
