import { Payment_Status, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { Database } from '#src/store/database.ts';
import { type DueFollowUp, hastenFollowUp } from '#src/store/follow-ups.ts';
import { readPayment, readTransactions } from '#src/store/operated-payments.ts';
import { finishOperation } from '#src/store/operations.ts';
import { findStoredObjects } from '#src/store/stored-objects.ts';
import { type FinishDeps, fateOf, untilWritten } from './finish-payment.ts';
import { type Books, booksWithout } from './model/books.ts';
import { correctionOf } from './model/correction.ts';
import { eventOf } from './model/event.ts';
import { withBaseOutcome, withLapse, withOperationOutcome } from './model/operation-record.ts';
import { approvedPauseS } from './model/schedule.ts';
import {
  booksOf,
  isOperation,
  succeededBase,
  type TransactionInState,
  type TransactionRow,
} from './model/state.ts';
import { reopenedSession } from './session-terms.ts';
import { decodeRecord, encodeRecord } from './stored-record.ts';
import type { PaymentResponse } from './stored-response.ts';

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
  const { accountId, paymentId, transactionId, fence } = leased;
  const found = await readLeased(deps.database, leased);
  const { payment, transaction: own } = found;
  const transaction = { ...own, vaultedToken: await currentToken(deps, accountId, own) };
  const applied = apply(deps, { ...found, transaction }, outcome);
  if (!applied) return undefined;
  const { record, books, transactionStatus } = applied;
  const isOpen = outcome !== 'lapsed' && STAYS_OPEN.has(outcome.kind);
  const ofBase = isOperation(transaction.type) || outcome === 'lapsed' ? undefined : outcome;
  const finished = await finishOperation(deps.database, {
    accountId,
    paymentId,
    transactionId,
    fence,
    version: payment.version,
    status: Payment_Status[record.status],
    record: encodeRecord(record),
    transactionStatus: Transaction_Status[transactionStatus],
    reference: outcome === 'lapsed' || outcome.kind === 'not_sent' ? undefined : outcome.reference,
    response: deps.responses.own,
    lookUpInS: isOpen ? leased.followUpInS : undefined,
    followUpInS: ofBase && approvedPauseS(transaction, ofBase),
    capturedMinorUnits: books.captured,
    refundedMinorUnits: books.refunded,
    isReleased: books.isReleased,
    event: applied.isUnchanged ? undefined : eventOf(record),
    wasFinal: !transaction.isScheduled,
    vault: fateOf(record, transaction.vaultedToken, transactionStatus),
    reopens: ofBase && reopenedSession(record),
    // All that can still be learned of what has come to nothing here is that it was paid.
    retakes: (CAME_TO_NOTHING.has(transaction.status) && record.checkout?.session) || undefined,
  });
  if (finished.kind !== 'written') return finished.kind === 'outdated' ? 'outdated' : undefined;
  if (finished.event) deps.eventWritten?.();
  if (outcome !== 'lapsed' && isTurnedDown(outcome) && NEEDS_AUTHORIZATION.has(transaction.type)) {
    // The authorization may be over at its provider. If this fails, that is learned when our term ends.
    await hastenFollowUp(deps.database, accountId, transaction.parentId).catch(() => {});
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

const NEEDS_AUTHORIZATION: ReadonlySet<string> = new Set(['CAPTURE', 'CANCEL']);

function isTurnedDown(outcome: Outcome): boolean {
  return (
    (outcome.kind === 'declined' && !outcome.corrects) ||
    (outcome.kind === 'not_sent' && outcome.because === 'turned_away')
  );
}

const STAYS_OPEN = new Set<Outcome['kind']>(['unknown', 'pending', 'redirect', 'to_complete']);

function apply(deps: FinishDeps, found: TransactionInState, outcome: Outcome | 'lapsed') {
  const { payment: stored, record, transaction, transactions } = found;
  const at = deps.now();
  const isCorrected = outcome !== 'lapsed' && correctionOf(found, outcome) === 'now';
  if (!isOperation(transaction.type)) {
    const books = booksOf(stored, transaction);
    if (outcome === 'lapsed') {
      // An operation that has begun meanwhile may be what ended it.
      return stored.openOperation ? undefined : withLapse(record, transaction.id, books, at);
    }
    return isCorrected || mayBecome(transaction.status, outcome, books)
      ? withBaseOutcome(record, transaction, books, outcome, at)
      : undefined;
  }
  const base = succeededBase(transactions);
  if (!base || outcome === 'lapsed') throw new Error(`transaction ${transaction.id} acts on nothing`);
  if (transaction.status !== 'PENDING' && !isCorrected) return undefined;
  const money = { minorUnits: transaction.minorUnits, currency: transaction.currency };
  const operation = { type: transaction.type, money, isFinal: transaction.isFinal };
  const books = booksOf(stored, base);
  const after = isCorrected
    ? booksWithout(books, operation, staysReleased(books, transaction, transactions))
    : undefined;
  return withOperationOutcome(record, transaction.id, books, operation, outcome, at, after);
}

/** Returns true if something else than a transaction that failed has released what is not captured. */
function staysReleased(
  { isReleased }: Books,
  failed: TransactionRow,
  transactions: readonly TransactionRow[],
): boolean {
  const isReleasing = ({ id, type, status, isFinal }: TransactionRow) =>
    id !== failed.id && NEEDS_AUTHORIZATION.has(type) && status === 'SUCCEEDED' && isFinal;
  return isReleased && (!failed.isFinal || transactions.some(isReleasing));
}

/**
 * Returns true if the state may change. A final state stays unless its provider corrects it (`correctionOf`), but money
 * that arrives after an expiry is accepted; an authorization that lapsed is released, and its approval is old news.
 */
function mayBecome(status: string, outcome: Outcome, { isReleased }: Books): boolean {
  if (status === 'CREATED' || status === 'PENDING') return true;
  return status === 'EXPIRED' && outcome.kind === 'approved' && !isReleased;
}

/**
 * Returns the token of the card that a transaction's approval keeps or uses. A card that waited for a transaction was
 * dropped when that expired or was declined; one that was stored before stands.
 */
async function currentToken(
  { database }: FinishDeps,
  accountId: string,
  { status, vaultedToken }: TransactionRow,
): Promise<string | undefined> {
  if (!CAME_TO_NOTHING.has(status) || vaultedToken === undefined) return vaultedToken;
  const found = await findStoredObjects(database, accountId, { customerId: undefined, vaultedToken });
  return found.vaultedToken?.id;
}

/** States of a payment's own transaction that late money, or a correction, may still change. */
const CAME_TO_NOTHING: ReadonlySet<string> = new Set(['EXPIRED', 'DECLINED']);
