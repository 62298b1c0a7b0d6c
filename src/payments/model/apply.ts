import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { assertNever, type Outcome } from '#src/connectors/port/outcome.ts';
import { attemptChange, isStillOpen } from './attempt.ts';
import { type Books, movedMoney, type OperationType } from './books.ts';
import {
  type Change,
  type MoneyAlarm,
  methodOf,
  NOTHING_ELSE,
  namesOf,
  UNNAMED,
  type Unapplied,
} from './change.ts';
import { cancelsLast, closedChange, isEndWithoutMoney, NOT_CLOSED_YET, tooLateChange } from './closing.ts';
import { contradicts } from './contradiction.ts';
import {
  booksCorrectedBy,
  type Correction,
  correctionOf,
  HELD_AGAIN_MS,
  NEEDS_AUTHORIZATION,
} from './correction.ts';
import { type DisputeReport, disputeChange } from './disputes.ts';
import { eventOf } from './event.ts';
import { type ExternalReport, externalChange } from './external.ts';
import { correctionsBy } from './movement.ts';
import {
  recordPayer,
  transactionOf,
  withLapse,
  withOperationOutcome,
  withOwnAttempt,
} from './operation-record.ts';
import {
  booksOf,
  isClosing,
  isLapsing,
  isOpen,
  isOperation,
  openClosing,
  type PaymentState,
  shownOf,
  succeededBase,
  type TransactionInState,
  type TransactionRow,
} from './state.ts';
import { isShownAlready } from './waiting.ts';

/** A report on one transaction. */
export type Report =
  /** The outcome of a transaction. */
  | {
      readonly kind: 'outcome';
      readonly transactionId: string;
      readonly outcome: Outcome;
      /** Seconds until the transaction's next check, if it stays open. */
      readonly pauseS: number;
      /** Time of the event according to the provider; undefined for a response, which is the provider's present state. */
      readonly reportedAt?: Date | undefined;
    }
  /** The term of an authorization has passed, or the provider reports it as over. */
  | { readonly kind: 'lapsed'; readonly transactionId: string }
  /** A stage of a dispute, which identifies only its payment. */
  | ({ readonly kind: 'dispute' } & DisputeReport)
  /** An external capture or refund of the payment's own transaction. */
  | ({ readonly kind: 'external'; readonly transactionId: string } & ExternalReport);

/**
 * THE function that decides how a report changes a payment. It is pure: it reads no clock and does not change its
 * arguments.
 *
 * @param at when the report was learned.
 * @throws Error if the state lacks the subject of the report.
 */
export function apply(state: PaymentState, report: Report, at: Timestamp): Change | Unapplied {
  const change = applied(state, report, at);
  if (typeof change === 'string') return change;
  const corrections = [
    ...correctionsBy(state.transactions, change.transaction),
    ...(change.corrections ?? []),
  ];
  return corrections.length > 0 ? { ...change, corrections } : change;
}

function applied(state: PaymentState, report: Report, at: Timestamp): Change | Unapplied {
  switch (report.kind) {
    case 'outcome': {
      const found = inState(state, report.transactionId);
      const closing = openClosing(found);
      if (closing) return applyToClosing(found, closing, report, at);
      const { type } = found.transaction;
      return isOperation(type) ? applyToOperation(found, type, report, at) : applyToBase(found, report, at);
    }
    case 'lapsed':
      return applyLapse(inState(state, report.transactionId), at);
    case 'dispute':
      return disputeChange(state, report, at);
    case 'external':
      return externalChange(inState(state, report.transactionId), report, at);
    default:
      return assertNever(report);
  }
}

function inState(state: PaymentState, transactionId: string): TransactionInState {
  const transaction = state.transactions.find(({ id }) => id === transactionId);
  if (!transaction) throw new Error(`payment ${state.record.id} lacks transaction ${transactionId}`);
  return { ...state, transaction };
}

/** A report on the outcome of a transaction. */
export type OutcomeReport = Extract<Report, { kind: 'outcome' }>;

/** Applies an outcome to a payment's own attempt. */
function applyToBase(
  found: TransactionInState,
  { outcome, pauseS, reportedAt }: OutcomeReport,
  at: Timestamp,
): Change | Unapplied {
  const { payment, transaction } = found;
  if (isShownAlready(outcome, found)) return 'unchanged';
  const books = booksOf(payment, transaction);
  const correction = correctionOf(found, outcome, reportedAt);
  if (correction !== 'now' && !mayBecome(transaction, outcome, books)) {
    return unapplied(correction, outcome, transaction);
  }
  const record = withOwnAttempt(found.record, transaction.id);
  const attempt = { ...transaction, cardFingerprint: payment.cardFingerprint };
  const change = attemptChange(record, attempt, outcome, pauseS, at);
  recordPayer(record, found.record, outcome);
  record.transactionsHistory = cancelsLast(record.transactionsHistory);
  return {
    ...change,
    transaction: change.transaction && {
      ...change.transaction,
      isFenced: change.transaction.isFenced || correction === 'now',
      reportedAt,
    },
    books,
    ...moneyAlarms(transaction, record, outcome),
    // A failed attempt can only turn out to have been paid.
    retakes: (hasFailed(transaction) && record.checkout?.session) || undefined,
  };
}

