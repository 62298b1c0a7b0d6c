import { type Payment, Payment_Status, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { Books } from './books.ts';

/** All that a report makes of a payment, to be written in one commit. */
export type Change = {
  /** The record as it is now; its status is the payment's. */
  readonly record: Payment;
  readonly books: Books;
  readonly transaction: TransactionChange;
  /** Type of the event that reports the change to webhooks; undefined exactly if the record stays as it was. */
  readonly event: string | undefined;
  /** The fate of the stored method that the transaction uses or keeps; undefined if there is none. */
  readonly method: MethodChange | undefined;
  /** The checkout session that may be paid again, since this payment failed. */
  readonly reopens: string | undefined;
  /** The checkout session that this payment uses again, since it was paid after it had failed. */
  readonly retakes: string | undefined;
  /** true: the outcome is still open, so only the worker that holds the transaction may write it. */
  readonly isOpen: boolean;
  /** Seconds until the transaction is asked about next; undefined once nothing more is expected of it. */
  readonly checkInS: number | undefined;
  /** Seconds until the authorization that the transaction acts on is asked about; undefined if its schedule stays. */
  readonly parentCheckInS: number | undefined;
};

/** Change of a transaction. */
export type TransactionChange = {
  readonly id: string;
  readonly status: Transaction_Status;
  /** The connector's reference to it; undefined: an earlier one stays. */
  readonly reference: string | undefined;
  /** Set for a transaction that nobody requested here, which the database may not have yet. */
  readonly external?: ExternalColumns;
};

/** The columns of a transaction that nobody requested here. Connection and currency are the payment's own. */
export type ExternalColumns = {
  readonly type: 'CHARGEBACK' | 'CAPTURE' | 'REFUND';
  readonly minorUnits: bigint;
  /** The payment's purchase or authorization. */
  readonly baseId: string;
  /** The transaction that it acts on. */
  readonly parentId: string;
  /** true for a capture that none may follow. */
  readonly isFinal: boolean;
};

/** Fate of the stored method of a transaction: a card that waits for the outcome is kept, dropped, or waits on. */
export type MethodChange =
  | { readonly token: string; readonly fate: 'keep' }
  | { readonly token: string; readonly fate: 'drop' | 'wait' };

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
  method: undefined,
  reopens: undefined,
  retakes: undefined,
  isOpen: false,
  checkInS: undefined,
  parentCheckInS: undefined,
} as const;

/** Returns the reference that an outcome gives a transaction. */
export function referenceOf(outcome: Outcome): string | undefined {
  return outcome.kind === 'not_sent' ? undefined : outcome.reference;
}

/** Returns the fate of the stored method that a transaction of a status uses or keeps. */
export function methodOf(token: string | undefined, status: Transaction_Status): MethodChange | undefined {
  if (token === undefined) return undefined;
  if (status === Transaction_Status.PENDING || status === Transaction_Status.CREATED) {
    return { token, fate: 'wait' };
  }
  return { token, fate: status === Transaction_Status.SUCCEEDED ? 'keep' : 'drop' };
}

/** Returns the session that may be paid again, since its payment failed; undefined if there is none. */
export function reopenedSession({ status, checkout }: Payment): string | undefined {
  return FAILED.has(status) ? checkout?.session || undefined : undefined;
}

const FAILED = new Set([Payment_Status.DECLINED, Payment_Status.ERROR, Payment_Status.EXPIRED]);
