import type { Capabilities } from '#src/connectors/port/capabilities.ts';
import type { Money } from '#src/money.ts';
import { fieldRefusal, type ServiceError } from '#src/service-error.ts';
import {
  type Books,
  notSupported,
  type PlannedOperation,
  planCancel,
  planCapture,
  planClose,
  planRefund,
  type Refundable,
} from './books.ts';
import { isOpen, type TransactionRow } from './state.ts';

/** A payment, with the facts needed to plan an operation. */
export type PlannedPayment = {
  readonly books: Books;
  readonly base: TransactionRow;
  readonly transactions: readonly TransactionRow[];
  /** Capabilities of the payment's provider. */
  readonly can: Capabilities;
};

/**
 * Plans an external capture or refund as if it were requested here.
 *
 * @throws ServiceError if the payment does not allow it.
 */
export function planExternal(
  payment: PlannedPayment,
  type: 'CAPTURE' | 'REFUND',
  money: Money,
): { readonly target: TransactionRow; readonly planned: PlannedOperation } {
  if (type === 'CAPTURE') return { target: payment.base, planned: planCaptureOf(payment, money) };
  const target = refundTarget(payment, payment.base, money);
  return { target, planned: planRefundOf(payment, target, money) };
}

/** A payment's own transaction and all its transactions. */
export type Named = Pick<PlannedPayment, 'base' | 'transactions'>;

/**
 * Returns the payment's own transaction, on which captures and cancels act. An operation's id stands for it: after an
 * operation, that id is the one that the record shows first.
 *
 * @throws ServiceError TRANSACTION_NOT_FOUND for any other id.
 */
export function requireBase({ base, transactions }: Named, transactionId: string): TransactionRow {
  const named = transactionId.toLowerCase();
  if (named === '' || named === base.id) return base;
  if (transactions.some(({ id, parentId }) => id === named && parentId !== undefined)) return base;
  throw transactionNotFound();
}

/**
 * Returns the transaction that a path names for a refund: a capture, or the payment's own transaction. Any other
 * operation stands for the transaction that it acted on.
 *
 * @throws ServiceError TRANSACTION_NOT_FOUND for any other id.
 */
export function requireRefundable({ base, transactions }: Named, transactionId: string): TransactionRow {
  const named = transactionId.toLowerCase();
  if (named === '' || named === base.id) return base;
  const found = transactions.find(({ id }) => id === named);
  if (found?.type === 'CAPTURE' && found.status === 'SUCCEEDED') return found;
  const parent = found?.type !== 'CAPTURE' && transactions.find(({ id }) => id === found?.parentId);
  if (parent) return parent;
  throw transactionNotFound();
}

/**
 * Plans the cancel of a payment: it releases an authorization, or closes an attempt that awaits its payer.
 *
 * @throws ServiceError if the payment does not allow it.
 */
export function planCancelOf({ base, books, can }: PlannedPayment): PlannedOperation {
  return isOpen(base)
    ? planClose({ minorUnits: base.minorUnits, currency: base.currency }, can)
    : planCancel(books, can);
}

/** Plans a capture of a payment. @throws ServiceError if the payment does not allow it. */
export function planCaptureOf(
  { books, transactions, can }: PlannedPayment,
  requested: Money | undefined,
  isFinal?: boolean,
): PlannedOperation {
  return planCapture(books, requested, capturesOf(transactions).length, can, isFinal);
}

const DAY_MS = 86_400_000;

/** Plans a refund of a payment. @throws ServiceError if the payment does not allow it. */
export function planRefundOf(
  payment: PlannedPayment,
  target: TransactionRow,
  requested: Money | undefined,
): PlannedOperation {
  const { base, can } = payment;
  if (can.refundableDays !== undefined && (base.sinceSuccessMs ?? 0) > can.refundableDays * DAY_MS) {
    throw notSupported(`refunds more than ${can.refundableDays} days after the payment`);
  }
  return planRefund(payment.books, refundable(payment, target), requested, payment.can);
}

/**
 * Chooses the transaction that a refund acts on: the named capture; else the purchase; else a capture with enough left;
 * else the authorization, which stands for all of its captures.
 *
 * @param named the transaction that the call names; the payment's own if it names none.
 */
export function refundTarget(
  payment: PlannedPayment,
  named: TransactionRow,
  requested: Money | undefined,
): TransactionRow {
  const { base, transactions, books } = payment;
  if (!books.isAuthorization || named.id !== base.id) return named;
  const withRest = capturesOf(transactions).filter((capture) => rest(refundable(payment, capture)) > 0n);
  const [only] = withRest;
  if (only && withRest.length === 1) return only;
  return (
    withRest.find((capture) => requested && rest(refundable(payment, capture)) >= requested.minorUnits) ??
    base
  );
}

function capturesOf(transactions: readonly TransactionRow[]): readonly TransactionRow[] {
  return transactions.filter(({ type, status }) => type === 'CAPTURE' && status === 'SUCCEEDED');
}

function refundable({ transactions }: PlannedPayment, target: TransactionRow): Refundable {
  const refunds = transactions.filter(
    ({ type, parentId, status }) =>
      type === 'REFUND' && parentId === target.id && (status === 'SUCCEEDED' || status === 'PENDING'),
  );
  return {
    amount: target.minorUnits,
    refunded: refunds.reduce((sum, { minorUnits }) => sum + minorUnits, 0n),
  };
}

function rest({ amount, refunded }: Refundable): bigint {
  return amount - refunded;
}

function transactionNotFound(): ServiceError {
  const message = 'is not a transaction of this payment that the operation can act on';
  return fieldRefusal('TRANSACTION_NOT_FOUND', 'transaction_id', 'NOT_FOUND', message);
}
