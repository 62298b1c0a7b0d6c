import { setTimeout } from 'node:timers/promises';
import { type Payment, Payment_Status, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/connector.ts';
import { isUnavailable } from '#src/store/database.ts';
import {
  finishOperation,
  readPayment,
  type StoredPayment,
  type StoredTransaction,
} from '#src/store/operations.ts';
import { type FinishDeps, lookUpPauseS } from './finish-payment.ts';
import { withOperationOutcome } from './operation-record.ts';
import type { Books, OperationType } from './payment-books.ts';
import { eventOf } from './payment-event.ts';
import { decodeRecord, encodeRecord } from './stored-record.ts';

/** An operation that was claimed, and the right to finish it. */
export type TakenOperation = {
  readonly accountId: string;
  readonly paymentId: string;
  readonly transactionId: string;
  readonly type: OperationType;
  readonly minorUnits: bigint;
  /** Of a capture: none may follow. */
  readonly isFinal: boolean;
  /** The purchase or authorization that it acts on, as it stands in the database. */
  readonly base: Pick<StoredTransaction, 'minorUnits' | 'currency' | 'capture'>;
  /** Fencing token that the finish must present. */
  readonly fence: number;
};

/** What callers of the operation are told; undefined when somebody else finished it. */
export type OperationResponse = { readonly record: Payment; readonly body: Uint8Array };

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;
const TRIES = 60;

/**
 * Writes what became of an operation into its payment, again and again while the database is away.
 *
 * @param stop ends the tries; what was not written is learned again by recovery.
 * @returns the stored response, which wins over the one made here; undefined when somebody else finished or took it.
 */
export async function writeOperation(
  deps: FinishDeps,
  taken: TakenOperation,
  outcome: Outcome,
  stop?: AbortSignal,
): Promise<OperationResponse | undefined> {
  let pauseMs = FIRST_PAUSE_MS;
  for (let tries = 1; ; tries++) {
    try {
      const finished = await writeOnce(deps, taken, outcome);
      if (finished !== 'outdated') return finished;
      if (tries === TRIES) throw new Error(`payment ${taken.paymentId} changes all the time`);
    } catch (error) {
      deps.observer.finishFailed(taken.paymentId, error);
      if (!isUnavailable(error) || tries === TRIES || stop?.aborted) throw error;
      await setTimeout(pauseMs, undefined, stop && { signal: stop }).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }
}

async function writeOnce(
  deps: FinishDeps,
  taken: TakenOperation,
  outcome: Outcome,
): Promise<OperationResponse | undefined | 'outdated'> {
  const { accountId, paymentId, transactionId, base, fence } = taken;
  const stored = await readPayment(deps.database, accountId, paymentId);
  if (!stored) throw new Error(`payment ${paymentId} is gone`);
  const money = { minorUnits: taken.minorUnits, currency: base.currency };
  // isWhole only tells a connector what was planned; here the books decide.
  const operation = { type: taken.type, money, isFinal: taken.isFinal, isWhole: false };
  const { record, books, transactionStatus } = withOperationOutcome(
    decodeRecord(stored.record),
    transactionId,
    booksOf(stored, base),
    operation,
    outcome,
    deps.now(),
  );
  const isOpen = outcome.kind === 'unknown' || outcome.kind === 'pending';
  const finished = await finishOperation(deps.database, {
    accountId,
    paymentId,
    transactionId,
    fence,
    version: stored.version,
    status: Payment_Status[record.status],
    record: encodeRecord(record),
    transactionStatus: Transaction_Status[transactionStatus],
    reference: outcome.kind === 'not_sent' ? undefined : outcome.reference,
    response: deps.encodeAnswer(record),
    lookUpInS: isOpen ? lookUpPauseS(deps.schedule, fence) : undefined,
    capturedMinorUnits: books.captured,
    refundedMinorUnits: books.refunded,
    isReleased: books.isReleased,
    event: eventOf(record),
  });
  if (finished.kind !== 'written') return finished.kind === 'outdated' ? 'outdated' : undefined;
  if (finished.event) deps.eventWritten?.();
  return { record: decodeRecord(finished.record), body: finished.response };
}

/** A payment's books, from the columns that the bounds are kept by. */
export function booksOf(
  stored: StoredPayment,
  base: Pick<StoredTransaction, 'minorUnits' | 'currency' | 'capture'>,
): Books {
  return {
    currency: base.currency,
    amount: base.minorUnits,
    isAuthorization: !base.capture,
    captured: stored.capturedMinorUnits,
    refunded: stored.refundedMinorUnits,
    isReleased: stored.isReleased,
  };
}
