import {
  type Payment,
  Payment_Status,
  Payment_SubStatus_Value,
  type ProviderData,
} from '#gen/payments/v1/payment_pb.js';
import type { MethodKind } from '#src/connectors/port/capabilities.ts';
import type { Target } from '#src/connectors/port/connector.ts';
import type { Books, OperationType } from './books.ts';
import type { DisputeRow } from './dispute-row.ts';

/*
 * The words of the payments:
 *
 * - payment: what a merchant asked for, with its record (the message that a caller reads) and its transactions.
 * - transaction: one movement of money, or an attempt at one. A payment's own transactions are its attempts; those that
 *   act on them are operations and disputes.
 * - attempt: a purchase, authorization or verification, sent once to one provider.
 * - operation: a capture, cancel or refund.
 * - outcome: the result of a provider call, known or unknown.
 * - report: an outcome, or another fact that a provider states, to be applied to a payment.
 * - check: a look-up of one transaction at its provider, and the write that follows.
 * - lease: the right to call the provider about a transaction, until a time on the database's clock.
 * - fence: the number by which a write proves that nobody has taken over its transaction.
 * - news: a notification of a provider, a payer's return, or a payer's wish to close.
 * - books: the amounts authorized, captured, refunded and released.
 * - response: the message that a call got, kept under its key and never changed.
 */

/** The database's data about one payment. */
export type PaymentState = {
  readonly payment: PaymentRow;
  readonly record: Payment;
  /** In the order in which they began. */
  readonly transactions: readonly TransactionRow[];
  /** The disputes of the payment; undefined unless a dispute is reported. */
  readonly disputes?: readonly DisputeRow[];
};

/** A payment, and the transaction that a report concerns. */
export type TransactionInState = PaymentState & { readonly transaction: TransactionRow };

/** The columns of a payment other than its record. */
export type PaymentRow = {
  /** Number of writes so far. A write based on an older version changes nothing. */
  readonly version: number;
  readonly capturedMinorUnits: bigint;
  readonly refundedMinorUnits: bigint;
  readonly isReleased: boolean;
  /** Keyed hash of the card number, if there is a card. */
  readonly cardFingerprint: string | undefined;
  /** The id of the open operation's transaction, if any. */
  readonly openOperation: string | undefined;
};

/** The columns of a transaction. */
export type TransactionRow = {
  readonly id: string;
  /** Name of a payments.v1.Transaction.Type. */
  readonly type: string;
  /** Name of a payments.v1.Transaction.Status. */
  readonly status: string;
  /** Id of the transaction that this one acts on; undefined for a payment's own transaction. */
  readonly parentId: string | undefined;
  readonly connectionId: string;
  readonly connectionIdentity: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  /** false only for an authorization. */
  readonly capture: boolean;
  /** The connector's address of the provider's object. */
  readonly reference: string | undefined;
  /** The id by which the provider names this movement of money. */
  readonly providerPaymentId: string | undefined;
  /** true for the last capture, and for a cancel that releases an authorization. */
  readonly isFinal: boolean;
  readonly vaultedToken: string | undefined;
  /** The kind of an attempt's method; undefined for an operation or a dispute. */
  readonly methodKind: MethodKind | undefined;
  /**
   * Time that the payer of an attempt has left to act, according to the database's clock: negative once it is over;
   * undefined for an operation or a dispute.
   */
  readonly payerTimeLeftMs: number | undefined;
  /** true: the payer was redirected, or has returned and the provider has yet to confirm. */
  readonly awaitsPayer: boolean;
  /** Time of the last event that the provider reported about it, according to the provider. */
  readonly reportedAt: Date | undefined;
  /**
   * true: the call that began the transaction has no stored response. If the transaction is also due, its process died.
   */
  readonly awaitsResponse: boolean;
  /** Time since the transaction was stored, just before it was sent, according to the database's clock. */
  readonly ageMs: number;
  /** Time since the transaction first succeeded, according to the database's clock; undefined if it never did. */
  readonly sinceSuccessMs?: number | undefined;
  /** Time since the last report that was written about the transaction, according to the database's clock. */
  readonly sinceReportMs?: number | undefined;
  /** Number of its movement corrections so far, and their signed sum. */
  readonly corrections?: number | undefined;
  readonly correctedMinorUnits?: bigint | undefined;
};

/** Returns true if a transaction acts on another one, as captures, cancels and refunds do. */
export function isOperation(type: string): type is OperationType {
  return type === 'CAPTURE' || type === 'CANCEL' || type === 'REFUND';
}

