import { fromBinary } from '@bufbuild/protobuf';
import { type Payment, PaymentSchema } from '../../gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '../../gen/payments/v1/payment_service_pb.js';
import type { Outcome } from '../connectors/connector.ts';
import { type Database, isUnavailable } from '../store/database.ts';
import { type Claim, claimPayment, findByKey, type Held } from '../store/payments.ts';
import { type FinishObserver, type FinishParts, finishOf, within, writeFinish } from './finish-payment.ts';
import {
  awaitAnswer,
  hashRequest,
  type Patience,
  requireIdempotencyKey,
  requireSameRequest,
} from './idempotency.ts';
import { PaymentError } from './payment-error.ts';
import {
  LEASE_MARGIN_S,
  type PreparedPayment,
  type PrepareParts,
  preparePayment,
} from './prepare-payment.ts';

/** What creating a payment needs. */
export type PaymentParts = PrepareParts &
  FinishParts & {
    /** What requests are hashed with, to tell a retry from another request. */
    readonly requestHashKey: Uint8Array;
    readonly patience: Patience;
    readonly observer: PaymentObserver;
  };

/** Is told what happens, for metrics, traces and logs. */
export type PaymentObserver = FinishObserver & {
  /** Runs a provider call, and sees its outcome. */
  providerCall(connectionId: string, call: () => Promise<Outcome>): Promise<Outcome>;
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
 * Makes a payment, or answers again what was answered under the same key. THE main path: two commits, and no database
 * transaction is open while the provider is called.
 *
 * @param request satisfies the rules of its .proto and checkRequest.
 * @throws PaymentError when the payment was refused; then nothing was sent to a provider.
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
    prepared = await orUnavailable(preparePayment(parts, request, caller));
  } catch (refusal) {
    if (refusal instanceof PaymentError && refusal.reason === 'INVALID_CREDENTIALS') throw refusal;
    // An answer outlives what it was made from: a token since removed, a route since closed.
    const held = await orUnavailable(read());
    if (!held) throw refusal;
    return replay(parts, held, requestHash, read);
  }

  // 3. Commit 1: the key is claimed and the payment stands, before anything is sent.
  const preparedMs = performance.now();
  const claim: Claim = { ...prepared.claim, accountId, idempotencyKey, requestHash };
  const holder = await orUnavailable(claimOrFindHolder(parts.database, claim, read));
  if (holder) return replay(parts, holder, requestHash, read);

  // 4. The provider is called, once; by who was held up until the lease ran out, not at all.
  const { attempt, connection, record } = prepared;
  if (performance.now() - preparedMs > START_WITHIN_MS) throw inProgress(parts.patience.retryAfterS);
  const outcome = await parts.observer.providerCall(claim.connectionId, () => connection.pay(attempt));

  // 5. Commit 2: what is known of it now, and the answer.
  const taken = { ...claim, fence: 0, lookUps: 0, vaultedToken: claim.vault?.token };
  const finish = finishOf(parts, taken, record, outcome);
  const written = await within(writeFinish(parts, finish), parts.patience.waitMs);
  if (written === undefined) throw inProgress(parts.patience.retryAfterS);
  if (!written) {
    // Somebody else wrote first, or our own acknowledgement was lost: what stands written is the answer.
    const held = await orUnavailable(awaitAnswer(undefined, read, parts.patience));
    return { record: fromBinary(PaymentSchema, held.record), body: held.answer, replayed: false };
  }
  parts.observer.answered(record);
  return { record, body: finish.answer, replayed: false };
}

/** How long after the claim the provider is still called; the rest of the lease is for its answer. */
const START_WITHIN_MS = LEASE_MARGIN_S * 500;

/** Objects and payments belong to accounts: a key speaks for its own only. */
function requireOwnAccount(request: CreatePaymentRequest, caller: Caller): void {
  if (request.accountId === caller.accountId) return;
  const message = 'is not the account of these keys';
  throw new PaymentError('AUTHORIZATION_REQUIRED', `account_id: ${message}`, {
    fields: [{ field: 'account_id', code: 'NOT_ALLOWED', message }],
  });
}

/** @returns who holds the key, when it is not this payment. */
async function claimOrFindHolder(
  database: Database,
  claim: Claim,
  read: () => Promise<Held | undefined>,
): Promise<Held | undefined> {
  let claimed: boolean;
  try {
    claimed = await claimPayment(database, claim);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    // The commit may stand although its acknowledgement was lost: the same claim again tells.
    claimed = await claimPayment(database, claim);
  }
  if (claimed) return undefined;
  const holder = await read();
  return holder?.paymentId === claim.paymentId ? undefined : holder;
}

async function replay(
  parts: PaymentParts,
  held: Held,
  requestHash: Uint8Array,
  read: () => Promise<Held | undefined>,
): Promise<CreatedPayment> {
  requireSameRequest(held, requestHash);
  const { record, answer } = await orUnavailable(awaitAnswer(held, read, parts.patience));
  parts.observer.replayed();
  return { record: fromBinary(PaymentSchema, record), body: answer, replayed: true };
}

function inProgress(retryAfterS: number): PaymentError {
  return new PaymentError('REQUEST_IN_PROGRESS', 'the payment was sent; its outcome is being recorded', {
    retryAfterS,
  });
}

const UNAVAILABLE_RETRY_AFTER_S = 1;

/** Before anything is sent, a database that cannot be reached refuses the payment. */
async function orUnavailable<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    throw new PaymentError(
      'SERVICE_UNAVAILABLE',
      'the payment was not accepted and nothing was sent; try again',
      {
        retryAfterS: UNAVAILABLE_RETRY_AFTER_S,
        cause: error,
      },
    );
  }
}
