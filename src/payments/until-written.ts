import { setTimeout } from 'node:timers/promises';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { isUnavailable } from '#src/store/engine/database-error.ts';
import type { MoneyAlarm } from './model/change.ts';
import type { CheckSchedule } from './model/schedule.ts';

/** Observer of writes. */
export type WriteObserver = {
  /** Called if an outcome is not written because it is about other money, as the alarm in its place says. */
  alarmed(about: { readonly transactionId: string; readonly connectionId: string }, alarm: Outcome): void;
  /**
   * Called when any worker has written a change, however late.
   *
   * @param isLearnedLater true: the payment's response was stored earlier and does not change.
   */
  finished(payment: Payment, isLearnedLater: boolean): void;
  /** Called when somebody has to decide about a payment's money. */
  moneyAlarmed?(alarm: MoneyAlarm, payment: Payment): void;
  /** Called each time that a write fails, whether or not it will be retried. */
  finishFailed(paymentId: string, error: unknown): void;
};

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;
const WRITE_TRIES = 60;
const LONGEST_WRITE_WAIT_MS = 5_000;

/**
 * Returns the longest time in milliseconds that a caller waits for commit 2 while the database is unavailable; the
 * commit is retried for longer. The first attempt is sent within one half of the lease's margin and this wait takes at
 * most the other half, so the caller has a response before another worker may take the attempt.
 */
export function writeWaitMs({ leaseMarginMs }: CheckSchedule): number {
  return Math.min(LONGEST_WRITE_WAIT_MS, leaseMarginMs / 2);
}

/**
 * Runs a write, and retries it while the database is unavailable, since an outage must not lose an outcome.
 *
 * @param stop ends the retries.
 * @returns the result of the write. Throws its last error.
 */
export async function untilWritten<T>(
  { observer }: { readonly observer: WriteObserver },
  paymentId: string,
  write: () => Promise<T>,
  stop?: AbortSignal,
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
 * Awaits a promise for a limited time; undefined if it takes longer. Throws a failure within that time. A later failure
 * is ignored here and left for the promise's creator to report.
 */
export async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  // Not the timer of timers/promises: aborting it creates two errors with stack traces per payment.
  const timer = globalThis.setTimeout(late.resolve, timeoutMs, undefined);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => {});
  }
}
