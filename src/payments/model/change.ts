import { type Payment, Payment_Status, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { Books } from './books.ts';
import type { TransactionRow } from './state.ts';

/** The effect of a report on a payment, to be written in one commit. */
export type Change = {
  /** The new record; its status is the payment's. */
  readonly record: Payment;
  readonly books: Books;
  /** The reported transaction; undefined if nobody requested it here. */
  readonly transaction: TransactionChange | undefined;
  /** A transaction that begins, or that nobody requested here. The database may have it already. */
  readonly added: AddedTransaction | undefined;
  /** The authorization whose schedule changes, and the seconds until it is checked. */
  readonly parent: { readonly id: string; readonly checkInS: number } | undefined;
  /** Type of the event that reports the change to webhooks; undefined exactly if the record does not change. */
  readonly event: string | undefined;
  /** The fate of the transaction's stored method; undefined if it does not change. */
  readonly method: MethodChange | undefined;
  /** The checkout session that may be paid again, since this payment failed. */
  readonly reopens: string | undefined;
  /** The checkout session that this payment takes again, since it was paid after it had failed. */
  readonly retakes: string | undefined;
};

/** Change of a transaction. */
export type TransactionChange = {
  readonly id: string;
  readonly status: Transaction_Status;
  /** The connector's reference to it; undefined: an earlier one is kept. */
  readonly reference: string | undefined;
  /** true: its payer was redirected, or has come back and the provider has yet to confirm. */
  readonly awaitsPayer: boolean;
  /** true: the outcome is still open, so only the worker that holds the transaction may write it. */
  readonly isOpen: boolean;
  /** Seconds until the next check of the transaction; undefined once no more news is expected. */
  readonly checkInS: number | undefined;
};

/** The columns of a transaction that a change adds. */
export type AddedTransaction = Omit<TransactionRow, 'status' | 'awaitsPayer' | 'isUnanswered' | 'ageMs'> & {
  readonly status: Transaction_Status;
  /** For an attempt that is about to be sent: its lease in seconds. */
  readonly checkInS: number | undefined;
};

/** Returns a transaction that is added to a payment and acts on its base transaction. */
export function addedTo(
  { connectionId, connectionIdentity, currency }: TransactionRow,
  own: Pick<AddedTransaction, 'id' | 'type' | 'status' | 'reference' | 'minorUnits' | 'parentId' | 'isFinal'>,
): AddedTransaction {
  const { vaultedToken, checkInS } = { vaultedToken: undefined, checkInS: undefined };
  return { ...own, connectionId, connectionIdentity, currency, capture: false, vaultedToken, checkInS };
}

/** Fate of a transaction's stored method: a card that waits for the outcome is kept or dropped. */
export type MethodChange = { readonly token: string; readonly fate: 'keep' | 'drop' };

/**
 * Reason why a report changes nothing.
 * - `unchanged`: it reports the current state, or nothing that counts.
 * - `waiting`: it may count later: another operation is open, or something before it has yet to be written.
 * - `contradiction`: it is the opposite of a final state, which stays and needs manual review.
 * - `mismatch`: the payment does not allow it; it needs manual review.
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

/** Returns the fate of the stored method of a transaction with this status; undefined while it waits. */
export function methodOf(token: string | undefined, status: Transaction_Status): MethodChange | undefined {
  if (token === undefined || isOpenStatus(status)) return undefined;
  return { token, fate: status === Transaction_Status.SUCCEEDED ? 'keep' : 'drop' };
}

function isOpenStatus(status: Transaction_Status): boolean {
  return status === Transaction_Status.PENDING || status === Transaction_Status.CREATED;
}

/** Returns the session that may be paid again since its payment failed; undefined without one. */
export function reopenedSession({ status, checkout }: Payment): string | undefined {
  return FAILED.has(status) ? checkout?.session || undefined : undefined;
}

const FAILED = new Set([Payment_Status.DECLINED, Payment_Status.ERROR, Payment_Status.EXPIRED]);
