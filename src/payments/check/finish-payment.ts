import { setTimeout } from 'node:timers/promises';
import { type Timestamp, timestampDate, timestampNow } from '@bufbuild/protobuf/wkt';
import { type Payment, Payment_Status, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { Database } from '#src/store/engine/database.ts';
import { isUnavailable } from '#src/store/engine/database-error.ts';
import { finishGrouped } from '#src/store/engine/grouped-payments.ts';
import type { DueAttempt } from '#src/store/engine/look-ups.ts';
import type { Finish, Finished, MethodFate } from '#src/store/engine/payments.ts';
import { enrolledByPayment } from '../create/stored-method.ts';
import { attemptChange } from '../model/attempt.ts';
import type { MethodChange } from '../model/change.ts';
import type { LookUpSchedule } from '../model/schedule.ts';
import { encodeRecord } from '../stored-record.ts';
import type { StoredResponses } from '../stored-response.ts';
import { lookUpPauseS } from './look-up-schedule.ts';

/** Dependencies of finishing a payment. */
export type FinishDeps = {
  readonly database: Database;
  readonly now: () => Timestamp;
  readonly responses: StoredResponses;
  readonly observer: FinishObserver;
  /** Called when a finish has left an event to relay to webhooks. */
  readonly eventWritten?: () => void;
  readonly schedule: LookUpSchedule;
};

/** Observer of provider calls. */
export type CallObserver = {
  /**
   * Runs a provider call and observes its outcome.
   *
   * @param transactionId transaction that the call is about; undefined for an enrollment, which has none.
   */
  providerCall(
    connectionId: string,
    transactionId: string | undefined,
    call: () => Promise<Outcome>,
  ): Promise<Outcome>;
};

/** Observer of finishing payments. */
export type FinishObserver = {
  /**
   * Called when an outcome was written, by any worker and however late.
   *
   * @param isLearnedLater true: the payment's response was stored before, and does not change.
   */
  finished(payment: Payment, isLearnedLater: boolean): void;
  /** Called when an outcome is known but cannot be written yet; the write is tried again. */
  finishFailed(paymentId: string, error: unknown): void;
};

/** A finish, and the record that it writes. */
export type PaymentFinish = Finish & { readonly payment: Payment };

/** The attempt to finish, with its fencing token and age: both 0 for the worker that claimed it. */
export type LeasedAttempt = Pick<
  DueAttempt,
  'paymentId' | 'transactionId' | 'fence' | 'vaultedToken' | 'capture' | 'ageMs'
>;

/**
 * Writes an outcome into a record and returns the finish to store, with a look-up if the outcome is open. It calls the
 * piece of the model that decides about attempts, not `apply`, which would copy the record of every payment.
 *
 * @param record as it stands; it is changed.
 */
export function finishOf(
  deps: FinishDeps,
  attempt: LeasedAttempt,
  record: Payment,
  outcome: Outcome,
): PaymentFinish {
  const pauseS = lookUpPauseS(deps.schedule, attempt.ageMs);
  const change = attemptChange(record, attempt, outcome, pauseS, deps.now());
  const { transaction, isOpen, checkInS } = change;
  return {
    payment: record,
    accountId: record.accountId,
    paymentId: attempt.paymentId,
    status: Payment_Status[record.status],
    record: encodeRecord(record),
    answer: deps.responses.own,
    transactionId: transaction.id,
    transactionStatus: Transaction_Status[transaction.status],
    fence: attempt.fence,
    reference: transaction.reference,
    lookUpInS: isOpen ? checkInS : undefined,
    followUpInS: isOpen ? undefined : checkInS,
    event: change.event,
    vault: storedFate(record, change.method),
    reopens: change.reopens,
  };
}

/** Returns the fate of a stored method as it is stored: with what shows it, once it is kept. */
export function storedFate(record: Payment, method: MethodChange | undefined): MethodFate | undefined {
  if (method?.fate !== 'keep') return method;
  const at = timestampDate(record.updatedAt ?? timestampNow());
  const { token, fate } = method;
  return { token, fate, at: at.toISOString(), record: enrolledByPayment(record, token, at) };
}

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;
const WRITE_TRIES = 60;
const LONGEST_FINISH_WAIT_MS = 5_000;

/**
 * Returns the longest time that a caller waits for commit 2 while the database is unavailable; the commit itself is
 * tried for longer. The first attempt is sent within one half of the lease's margin, and this wait takes at most the
 * other half: the caller has a response before recovery may take the attempt.
 */
export function finishWaitMs({ leaseMarginMs }: LookUpSchedule): number {
  return Math.min(LONGEST_FINISH_WAIT_MS, leaseMarginMs / 2);
}

/**
 * Writes the outcome of a payment, and tries again while the database is unavailable.
 *
 * @param stop ends the tries; recovery learns again an outcome that was not written.
 * @returns false if the outcome was written before, or another worker has taken the attempt since.
 */
export async function writeFinish(
  deps: FinishDeps,
  finish: PaymentFinish,
  stop?: AbortSignal,
): Promise<Finished | false> {
  const write = () => finishGrouped(deps.database, finish);
  const finished = await untilWritten(deps, finish.paymentId, write, stop);
  if (!finished) return false;
  if (finished.event) deps.eventWritten?.();
  deps.observer.finished(finish.payment, finished.earlier !== undefined);
  return finished;
}

/**
 * Runs a write of an outcome, and runs it again while the database is unavailable: an outage must not lose what was
 * learned.
 *
 * @param stop ends the tries.
 * @returns what the write returned; its last error is thrown.
 */
export async function untilWritten<T>(
  { observer }: Pick<FinishDeps, 'observer'>,
  paymentId: string,
  write: () => Promise<T>,
  stop: AbortSignal | undefined,
): Promise<T> {
  let pauseMs = FIRST_PAUSE_MS;
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      observer.finishFailed(paymentId, error);
      if (!isUnavailable(error) || tries === WRITE_TRIES || stop?.aborted) throw error;
      await setTimeout(pauseMs, undefined, stop && { signal: stop }).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }
}

/**
 * Awaits a promise for a limited time; undefined if it takes longer. A failure within the time is thrown; a later one
 * is ignored here, and is for the promise's maker to report.
 */
export async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  // Not the timer of timers/promises: aborting one creates two errors with stack traces, for every payment.
  const timer = globalThis.setTimeout(late.resolve, timeoutMs, undefined);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => {});
  }
}
