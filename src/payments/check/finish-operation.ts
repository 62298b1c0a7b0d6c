import { Payment_Status, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { Database } from '#src/store/engine/database.ts';
import { type DueFollowUp, hastenFollowUp, scheduleFollowUp } from '#src/store/engine/follow-ups.ts';
import { finishOperation } from '#src/store/engine/operations.ts';
import { readPayment, readTransactions } from '#src/store/tables/operated-payments.ts';
import { findStoredObjects } from '#src/store/tables/stored-objects.ts';
import { apply, hasFailed } from '../model/apply.ts';
import type { PaymentState, TransactionInState } from '../model/state.ts';
import { decodeRecord, encodeRecord } from '../stored-record.ts';
import type { PaymentResponse } from '../stored-response.ts';
import { type FinishDeps, storedFate, untilWritten } from './finish-payment.ts';

type TransactionName = Pick<DueFollowUp, 'accountId' | 'paymentId' | 'transactionId'>;

/** A leased transaction: the right to write its outcome. */
export type LeasedTransaction = TransactionName & {
  /** Fencing token that the write must present. */
  readonly fence: number;
  /** Seconds until it is followed up, if it stays open. */
  readonly followUpInS: number | undefined;
};

/** Limit on tries that find the payment changed since it was read. */
const MAX_OUTDATED = 60;

/**
 * Writes the outcome of a transaction into its payment, and tries again while the database is unavailable.
 *
 * @param outcome 'lapsed' ends an authorization that was not captured in time.
 * @param stop ends the tries; an outcome that was not written is learned again later.
 * @returns the stored response, which wins over the one made here (of a purchase, the payment as it stands); undefined
 *   if nothing was written: another worker finished or took the transaction, or its state is final.
 */
export async function writeOutcome(
  deps: FinishDeps,
  leased: LeasedTransaction,
  outcome: Outcome | 'lapsed',
  stop?: AbortSignal,
): Promise<PaymentResponse | undefined> {
  const write = async () => {
    for (let outdated = 0; outdated < MAX_OUTDATED; outdated++) {
      const written = await writeOnce(deps, leased, outcome);
      if (written !== 'outdated') return written;
    }
    throw new Error(`payment ${leased.paymentId} changes all the time`);
  };
  return untilWritten(deps, leased.paymentId, write, stop);
}

async function writeOnce(
  deps: FinishDeps,
  leased: LeasedTransaction,
  outcome: Outcome | 'lapsed',
): Promise<PaymentResponse | undefined | 'outdated'> {
  const { accountId, paymentId, transactionId, fence, followUpInS: pauseS } = leased;
  const found = await readLeased(deps.database, leased);
  const change = apply(
    await withCurrentToken(deps, accountId, found),
    outcome === 'lapsed'
      ? { kind: 'lapsed', transactionId }
      : { kind: 'outcome', transactionId, outcome, pauseS },
    deps.now(),
  );
  if (typeof change === 'string') return undefined;
  const { record, books, transaction, isOpen, checkInS, parentCheckInS } = change;
  const { parentId, isScheduled } = found.transaction;
  if (parentCheckInS && parentId) {
    // Before the write: an authorization that is held again must lapse, even if this process dies in between.
    await scheduleFollowUp(deps.database, accountId, parentId, parentCheckInS);
  }
  const finished = await finishOperation(deps.database, {
    accountId,
    paymentId,
    transactionId,
    fence,
    version: found.payment.version,
    status: Payment_Status[record.status],
    record: encodeRecord(record),
    transactionStatus: Transaction_Status[transaction.status],
    reference: transaction.reference,
    response: deps.responses.own,
    ...(isOpen ? { lookUpInS: checkInS } : { lookUpInS: undefined, followUpInS: checkInS }),
    capturedMinorUnits: books.captured,
    refundedMinorUnits: books.refunded,
    isReleased: books.isReleased,
    event: change.event,
    wasFinal: !isScheduled,
    vault: storedFate(record, change.method),
    reopens: change.reopens,
    retakes: change.retakes,
  });
  if (finished.kind !== 'written') return finished.kind === 'outdated' ? 'outdated' : undefined;
  if (finished.event) deps.eventWritten?.();
  if (parentCheckInS === 0) {
    // If this fails, that the authorization is over is learned when our term ends.
    await hastenFollowUp(deps.database, accountId, parentId).catch(() => {});
  }
  const written = decodeRecord(finished.record);
  deps.observer.finished(written, true);
  return { record: written, body: await deps.responses.body(finished.response, finished.record) };
}

/** Reads a leased transaction with its payment and the payment's other transactions. */
export async function readLeased(database: Database, leased: TransactionName): Promise<TransactionInState> {
  const { accountId, paymentId, transactionId } = leased;
  const payment = await readPayment(database, accountId, paymentId);
  const transactions = await readTransactions(database, accountId, paymentId);
  const transaction = transactions.find(({ id }) => id === transactionId);
  if (!payment || !transaction) throw new Error(`payment ${paymentId} lacks transaction ${transactionId}`);
  return { payment, record: decodeRecord(payment.record), transaction, transactions };
}

/**
 * Returns a state with the token of the card that the transaction's approval keeps or uses. A card that waited for a
 * transaction was dropped when that expired or was declined; one that was stored before stands.
 */
async function withCurrentToken(
  { database }: FinishDeps,
  accountId: string,
  found: TransactionInState,
): Promise<PaymentState> {
  const { id, vaultedToken: token } = found.transaction;
  if (!hasFailed(found.transaction) || token === undefined) return found;
  const current = await findStoredObjects(database, accountId, {
    customerId: undefined,
    vaultedToken: token,
  });
  const vaultedToken = current.vaultedToken?.id;
  const transactions = found.transactions.map((one) => (one.id === id ? { ...one, vaultedToken } : one));
  return { ...found, transactions };
}
