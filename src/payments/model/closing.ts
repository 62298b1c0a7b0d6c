import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { type Payment, type Transaction, Transaction_Type } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { type Change, methodOf, NOTHING_ELSE, namesOf, UNNAMED } from './change.ts';
import { eventOf } from './event.ts';
import { transactionOf } from './operation-record.ts';
import { providerDataAfter } from './record.ts';
import { FIRST_CHECK_S } from './schedule.ts';
import { booksOf, type PaymentState, type TransactionRow } from './state.ts';
import { ALREADY_PAID, APPROVED, CANCELED_BY_MERCHANT, type States, statesOf } from './states.ts';

/** Returns true if an outcome shows that an attempt is over and took no money. */
export function isEndWithoutMoney({ kind }: Outcome): boolean {
  return kind === 'expired' || kind === 'declined' || kind === 'not_sent';
}

/** The outcome of a cancel whose attempt the provider has not closed, as far as it says. */
export const NOT_CLOSED_YET: Outcome = {
  kind: 'unknown',
  detail: 'the provider has not closed the payment yet',
  providerData: undefined,
};

/** Returns transactions with the cancels last, in the order in which they began: an attempt is written as the last one. */
export function cancelsLast(history: readonly Transaction[]): Transaction[] {
  const isCancel = ({ type }: Transaction) => type === Transaction_Type.CANCEL;
  return [...history.filter((one) => !isCancel(one)), ...history.filter(isCancel)];
}

/**
 * Ends an attempt that awaited its payer, and the merchant's cancel that closed it, in one change. Money that arrives
 * later is accepted, as after an expiry.
 *
 * @param outcome the outcome of the attempt, which took no money.
 */
export function closedChange(
  { payment, record }: PaymentState,
  closing: TransactionRow,
  attempt: TransactionRow,
  outcome: Outcome,
  at: Timestamp,
): Change {
  const own = outcome.kind === 'declined' ? statesOf(outcome, PURCHASE) : CANCELED_BY_MERCHANT;
  const shown = transactionOf(record, attempt.id);
  const providerData = providerDataAfter(shown, outcome);
  const ended = { ...inStates(shown, own, at), ...(providerData && { providerData }) };
  const canceled = inStates(transactionOf(record, closing.id), APPROVED, at);
  const closed = {
    ...withTransactions(record, [ended, canceled], at),
    status: CANCELED_BY_MERCHANT.payment,
    subStatus: CANCELED_BY_MERCHANT.subStatus,
    ...(record.checkout && { checkout: { ...record.checkout, sdkActionRequired: false } }),
  };
  return {
    ...NOTHING_ELSE,
    record: closed,
    books: booksOf(payment, attempt),
    transaction: endOf(closing, canceled),
    other: {
      id: attempt.id,
      // Money may have come at the last moment.
      checkInS: FIRST_CHECK_S,
      ended: { status: own.transaction, reference: namesOf(outcome).reference },
    },
    event: eventOf(closed),
    method: methodOf(attempt.vaultedToken, own.transaction),
  };
}

/** Ends a cancel that came too late: the attempt that it should have closed is paid, and the payment stays as it is. */
export function tooLateChange(
  { payment, record }: PaymentState,
  closing: TransactionRow,
  attempt: TransactionRow,
  at: Timestamp,
): Change {
  const declined = inStates(transactionOf(record, closing.id), ALREADY_PAID, at);
  const changed = withTransactions(record, [declined], at);
  return {
    ...NOTHING_ELSE,
    record: changed,
    books: booksOf(payment, attempt),
    transaction: endOf(closing, declined),
    event: eventOf(changed),
  };
}

const PURCHASE = {
  type: Transaction_Type.PURCHASE,
  methodKind: 'PAYER_PAGE',
  isDeclinedBefore: false,
} as const;

type TransactionStates = Pick<States, 'transaction' | 'responseCode' | 'responseMessage'>;

function inStates(
  transaction: Transaction,
  { transaction: status, responseCode, responseMessage }: TransactionStates,
  at: Timestamp,
): Transaction {
  return { ...transaction, status, responseCode, responseMessage, updatedAt: at };
}

/** Returns a record with changed transactions, which shows the last of them. */
function withTransactions(record: Payment, changed: readonly Transaction[], at: Timestamp): Payment {
  const transactions = changed.at(-1);
  return {
    ...record,
    ...(transactions && { transactions }),
    transactionsHistory: record.transactionsHistory.map(
      (one) => changed.find(({ id }) => id === one.id) ?? one,
    ),
    updatedAt: at,
  };
}

function endOf({ id }: TransactionRow, { status }: Transaction) {
  const nothingMore = { ...UNNAMED, awaitsPayer: false, isFenced: false, checkInS: undefined };
  return { id, status, ...nothingMore };
}
