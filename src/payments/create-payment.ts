import { fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  type Payment,
  Payment_Status,
  PaymentSchema,
  Transaction_Status,
} from '../../gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '../../gen/payments/v1/payment_service_pb.js';
import type { Outcome } from '../connectors/connector.ts';
import { type Database, isUnavailable } from '../store/database.ts';
import {
  type Claim,
  claimPayment,
  type Finish,
  findByKey,
  finishPayment,
  type Held,
} from '../store/payments.ts';
import {
  awaitAnswer,
  hashRequest,
  type Patience,
  requireIdempotencyKey,
  requireSameRequest,
} from './idempotency.ts';
import { PaymentError } from './payment-error.ts';
import { recordOutcome } from './payment-record.ts';
import { type PreparedPayment, type PrepareParts, preparePayment } from './prepare-payment.ts';

/** What creating a payment needs. */
export type PaymentParts = PrepareParts & {
  readonly database: Database;
  /** What requests are hashed with, to tell a retry from another request. */
  readonly requestHashKey: Uint8Array;
  /** Renders the record as the body that REST answers, which is kept for replay. */
  readonly encodeAnswer: (record: Payment) => Uint8Array;
  readonly patience: Patience;
  readonly observer: PaymentObserver;
};

/** Is told what happens, for metrics, traces and logs. */
export type PaymentObserver = {
  /** Runs a provider call, and sees its outcome. */
  providerCall(connectionId: string, call: () => Promise<Outcome>): Promise<Outcome>;
  answered(record: Payment): void;
  replayed(): void;
  /** The outcome is known and cannot be written; it is tried again. */
  finishFailed(paymentId: string, error: unknown): void;
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
  const claim: Claim = { ...prepared.claim, accountId, idempotencyKey, requestHash };
  const holder = await orUnavailable(claimOrFindHolder(parts.database, claim, read));
  if (holder) return replay(parts, holder, requestHash, read);

  // 4. The provider is called, once.
  const { attempt, connection } = prepared;
  const outcome = await parts.observer.providerCall(claim.connectionId, () => connection.pay(attempt));

  // 5. Commit 2: what is known of it now, and the answer.
  const { record, finish } = finishOf(parts, prepared, outcome);
  const written = writeFinish(parts, finish);
  if (!(await within(written, parts.patience.waitMs))) throw inProgress(parts.patience.retryAfterS);
  parts.observer.answered(record);
  return { record, body: finish.answer, replayed: false };
}

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

function finishOf(
  parts: PaymentParts,
  prepared: PreparedPayment,
  outcome: Outcome,
): { record: Payment; finish: Finish } {
  const { record, claim } = prepared;
  const states = recordOutcome(record, outcome, claim.vault?.token, parts.now());
  const open = states.payment === Payment_Status.PENDING;
  const kept = outcome.kind === 'approved' ? 'keep' : 'drop';
  const finish: Finish = {
    paymentId: claim.paymentId,
    status: Payment_Status[states.payment],
    record: toBinary(PaymentSchema, record),
    answer: parts.encodeAnswer(record),
    transactionId: claim.transactionId,
    transactionStatus: Transaction_Status[states.transaction],
    vault: claim.vault && { token: claim.vault.token, fate: open ? 'wait' : kept },
  };
  return { record, finish };
}

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;
const FINISH_TRIES = 60;

/** Writes what became of the payment, again and again while the database is away: it must not be lost for an outage. */
async function writeFinish(parts: PaymentParts, finish: Finish): Promise<void> {
  for (
    let tries = 1, pauseMs = FIRST_PAUSE_MS;
    ;
    tries++, pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  ) {
    try {
      // Finished before can only mean that the acknowledgement of an earlier try was lost: nobody else finishes it.
      await finishPayment(parts.database, finish);
      return;
    } catch (error) {
      parts.observer.finishFailed(finish.paymentId, error);
      if (!isUnavailable(error) || tries === FINISH_TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

/** Whether a promise is fulfilled in time; a failure in time is thrown, one after it was reported by its maker. */
async function within(promise: Promise<void>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  const done = promise.then(() => true);
  try {
    return await Promise.race([done, late]);
  } finally {
    clearTimeout(timer);
    done.catch(() => {});
  }
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
