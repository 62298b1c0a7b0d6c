import { type Payment, Payment_Status, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { Books } from './books.ts';
import type { TransactionRow } from './state.ts';

/** All that a report makes of a payment, to be written in one commit. */
export type Change = {
  /** The record as it is now; its status is the payment's. */
  readonly record: Payment;
  readonly books: Books;
  /** The transaction that was reported on; undefined if the report is of one that nobody requested here. */
  readonly transaction: TransactionChange | undefined;
  /** A transaction that begins, or that nobody requested here, which the database may have already. */
  readonly added: AddedTransaction | undefined;
  /** The authorization whose schedule changes, and the seconds until it is checked. */
  readonly parent: { readonly id: string; readonly checkInS: number } | undefined;
  /** Type of the event that reports the change to webhooks; undefined exactly if the record stays as it was. */
  readonly event: string | undefined;
  /** The fate of the stored method that the transaction uses or keeps; undefined if it stays as it is. */
  readonly method: MethodChange | undefined;
  /** The checkout session that may be paid again, since this payment failed. */
  readonly reopens: string | undefined;
  /** The checkout session that this payment uses again, since it was paid after it had failed. */
  readonly retakes: string | undefined;
};

/** Change of a transaction. */
export type TransactionChange = {
  readonly id: string;
  readonly status: Transaction_Status;
  /** The connector's reference to it; undefined: an earlier one stays. */
  readonly reference: string | undefined;
  /** true: its payer was sent away, or has come back and the provider has yet to confirm. */
  readonly awaitsPayer: boolean;
  /** true: the outcome is still open, so only the worker that holds the transaction may write it. */
  readonly isOpen: boolean;
  /** Seconds until the transaction is checked next; undefined once nothing more is expected of it. */
  readonly checkInS: number | undefined;
};

/** The columns of a transaction that a change adds. */
export type AddedTransaction = Omit<TransactionRow, 'status' | 'awaitsPayer' | 'isUnanswered' | 'ageMs'> & {
  readonly status: Transaction_Status;
  /** Of an attempt that is about to be sent: its lease in seconds. */
  readonly checkInS: number | undefined;
};

/** Returns a transaction that is added to a payment and acts on what its own took or holds. */
export function addedTo(
  { connectionId, connectionIdentity, currency }: TransactionRow,
  own: Pick<AddedTransaction, 'id' | 'type' | 'status' | 'reference' | 'minorUnits' | 'parentId' | 'isFinal'>,
): AddedTransaction {
  const { vaultedToken, checkInS } = { vaultedToken: undefined, checkInS: undefined };
  return { ...own, connectionId, connectionIdentity, currency, capture: false, vaultedToken, checkInS };
}

/** Fate of the stored method of a transaction: a card that waits for the outcome is kept, or dropped. */
export type MethodChange = { readonly token: string; readonly fate: 'keep' | 'drop' };

/**
 * Reason for which a report changes nothing.
 * - `unchanged`: it says what stands, or nothing that counts.
 * - `waiting`: it may count later: another operation is open, or something that comes before it has yet to be written.
 * - `contradiction`: it is the opposite of a final state, which stays and needs manual review.
 * - `mismatch`: the payment does not allow what it reports, which needs manual review.
 */
export type Unapplied = 'unchanged' | 'waiting' | 'contradiction' | 'mismatch';

/** The parts of a change that most reports leave alone. */
export const NOTHING_ELSE = {
  transaction: undefined,
  added: undefined,
  parent: undefined,
  method: undefined,
  reopens: undefined,
  retakes: undefined,
} as const;

/** Returns the reference that an outcome gives a transaction. */
export function referenceOf(outcome: Outcome): string | undefined {
  return outcome.kind === 'not_sent' ? undefined : outcome.reference;
}

/** Returns the fate of the stored method that a transaction of a status uses or keeps; undefined while it waits. */
export function methodOf(token: string | undefined, status: Transaction_Status): MethodChange | undefined {
  if (token === undefined || isOpenStatus(status)) return undefined;
  return { token, fate: status === Transaction_Status.SUCCEEDED ? 'keep' : 'drop' };
}

function isOpenStatus(status: Transaction_Status): boolean {
  return status === Transaction_Status.PENDING || status === Transaction_Status.CREATED;
}

/** Returns the session that may be paid again, since its payment failed; undefined if there is none. */
export function reopenedSession({ status, checkout }: Payment): string | undefined {
  return FAILED.has(status) ? checkout?.session || undefined : undefined;
}

const FAILED = new Set([Payment_Status.DECLINED, Payment_Status.ERROR, Payment_Status.EXPIRED]);
