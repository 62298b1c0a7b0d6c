import { clone } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { TransactionPaymentMethodSchema } from '#gen/payments/v1/payment_method_pb.js';
import {
  type Payment,
  Payment_Status,
  Payment_SubStatus_Value,
  type Transaction,
  Transaction_Status,
  Transaction_Type,
  TransactionSchema,
} from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { toDecimal } from '#src/money.ts';
import { type Books, booksAfter, leftToRefund, type OperationType, type PlannedOperation } from './books.ts';
import { wasSentAway } from './state.ts';
import { currentStates, transactionStates, WAITING } from './states.ts';

/** Fields that an operation's transaction takes from its request. */
export type OperationFacts = {
  readonly transactionId: string;
  readonly parentId: string;
  readonly merchantReference: string;
  readonly description: string;
  readonly reason: string | undefined;
};

type OpenOperation = Pick<PlannedOperation, 'type' | 'money' | 'isFinal'>;

const TYPES: Readonly<Record<OperationType, Transaction_Type>> = {
  CAPTURE: Transaction_Type.CAPTURE,
  CANCEL: Transaction_Type.CANCEL,
  REFUND: Transaction_Type.REFUND,
};

/** Returns a record with an operation that is about to be sent as its last transaction, waiting for its outcome. */
export function withOperation(
  { record, books, base }: { readonly record: Payment; readonly books: Books; readonly base: Transaction },
  planned: PlannedOperation,
  facts: OperationFacts,
  at: Timestamp,
): Payment {
  const transaction: Transaction = {
    ...base,
    id: facts.transactionId,
    type: TYPES[planned.type],
    status: WAITING.transaction,
    responseCode: WAITING.responseCode,
    responseMessage: WAITING.responseMessage,
    amount: toDecimal(planned.money),
    paymentMethod: base.paymentMethod && clone(TransactionPaymentMethodSchema, base.paymentMethod),
    providerData: base.providerData && { ...base.providerData, rawResponse: {} },
    reason: facts.reason,
    description: facts.description,
    merchantReference: facts.merchantReference,
    parentTransactionId: facts.parentId,
    createdAt: at,
    updatedAt: at,
  };
  const history = [...record.transactionsHistory, transaction];
  return withCurrentStates(
    { ...record, transactions: transaction, transactionsHistory: history },
    books,
    at,
    planned,
  );
}

/**
 * Writes the outcome of an operation into a record and the books.
 *
 * @param before the current record, which is not changed, and the books; `id` is the operation's transaction.
 * @param written.after the books after the outcome; by default, only an approval changes them.
 * @param written.isLateFailure the operation failed after its provider had reported success.
 * @returns the new record, whose `transactions` field is the operation, and the new books.
 */
export function withOperationOutcome(
  before: { readonly record: Payment; readonly id: string; readonly books: Books },
  operation: OpenOperation,
  outcome: Outcome,
  written: { readonly at: Timestamp; readonly after?: Books | undefined; readonly isLateFailure?: boolean },
): Applied {
  const { record, id, books } = before;
  const { at, after = outcome.kind === 'approved' ? booksAfter(books, operation) : books } = written;
  const states = transactionStates(outcome, operation.type, written.isLateFailure);
  const reported = outcome.kind === 'not_sent' ? undefined : outcome.providerData;
  const transaction: Transaction = {
    ...transactionOf(record, id),
    status: states.transaction,
    responseCode: states.responseCode,
    responseMessage: states.responseMessage,
    ...(reported && { providerData: reported }),
    amount: toDecimal(operation.money),
    updatedAt: at,
  };
  const isOpen = states.transaction === Transaction_Status.PENDING;
  const history = record.transactionsHistory.map((one) => (one.id === id ? transaction : one));
  return {
    record: withCurrentStates(
      { ...record, transactions: transaction, transactionsHistory: history },
      after,
      at,
      isOpen ? operation : undefined,
    ),
    books: after,
    transactionStatus: states.transaction,
  };
}

/** A payment with an outcome applied. */
export type Applied = {
  readonly record: Payment;
  readonly books: Books;
  readonly transactionStatus: Transaction_Status;
  /** true: the record did not change, so webhooks get no event. */
  readonly isUnchanged?: true;
};

/**
 * Returns a copy of a record with the payment's own attempt as the last transaction, so that an outcome can be written
 * into it.
 *
 * @param before the current record, which is not changed.
 */