/** Returns what somebody has to decide about the money of an attempt. @param record the record with the outcome. */
function moneyAlarms(before: TransactionRow, record: Payment, outcome: Outcome): Pick<Change, 'moneyAlarms'> {
  const { amountReceived = '' } = shownOf({ record, transaction: before }) ?? {};
  const alarms: (MoneyAlarm | false)[] = [
    outcome.kind === 'approved' && hasFailed(before) && 'late_payment',
    outcome.kind === 'approved' && outcome.received !== undefined && 'overpaid',
    outcome.kind === 'expired' && amountReceived !== '' && 'underpaid',
  ];
  const raised = alarms.filter((alarm) => alarm !== false);
  return raised.length > 0 ? { moneyAlarms: raised } : {};
}

/**
 * Applies the outcome of an attempt that a merchant's cancel is closing: the attempt's end is also the cancel's. A
 * payment that was paid in the meantime takes two changes, each with its own event: the attempt's, then the cancel's.
 *
 * @param found the attempt, or the cancel.
 */
function applyToClosing(
  found: TransactionInState,
  closing: TransactionRow,
  report: OutcomeReport,
  at: Timestamp,
): Change | Unapplied {
  const { outcome } = report;
  const attempt = found.transactions.find(({ id }) => id === closing.parentId);
  if (!attempt) throw actsOnNothing(closing);
  if (attempt.status === 'SUCCEEDED') return tooLateChange(found, closing, attempt, at);
  if (outcome.kind === 'approved') {
    const paid = applyToBase({ ...found, transaction: attempt }, report, at);
    if (typeof paid === 'string') return paid;
    const moneyAlarms = new Set<MoneyAlarm>([...(paid.moneyAlarms ?? []), 'late_payment']);
    return { ...paid, moneyAlarms: [...moneyAlarms], other: { id: closing.id, checkInS: 0 } };
  }
  if (isEndWithoutMoney(outcome)) {
    const closed = closedChange(found, closing, attempt, outcome, at);
    return { ...closed, ...moneyAlarms(attempt, closed.record, outcome) };
  }
  // While the cancel is open, it is the cancel that the payment shows.
  if (found.transaction !== closing) return 'unchanged';
  return applyToOperation(found, 'CANCEL', { ...report, outcome: NOT_CLOSED_YET }, at);
}

/**
 * Returns true if the state may change. A final state stays unless the provider corrects it (`correctionOf`), except
 * that money is accepted after an expiry, and after a cancel that closed the attempt. A lapsed authorization is
 * released, so a report of its approval is out of date.
 */
function mayBecome(transaction: TransactionRow, outcome: Outcome, { isReleased }: Books): boolean {
  return (
    isOpen(transaction) || (transaction.status === 'EXPIRED' && outcome.kind === 'approved' && !isReleased)
  );
}

/** Returns true for a payment's own transaction that only late money or a correction can still change. */
export function hasFailed({ status }: Pick<TransactionRow, 'status'>): boolean {
  return status === 'EXPIRED' || status === 'DECLINED';
}

/** Returns the reason why an outcome does not change a final state. */
function unapplied(
  correction: Correction | undefined,
  outcome: Outcome,
  transaction: TransactionRow,
): Unapplied {
  if (correction === 'outdated') return 'unchanged';
  if (correction === 'conflict') return 'conflict';
  if (correction) return 'waiting';
  return contradicts(outcome, transaction) ? 'contradiction' : 'unchanged';
}