/** Types of transactions that a payment can begin with. */
export const BASE_TYPES: ReadonlySet<string> = new Set(['PURCHASE', 'AUTHORIZE', 'VERIFY']);

/** Returns true for a transaction that is not over, so money may still move. */
export function isOpen({ status }: Pick<TransactionRow, 'status'>): boolean {
  return status === 'CREATED' || status === 'PENDING';
}

/** Returns true for a payment's own attempt with an unknown outcome that does not await its payer. */
export function isOpenAttempt(transaction: Pick<TransactionRow, 'type' | 'status' | 'awaitsPayer'>): boolean {
  return isOpen(transaction) && !isOperation(transaction.type) && !transaction.awaitsPayer;
}

/**
 * Returns true for a cancel that closes an attempt whose payer has yet to act. Every other cancel releases an
 * authorization, after which nothing can be captured.
 */
export function isClosing({ type, isFinal }: Pick<TransactionRow, 'type' | 'isFinal'>): boolean {
  return type === 'CANCEL' && !isFinal;
}

/** Finds the open cancel that closes a transaction, or is the transaction. */
export function openClosing({
  transaction,
  transactions,
}: Pick<TransactionInState, 'transaction' | 'transactions'>): TransactionRow | undefined {
  return transactions.find(
    (one) => isClosing(one) && isOpen(one) && (one.id === transaction.id || one.parentId === transaction.id),
  );
}

/** Returns true for an attempt with a local method, which its payer pays later and only its provider ends. */
export function isCode({ methodKind }: Pick<TransactionRow, 'methodKind'>): boolean {
  return methodKind === 'PAYER_CODE';
}

/** Returns true for an authorization that waits to be captured. */
export function isLapsing({ type, status, capture }: TransactionRow): boolean {
  return BASE_TYPES.has(type) && status === 'SUCCEEDED' && !capture;
}

/** Returns true if an authorization has nothing left that could lapse. */
export function isOver({
  payment,
  transaction,
}: Omit<TransactionInState, 'record' | 'transactions'>): boolean {
  return payment.isReleased || payment.capturedMinorUnits >= transaction.minorUnits;
}

/** Returns true for a dispute that has not ended. */
export function isOpenDispute({ type, status }: Pick<TransactionRow, 'type' | 'status'>): boolean {
  return type === 'CHARGEBACK' && status === 'PENDING';
}

/** Returns true if a payment waits for its payer to act: on the provider's page, or to pass a challenge. */
export function payerMustAct({ status, subStatus }: Pick<Payment, 'status' | 'subStatus'>): boolean {
  return (
    status === Payment_Status.READY_TO_PAY || subStatus === Payment_SubStatus_Value.WAITING_ADDITIONAL_STEP
  );
}

const SENT_AWAY = new Set([
  Payment_SubStatus_Value.CREATED,
  Payment_SubStatus_Value.WAITING_ADDITIONAL_STEP,
  Payment_SubStatus_Value.IN_PROCESS,
]);

/** Returns true for an open payment whose payer was shown what to do, and may have acted since. */
export function wasSentAway({ subStatus }: Pick<Payment, 'subStatus'>): boolean {
  return SENT_AWAY.has(subStatus);
}

/** Finds the transaction that a payment began with, if it succeeded. */
export function succeededBase<T extends Pick<TransactionRow, 'type' | 'status'>>(
  transactions: readonly T[],
): T | undefined {
  return transactions.find(({ type, status }) => BASE_TYPES.has(type) && status === 'SUCCEEDED');
}

/** Returns a payment's books, from the columns on which the limits are enforced. */
export function booksOf(
  stored: Pick<PaymentRow, 'capturedMinorUnits' | 'refundedMinorUnits' | 'isReleased'>,
  base: Pick<TransactionRow, 'minorUnits' | 'currency' | 'capture'>,
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

/** Returns a stored transaction in the form that connectors use. */
export function targetOf(
  transaction: Pick<TransactionRow, 'id' | 'reference' | 'minorUnits' | 'currency'>,
): Target {
  const { id, reference, minorUnits, currency } = transaction;
  return { transactionId: id, reference, money: { minorUnits, currency } };
}

/** Returns the provider's last report on a transaction as the record shows it. */
export function shownOf({
  record,
  transaction,
}: Pick<TransactionInState, 'record' | 'transaction'>): ProviderData | undefined {
  return record.transactionsHistory.find(({ id }) => id === transaction.id)?.providerData;
}