export function withOwnAttempt(before: Payment, id: string): Payment {
  const own = clone(TransactionSchema, transactionOf(before, id));
  return {
    ...before,
    ...(before.paymentMethod && { paymentMethod: { ...before.paymentMethod } }),
    transactions: own,
    // The last attempt decides the payment's state, and another attempt may have been declined after the corrected one.
    transactionsHistory: [...before.transactionsHistory.filter((one) => one.id !== id), own],
  };
}

/**
 * Writes what an outcome shows about the payer into a record. @param before the payment's states before the outcome.
 */
export function recordPayer(record: Payment, before: Pick<Payment, 'subStatus'>, outcome: Outcome): void {
  // The payer has returned or acted, so it is the provider's turn.
  if (outcome.kind === 'pending' && wasSentAway(before)) {
    record.subStatus = Payment_SubStatus_Value.IN_PROCESS;
  }
  if (outcome.kind !== 'awaits_payer' && record.checkout) {
    record.checkout = { ...record.checkout, sdkActionRequired: false };
  }
}

/**
 * Expires an authorization that was not captured in time. If it was already captured or released, the record stays the
 * same.
 */
export function withLapse(record: Payment, transactionId: string, books: Books, at: Timestamp): Applied {
  const after = { ...books, isReleased: true };
  if (books.isReleased || books.captured > 0n) {
    return { record, books: after, transactionStatus: Transaction_Status.SUCCEEDED, isUnchanged: true };
  }
  const history = record.transactionsHistory.map((one) =>
    one.id === transactionId ? { ...one, status: Transaction_Status.EXPIRED, ...LAPSED, updatedAt: at } : one,
  );
  const last = history.at(-1);
  return {
    record: {
      ...record,
      status: Payment_Status.EXPIRED,
      subStatus: Payment_SubStatus_Value.EXPIRED,
      updatedAt: at,
      ...(last && { transactions: last }),
      transactionsHistory: history,
    },
    books: after,
    transactionStatus: Transaction_Status.EXPIRED,
  };
}

const LAPSED = { responseCode: 'EXPIRED', responseMessage: 'Authorization lapsed' };

/** Returns the status of the dispute that a payment shows: a lost dispute, or else an open one. */
function disputeStatus({ transactionsHistory }: Payment): Transaction_Status | undefined {
  const disputes = transactionsHistory.filter(({ type }) => type === Transaction_Type.CHARGEBACK);
  return [Transaction_Status.SUCCEEDED, Transaction_Status.PENDING].find((status) =>
    disputes.some((dispute) => dispute.status === status),
  );
}

/** Returns a transaction of a record. @throws Error if the record has no transaction with this id. */
export function transactionOf({ id: recordId, transactionsHistory }: Payment, id: string): Transaction {
  const transaction = transactionsHistory.find((one) => one.id === id);
  if (!transaction) throw new Error(`record ${recordId} has no transaction ${id}`);
  return transaction;
}

/** Sets the payment's own states and amounts from its books and the open operation, if any. */
export function withCurrentStates(
  record: Payment,
  books: Books,
  at: Timestamp,
  open?: OpenOperation,
): Payment {
  const base = record.transactionsHistory.find(isBase);
  const states = currentStates(books, {
    isShownAsAuthorized: base?.type === Transaction_Type.AUTHORIZE,
    opens: open && opensTo(books, open),
    dispute: disputeStatus(record),
  });
  const { currency } = books;
  return {
    ...record,
    status: states.status,
    subStatus: states.subStatus,
    updatedAt: at,
    ...(record.amount && {
      amount: {
        ...record.amount,
        captured: toDecimal({ minorUnits: books.captured, currency }),
        refunded: toDecimal({ minorUnits: books.refunded, currency }),
      },
    }),
  };
}

/** Returns the effect that an open operation already has on the state shown for the payment, if any. */
function opensTo(books: Books, open: OpenOperation): 'refund' | 'cancel' | undefined {
  if (open.type === 'REFUND' && leftToRefund(booksAfter(books, open)) === 0n) return 'refund';
  return open.type === 'CANCEL' && books.captured === 0n ? 'cancel' : undefined;
}

/** Returns true for the payment's own transaction: a purchase, an authorization or a verification that succeeded. */
export function isBase({ type, status }: Transaction): boolean {
  return BASE_TYPES.has(type) && status === Transaction_Status.SUCCEEDED;
}

const BASE_TYPES = new Set([Transaction_Type.PURCHASE, Transaction_Type.AUTHORIZE, Transaction_Type.VERIFY]);
