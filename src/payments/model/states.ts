import {
  type Payment,
  Payment_Status,
  Payment_SubStatus_Value,
  type Transaction,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import type { MethodKind } from '#src/connectors/port/capabilities.ts';
import { declineOf } from '#src/connectors/port/decline.ts';
import { assertNever, type Outcome } from '#src/connectors/port/outcome.ts';
import { type Books, leftToRefund, type OperationType } from './books.ts';

/** The states of a payment and its transaction after an outcome. */
export type States = {
  readonly payment: Payment_Status;
  readonly subStatus: Payment_SubStatus_Value;
  readonly transaction: Transaction_Status;
  readonly responseCode: string;
  readonly responseMessage: string;
};

/** The money is taken, or the operation is done. */
export const APPROVED: States = {
  payment: Payment_Status.SUCCEEDED,
  subStatus: Payment_SubStatus_Value.APPROVED,
  transaction: Transaction_Status.SUCCEEDED,
  responseCode: 'SUCCEEDED',
  responseMessage: 'Transaction successful',
};

/** For accounts whose authorizations are shown as such: the money is held, not taken. */
const AUTHORIZED: States = {
  ...APPROVED,
  payment: Payment_Status.PENDING,
  subStatus: Payment_SubStatus_Value.AUTHORIZED,
};

const VERIFIED: States = {
  ...APPROVED,
  payment: Payment_Status.VERIFIED,
  subStatus: Payment_SubStatus_Value.VERIFIED,
};

const REDIRECT: States = {
  payment: Payment_Status.READY_TO_PAY,
  subStatus: Payment_SubStatus_Value.CREATED,
  transaction: Transaction_Status.CREATED,
  responseCode: 'SUCCEEDED',
  responseMessage: 'Transaction successful',
};

/**
 * The provider has yet to confirm, or its answer is unknown, which never counts as failed. Also the state of a claim.
 */
export const WAITING: States = {
  payment: Payment_Status.PENDING,
  subStatus: Payment_SubStatus_Value.PENDING_PROVIDER_CONFIRMATION,
  transaction: Transaction_Status.PENDING,
  responseCode: 'PENDING_PROVIDER_CONFIRMATION',
  responseMessage: 'Transaction waiting confirmation',
};

/** The payer must pass a 3-D Secure challenge. */
const CHALLENGE: States = {
  payment: Payment_Status.PENDING,
  subStatus: Payment_SubStatus_Value.WAITING_ADDITIONAL_STEP,
  transaction: Transaction_Status.PENDING,
  responseCode: 'CHALLENGE_REQUIRED',
  responseMessage: 'Challenge required',
};

const NOT_SENT: States = {
  payment: Payment_Status.ERROR,
  subStatus: Payment_SubStatus_Value.ERROR,
  transaction: Transaction_Status.ERROR,
  responseCode: 'PROVIDER_UNAVAILABLE',
  responseMessage: 'Provider could not be reached',
};

/** The payer did not complete the redirect, or the authorization lapsed. */
const EXPIRED: States = {
  payment: Payment_Status.EXPIRED,
  subStatus: Payment_SubStatus_Value.EXPIRED,
  transaction: Transaction_Status.EXPIRED,
  responseCode: 'EXPIRED',
  responseMessage: 'Payment expired',
};

/** The merchant canceled the payment before its payer acted, and the provider has closed it. */
export const CANCELED_BY_MERCHANT: States = {
  payment: Payment_Status.CANCELED,
  subStatus: Payment_SubStatus_Value.CANCELED,
  transaction: Transaction_Status.EXPIRED,
  responseCode: 'CANCELED_BY_MERCHANT',
  responseMessage: 'Canceled by the merchant',
};

/** State of a cancel that came too late: the payer had paid. */
export const ALREADY_PAID: Pick<States, 'transaction' | 'responseCode' | 'responseMessage'> = {
  transaction: Transaction_Status.DECLINED,
  responseCode: 'ALREADY_PAID',
  responseMessage: 'The payer has already paid',
};

/** A provider declined earlier, and the decline stands: an unsent attempt does not change the payment. */
const NOT_SENT_AFTER_DECLINE: States = {
  ...NOT_SENT,
  payment: Payment_Status.DECLINED,
  subStatus: Payment_SubStatus_Value.DECLINED,
};

/**
 * Returns the code and message of an attempt that its provider refused. @param refused the refused field; '' if
 * unknown.
 */
function refusalOf(refused: string): Pick<States, 'responseCode' | 'responseMessage'> {
  const responseMessage = ['Provider refused the request', refused].filter(Boolean).join(': ');
  return { responseCode: 'REQUEST_REFUSED', responseMessage };
}

/** Facts about an attempt that determine its states. */
export type ShownAttempt = {
  /** PURCHASE, AUTHORIZE or VERIFY. */
  readonly type: Transaction_Type;
  /** The kind of its method: a payer whose card is charged passes a challenge, and any other pays. */
  readonly methodKind: MethodKind | undefined;
  /** An earlier attempt was declined. */
  readonly isDeclinedBefore: boolean;
};

/** THE state table: it maps the outcome of an attempt to the payment's states. */
export function statesOf(outcome: Outcome, { type, methodKind, isDeclinedBefore }: ShownAttempt): States {
  switch (outcome.kind) {
    case 'approved':
      if (type === Transaction_Type.VERIFY) return VERIFIED;
      return type === Transaction_Type.AUTHORIZE ? AUTHORIZED : APPROVED;
    case 'awaits_payer':
      return methodKind === 'CARD' ? CHALLENGE : REDIRECT;
    case 'to_complete':
    case 'pending':
    case 'unknown':
      return WAITING;
    case 'expired':
      return EXPIRED;
    case 'declined': {
      const { code, message } = declineOf(outcome.iso8583Code);
      return {
        payment: Payment_Status.DECLINED,
        subStatus: Payment_SubStatus_Value.DECLINED,
        transaction: Transaction_Status.DECLINED,
        responseCode: code,
        responseMessage: message,
      };
    }
    case 'not_sent': {
      const states = isDeclinedBefore ? NOT_SENT_AFTER_DECLINE : NOT_SENT;
      return outcome.refused === undefined ? states : { ...states, ...refusalOf(outcome.refused) };
    }
    default:
      return assertNever(outcome);
  }
}

/** Codes and messages of an operation that failed after its provider had reported success. */
const FAILED_AFTER_SUCCESS = {
  CAPTURE: { responseCode: 'CAPTURE_FAILED', responseMessage: 'Capture failed at the provider' },
  REFUND: { responseCode: 'REFUND_FAILED', responseMessage: 'Refund failed at the provider' },
} as const;

/** Returns true for a capture that failed after its provider had reported success, according to the record. */
export function hasFailedLate({ responseCode }: Pick<Transaction, 'responseCode'>): boolean {
  return responseCode === FAILED_AFTER_SUCCESS.CAPTURE.responseCode;
}

/**
 * Returns the state of an operation's transaction after an outcome. The payment's own states follow from its books.
 *
 * @param isLateFailure the operation failed after its provider had reported success.
 */
export function transactionStates(
  outcome: Outcome,
  operation: OperationType,
  isLateFailure = false,
): Pick<States, 'transaction' | 'responseCode' | 'responseMessage'> {
  if (isLateFailure && operation !== 'CANCEL') {
    return { transaction: Transaction_Status.DECLINED, ...FAILED_AFTER_SUCCESS[operation] };
  }
  const { PURCHASE: type } = Transaction_Type;
  return statesOf(outcome, { type, methodKind: 'CARD', isDeclinedBefore: false });
}

/** The states shown for a payment. */
export type CurrentStates = { readonly status: Payment_Status; readonly subStatus: Payment_SubStatus_Value };

/**
 * State table of a purchased or authorized payment, according to the later operations on it.
 *
 * @param reported.isShownAsAuthorized the account shows authorizations as such (AUTHORIZE, PENDING / AUTHORIZED).
 * @param reported.dispute the state of its disputes: SUCCEEDED once one is lost, PENDING while one is open.
 * @param reported.opens an open operation that would end the payment: a refund of the full remaining amount, or a
 * cancel.
 */
export function currentStates(
  books: Books,
  reported: {
    readonly isShownAsAuthorized: boolean;
    readonly opens: 'refund' | 'cancel' | undefined;
    readonly dispute?: Transaction_Status | undefined;
  },
): CurrentStates {
  const { REFUNDED, CANCELED, SUCCEEDED, PENDING } = Payment_Status;
  const { PENDING_PROVIDER_CONFIRMATION: CONFIRMING, ...sub } = Payment_SubStatus_Value;
  if (reported.dispute === Transaction_Status.PENDING) {
    return { status: Payment_Status.IN_DISPUTE, subStatus: sub.RECEIVED };
  }
  if (reported.dispute === Transaction_Status.SUCCEEDED) {
    return { status: Payment_Status.CHARGEBACK, subStatus: sub.LOST };
  }
  if (reported.opens === 'refund') return { status: REFUNDED, subStatus: CONFIRMING };
  if (reported.opens === 'cancel') return { status: CANCELED, subStatus: CONFIRMING };
  if (books.refunded > 0n && leftToRefund(books) === 0n) return { status: REFUNDED, subStatus: sub.REFUNDED };
  if (books.refunded > 0n) return { status: SUCCEEDED, subStatus: sub.PARTIALLY_REFUNDED };
  if (!books.isAuthorization) return { status: SUCCEEDED, subStatus: sub.APPROVED };
  if (books.captured === books.amount) return { status: SUCCEEDED, subStatus: sub.CAPTURED };
  if (books.captured > 0n) return { status: SUCCEEDED, subStatus: sub.PARTIALLY_CAPTURED };
  if (books.isReleased) return { status: CANCELED, subStatus: sub.CANCELED };
  return reported.isShownAsAuthorized
    ? { status: PENDING, subStatus: sub.AUTHORIZED }
    : { status: SUCCEEDED, subStatus: sub.APPROVED };
}

/**
 * Returns the transaction that a payment shows: the last one or, if a declined payment could not be sent elsewhere
 * afterwards, the last one that a provider declined.
 */
export function shownTransaction(record: Payment): Transaction | undefined {
  const { status, transactionsHistory } = record;
  const isDeclined = ({ status }: Transaction) => status === Transaction_Status.DECLINED;
  const declined = status === Payment_Status.DECLINED ? transactionsHistory.findLast(isDeclined) : undefined;
  return declined ?? transactionsHistory.at(-1);
}