/** Applies an outcome to a capture, cancel or refund that was requested here. */
function applyToOperation(
  found: TransactionInState,
  type: OperationType,
  { outcome, pauseS, reportedAt }: OutcomeReport,
  at: Timestamp,
): Change | Unapplied {
  const { payment, transaction, transactions } = found;
  const { id, isFinal, minorUnits, currency } = transaction;
  const correction = correctionOf(found, outcome, reportedAt);
  const isCorrected = correction === 'now';
  if (transaction.status !== 'PENDING' && !isCorrected) {
    return isConfirmed(transaction, outcome, reportedAt)
      ? confirmed(found, reportedAt)
      : unapplied(correction, outcome, transaction);
  }
  const base = isClosing(transaction)
    ? transactions.find((one) => one.id === transaction.parentId)
    : succeededBase(transactions);
  if (!base) throw actsOnNothing(transaction);
  const before = booksOf(payment, base);
  const recorded = { type, money: { minorUnits, currency }, isFinal };
  // A failure has moved nothing, whatever amount it names.
  const operation =
    outcome.kind === 'approved'
      ? { ...recorded, money: movedMoney(before, recorded, outcome.money) }
      : recorded;
  const after = isCorrected && type !== 'CANCEL' ? booksCorrectedBy(found, type, outcome) : undefined;
  // An event that corrects a success follows it, even if it arrives first.
  const isCorrecting =
    reportedAt !== undefined && outcome.kind === 'declined' && outcome.corrects !== undefined;
  const isLateFailure = outcome.kind === 'declined' && (isCorrected || isCorrecting);
  const unchanged = { record: found.record, id, books: before };
  const applied = withOperationOutcome(unchanged, operation, outcome, { at, after, isLateFailure });
  const { record, books, transactionStatus: status } = applied;
  const staysOpen = isStillOpen(outcome) || outcome.kind === 'awaits_payer';
  const checkInS = staysOpen ? pauseS : undefined;
  // Another worker may have repeated the operation, unless the provider itself refused this request.
  const isUnsent = outcome.kind === 'not_sent' && outcome.refused === undefined;
  const isFenced = staysOpen || isCorrected || isUnsent;
  const actedOnInS = isLateFailure ? heldAgainS(transaction) : turnedDownS(transaction, outcome);
  return {
    ...NOTHING_ELSE,
    record,
    books,
    transaction: {
      ...{ id, status, ...namesOf(outcome), awaitsPayer: false, isFenced, checkInS, reportedAt },
      ...(operation.money.minorUnits !== minorUnits && { minorUnits: operation.money.minorUnits }),
    },
    event: eventOf(record),
    other:
      actedOnInS === undefined || transaction.parentId === undefined
        ? undefined
        : { id: transaction.parentId, checkInS: actedOnInS },
  };
}

/** Returns true for a later report of the same final state, so that a report in between is outdated. */
function isConfirmed(
  { status, reportedAt: lastAt }: TransactionRow,
  { kind }: Outcome,
  reportedAt: Date | undefined,
): boolean {
  const isSame =
    (status === 'SUCCEEDED' && kind === 'approved') || (status === 'DECLINED' && kind === 'declined');
  return isSame && reportedAt !== undefined && (lastAt === undefined || lastAt < reportedAt);
}

/** Stores only the time of a report. */
function confirmed(
  { payment, record, transaction, transactions }: TransactionInState,
  reportedAt: Date | undefined,
): Change | Unapplied {
  const base = succeededBase(transactions) ?? transaction;
  const status = transactionOf(record, transaction.id).status;
  return {
    ...NOTHING_ELSE,
    record,
    books: booksOf(payment, base),
    transaction: {
      ...{ id: transaction.id, status, ...UNNAMED, awaitsPayer: false, isFenced: false },
      ...{ checkInS: undefined, reportedAt },
    },
    event: undefined,
  };
}

/** Returns the seconds until the next check of an authorization that is held again after a failed capture. */
function heldAgainS({ type }: TransactionRow): number | undefined {
  return type === 'CAPTURE' ? HELD_AGAIN_MS / 1_000 : undefined;
}

/**
 * Returns 0 after a declined capture or cancel, to check at once whether the provider still holds the authorization.
 */
function turnedDownS({ type }: TransactionRow, outcome: Outcome): number | undefined {
  const isTurnedDown =
    outcome.kind === 'declined' || (outcome.kind === 'not_sent' && outcome.because === 'turned_away');
  return isTurnedDown && NEEDS_AUTHORIZATION.has(type) ? 0 : undefined;
}

function applyLapse(found: TransactionInState, at: Timestamp): Change | Unapplied {
  const { payment, record, transaction } = found;
  const { id, vaultedToken } = transaction;
  if (isOperation(transaction.type)) throw actsOnNothing(transaction);
  // An operation that began during the look-up may be what ended the authorization.
  if (payment.openOperation) return 'waiting';
  if (!isLapsing(transaction)) return 'unchanged';
  const applied = withLapse(record, id, booksOf(payment, transaction), at);
  return {
    ...NOTHING_ELSE,
    record: applied.record,
    books: applied.books,
    transaction: {
      ...{ id, status: applied.transactionStatus, ...UNNAMED },
      ...{ awaitsPayer: false, isFenced: false, checkInS: undefined },
    },
    event: applied.isUnchanged ? undefined : eventOf(applied.record),
    method: methodOf(vaultedToken, applied.transactionStatus),
  };
}

function actsOnNothing({ id }: TransactionRow): Error {
  return new Error(`transaction ${id} has no parent`);
}
