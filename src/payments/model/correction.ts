import type { Outcome } from '#src/connectors/port/outcome.ts';
import {
  type Books,
  booksAfter,
  booksWithout,
  leftToRefund,
  type OperationType,
  reportedMoney,
} from './books.ts';
import {
  booksOf,
  isOpen,
  isOperation,
  shownOf,
  succeededBase,
  type TransactionInState,
  type TransactionRow,
} from './state.ts';
import { hasFailedLate } from './states.ts';

/**
 * The place of a report that is the opposite of a transaction's final state.
 * - `now`: the provider corrects its earlier report.
 * - `later`: it does, but another operation or attempt of the payment is open.
 * - `conflict`: it does, but the payment cannot hold it beside what has happened since.
 * - `outdated`: it is older than the report that the state is from.
 */
export type Correction = 'now' | 'later' | 'conflict' | 'outdated';

/**
 * Decides whether an outcome corrects a final state: THE place that reads the connectors' tables of corrections. The
 * provider's latest report counts, however often it changes its mind.
 *
 * @param reportedAt the time of the reported event according to the provider; undefined for its present state.
 * @returns undefined if the outcome is not the opposite of a final state, or is not a correction.
 */
export function correctionOf(
  stored: TransactionInState,
  outcome: Outcome,
  reportedAt: Date | undefined,
): Correction | undefined {
  const { transaction } = stored;
  const isReversal =
    (outcome.kind === 'declined' && transaction.status === 'SUCCEEDED') ||
    (outcome.kind === 'approved' && transaction.status === 'DECLINED');
  if (!isReversal || !isAbout(transaction, outcome)) return undefined;
  if (isOutdated(transaction, outcome, reportedAt)) return 'outdated';
  const isUndated = transaction.reportedAt !== undefined && reportedAt === undefined;
  const earlier = shownOf(stored)?.status ?? '';
  if (isUndated || !outcome.corrects?.includes(earlier)) return undefined;
  if (!isOperation(transaction.type)) return ofAttempt(stored, outcome);
  return transaction.type === 'CANCEL' ? undefined : ofOperation(stored, transaction.type, outcome);
}

/**
 * Returns true if a report is older than the transaction's last one. Of two events in the same second, the failure is the
 * later one.
 */
function isOutdated(
  { reportedAt: lastAt }: TransactionRow,
  { kind }: Outcome,
  reportedAt: Date | undefined,
): boolean {
  if (lastAt === undefined || reportedAt === undefined) return false;
  return reportedAt < lastAt || (kind === 'approved' && reportedAt.getTime() === lastAt.getTime());
}

/** An operation that may be corrected. */
type Corrected = Exclude<OperationType, 'CANCEL'>;

function ofOperation(stored: TransactionInState, type: Corrected, outcome: Outcome): Correction {
  if (stored.payment.openOperation) return 'later';
  return booksCorrectedBy(stored, type, outcome) ? 'now' : 'conflict';
}

/**
 * Returns a payment's books after the correction of an operation.
 *
 * @returns undefined if they cannot hold it: the authorization has lapsed, or more would be refunded than captured, or
 *   captured than authorized.
 */
export function booksCorrectedBy(
  { payment, transaction, transactions }: TransactionInState,
  type: Corrected,
  outcome: Outcome,
): Books | undefined {
  const base = succeededBase(transactions);
  if (!base) return undefined;
  const before = booksOf(payment, base);
  const { minorUnits, currency, isFinal } = transaction;
  const operation = { type, money: { minorUnits, currency }, isFinal };
  const after =
    outcome.kind === 'approved'
      ? booksAfter(before, { ...operation, money: reportedMoney(operation, outcome.money) })
      : booksWithout(before, operation, staysReleased(before, transaction, transactions));
  return after.captured <= after.amount && leftToRefund(after) >= 0n ? after : undefined;
}

/** Returns true if the uncaptured amount stays released although this operation has failed. */
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
 * Time that an authorization is held after a capture failed late, before it may lapse. Adyen itself captures again within
 * ten days.
 */
export const HELD_AGAIN_MS = 12 * 86_400_000;

/** Returns the time that an authorization is still held because a capture has failed late; 0 if none has. */
export function heldAgainMs({
  record,
  transactions,
}: Pick<TransactionInState, 'record' | 'transactions'>): number {
  const failed = new Set(record.transactionsHistory.filter(hasFailedLate).map(({ id }) => id));
  const rests = transactions
    .filter(({ id }) => failed.has(id))
    .map(({ sinceReportMs = 0 }) => HELD_AGAIN_MS - sinceReportMs);
  return Math.max(0, ...rests);
}

/** Types of operations that act on what an authorization holds. */
export const NEEDS_AUTHORIZATION: ReadonlySet<string> = new Set(['CAPTURE', 'CANCEL']);

/**
 * Returns true for a report about the same charge: another charge under our reference is money that nobody requested. An
 * operation that its provider makes again may have a new id, and so may a payer's next try on the provider's page.
 */
function isAbout({ type, providerPaymentId: id }: TransactionRow, outcome: Outcome): boolean {
  if (isOperation(type) || ('isAnyTry' in outcome && outcome.isAnyTry)) return true;
  return id !== undefined && outcome.kind !== 'not_sent' && outcome.providerPaymentId === id;
}

/** A charge that turns out to have failed must have no operations and disputes. */
function ofAttempt({ payment, transactions }: TransactionInState, outcome: Outcome): Correction | undefined {
  if (payment.openOperation) return 'later';
  if (outcome.kind === 'declined') return transactions.some(isOnCharge) ? 'conflict' : 'now';
  const attempts = transactions.filter(({ parentId }) => !parentId);
  if (payment.isReleased || attempts.some(({ status }) => status === 'SUCCEEDED')) return undefined;
  return attempts.some(isOpen) ? 'later' : 'now';
}

/** Returns true for an operation or a dispute that has taken effect. */
function isOnCharge({ parentId, status }: TransactionRow): boolean {
  return parentId !== undefined && (status === 'SUCCEEDED' || status === 'PENDING');
}
