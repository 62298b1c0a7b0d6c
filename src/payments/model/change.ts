import { type Payment, Payment_Status, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { Books } from './books.ts';
import type { ChangedDispute } from './dispute-row.ts';
import type { MovementCorrection } from './movement.ts';
import type { TransactionRow } from './state.ts';

/** The effect of a report on a payment, to be written in one commit. */
export type Change = {
  /** The new record; its status is the payment's. */
  readonly record: Payment;
  readonly books: Books;
  /** The reported transaction; undefined if it was not requested here. */
  readonly transaction: TransactionChange | undefined;
  /** A transaction that begins, or that was not requested here. The database may already have it. */
  readonly added: AddedTransaction | undefined;
  /** Another transaction that changes: the one that the reported operation acts on, or the one that acts on it. */
  readonly other: OtherChange | undefined;
  /** Type of the webhook event that reports the change; undefined if the record does not change, and only then. */
  readonly event: string | undefined;
  /** The fate of the transaction's stored method; undefined if it does not change. */
  readonly method: MethodChange | undefined;
  /** The checkout session that may be paid again because this payment failed. */
  readonly reopens: string | undefined;
  /** The checkout session that this payment uses again, because the payment succeeded after it had failed. */
  readonly retakes: string | undefined;
  /** Decisions that somebody has to make about the money that arrived, or did not. */
  readonly moneyAlarms?: readonly MoneyAlarm[];
  /** Money that has moved before and moves again, in this order. */
  readonly corrections?: readonly MovementCorrection[];
  /** A dispute that is new or changes, with its event. */
  readonly dispute?: ChangedDispute;
};

/**
 * Money that needs a decision of the merchant's.
 *
 * - `late_payment`: it arrived after the payment had expired, was canceled or was declined.
 * - `underpaid`: a transfer was too small, and the payment has expired: the money is to be given back.
 * - `overpaid`: a transfer was too large: the excess is to be given back.
 */
export type MoneyAlarm = 'late_payment' | 'underpaid' | 'overpaid';

/** A change of another transaction than the reported one. */
export type OtherChange = {
  readonly id: string;
  /** Seconds until its next check; undefined once no more news is expected. */
  readonly checkInS: number | undefined;
  /** Its end, if a cancel has closed it; undefined keeps its status and its reference. */
  readonly ended?: { readonly status: Transaction_Status; readonly reference: string | undefined };
};

/** A change of a transaction. */
export type TransactionChange = {
  readonly id: string;
  readonly status: Transaction_Status;
  /** The connector's reference to the transaction; undefined keeps the earlier reference. */
  readonly reference: string | undefined;
  /** The provider's id of the movement of money; undefined keeps the earlier id. */
  readonly providerPaymentId: string | undefined;
  /** true: the payer was redirected, or has returned and the provider has yet to confirm. */
  readonly awaitsPayer: boolean;
  /**
   * true: only the worker that holds the transaction may write this. The outcome is still open, it corrects a final state,
   * or it says only that the worker's own call was not sent, whatever another worker has sent since.
   */
  readonly isFenced: boolean;
  /** Seconds until the next check of the transaction; undefined once no more news is expected. */
  readonly checkInS: number | undefined;
  /** Time of the reported event according to the provider; undefined keeps the earlier time. */
  readonly reportedAt?: Date | undefined;
  /** When the payer can no longer pay, if the provider says another time than expected; undefined keeps the earlier time. */
  readonly payerUntil?: Date | undefined;
  /** The amount that an operation has moved, if it is not the recorded one. */
  readonly minorUnits?: bigint | undefined;
};

/** A transaction that a change adds, as columns. */
export type AddedTransaction = Omit<
  TransactionRow,
  | ('status' | 'awaitsPayer' | 'awaitsResponse' | 'ageMs' | 'methodKind' | 'payerTimeLeftMs' | 'reportedAt')
  | ('corrections' | 'correctedMinorUnits')
> & {
  readonly status: Transaction_Status;
  /** Time of the reported event according to the provider, if known. */
  readonly reportedAt?: Date | undefined;
  /** For an attempt: how the payer pays, and the seconds that the payer has to act, should the provider ask for it. */
  readonly methodKind?: TransactionRow['methodKind'];
  readonly payerDueInS?: number;
  /** For an attempt: the version of the catalogue that routed it. */
  readonly catalogueVersion?: number;
  /** The lease in seconds, for an attempt that is about to be sent. */
  readonly checkInS: number | undefined;
};

/** Returns a transaction to add to a payment, with the fields of the base transaction that it acts on. */
export function addedTo(
  { connectionId, connectionIdentity, currency }: TransactionRow,
  own: Pick<
    AddedTransaction,
    'id' | 'type' | 'status' | 'reference' | 'providerPaymentId' | 'minorUnits' | 'parentId' | 'isFinal'
  >,
  reportedAt?: Date,
): AddedTransaction {
  // Stryker disable next-line ObjectLiteral: the fields of an empty object are undefined, too
  const { vaultedToken, checkInS } = { vaultedToken: undefined, checkInS: undefined };
  const at = { connectionId, connectionIdentity, currency };
  return { ...own, ...at, capture: false, vaultedToken, checkInS, reportedAt };
}

/** The fate of a transaction's stored method: a card that awaits the outcome is kept or dropped. */
export type MethodChange = { readonly token: string; readonly fate: 'keep' | 'drop' };

/**
 * Reason why a report changes nothing.
 * - `unchanged`: it reports the current state, or nothing relevant.
 * - `waiting`: it may apply later, because another operation is open or an earlier event is not written yet.
 * - `contradiction`: it is the opposite of a final state, which stays and needs manual review.
 * - `conflict`: it counts, but the payment cannot hold it beside what has happened since. It needs manual review, and may
 *   apply later.
 * - `mismatch`: it does not fit the payment, and needs manual review.
 */
export type Unapplied = 'unchanged' | 'waiting' | 'contradiction' | 'conflict' | 'mismatch';

/** The parts of a change that most reports leave unset. */
export const NOTHING_ELSE = {
  transaction: undefined,
  added: undefined,
  other: undefined,
  method: undefined,
  reopens: undefined,
  retakes: undefined,
} as const;

/** Returns the names that an outcome gives a transaction. */
export function namesOf(outcome: Outcome): Pick<TransactionChange, 'reference' | 'providerPaymentId'> {
  if (outcome.kind === 'not_sent') return UNNAMED;
  return { reference: outcome.reference, providerPaymentId: outcome.providerPaymentId };
}

/** The names of a transaction that its provider has yet to name. */
export const UNNAMED = { reference: undefined, providerPaymentId: undefined } as const;

/**
 * Returns the fate of the stored method of a transaction with this status; undefined while the transaction is open.
 */
export function methodOf(token: string | undefined, status: Transaction_Status): MethodChange | undefined {
  if (token === undefined || isOpenStatus(status)) return undefined;
  return { token, fate: status === Transaction_Status.SUCCEEDED ? 'keep' : 'drop' };
}

function isOpenStatus(status: Transaction_Status): boolean {
  return status === Transaction_Status.PENDING || status === Transaction_Status.CREATED;
}

/** Returns the session that may be paid again because its payment failed; undefined if there is none. */
export function reopenedSession({ status, checkout }: Payment): string | undefined {
  return FAILED.has(status) ? checkout?.session || undefined : undefined;
}

const FAILED = new Set([Payment_Status.DECLINED, Payment_Status.ERROR, Payment_Status.EXPIRED]);
