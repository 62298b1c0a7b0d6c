import { Payment_Status, Payment_SubStatus_Value, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import { assertNever, type Outcome } from '#src/connectors/connector.ts';

/** What an outcome makes of a payment and its transaction. */
export type States = {
  readonly payment: Payment_Status;
  readonly subStatus: Payment_SubStatus_Value;
  readonly transaction: Transaction_Status;
  readonly responseCode: string;
  readonly responseMessage: string;
};

const APPROVED: States = {
  payment: Payment_Status.SUCCEEDED,
  subStatus: Payment_SubStatus_Value.APPROVED,
  transaction: Transaction_Status.SUCCEEDED,
  responseCode: 'SUCCEEDED',
  responseMessage: 'Transaction successful',
};

const REDIRECT: States = {
  payment: Payment_Status.READY_TO_PAY,
  subStatus: Payment_SubStatus_Value.CREATED,
  transaction: Transaction_Status.CREATED,
  responseCode: 'SUCCEEDED',
  responseMessage: 'Transaction successful',
};

/** The provider has yet to confirm, or its answer is not known: unknown is never "failed". Also the state of a claim. */
export const WAITING: States = {
  payment: Payment_Status.PENDING,
  subStatus: Payment_SubStatus_Value.PENDING_PROVIDER_CONFIRMATION,
  transaction: Transaction_Status.PENDING,
  responseCode: 'PENDING_PROVIDER_CONFIRMATION',
  responseMessage: 'Transaction waiting confirmation',
};

const NOT_SENT: States = {
  payment: Payment_Status.ERROR,
  subStatus: Payment_SubStatus_Value.ERROR,
  transaction: Transaction_Status.ERROR,
  responseCode: 'PROVIDER_UNAVAILABLE',
  responseMessage: 'Provider could not be reached',
};

/** THE state table: what becomes of a payment, by what is known of its attempt. */
export function statesOf(outcome: Outcome): States {
  switch (outcome.kind) {
    case 'approved':
      return APPROVED;
    case 'redirect':
      return REDIRECT;
    case 'pending':
    case 'unknown':
      return WAITING;
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
    case 'not_sent':
      return NOT_SENT;
    default:
      return assertNever(outcome);
  }
}

/** A decline, told in the merchant's terms. A hard one is never retried anywhere; a soft one may pass elsewhere or later. */
export type Decline = { readonly code: string; readonly message: string; readonly hard: boolean };

const soft = (code: string, message: string): Decline => ({ code, message, hard: false });
const hard = (code: string, message: string): Decline => ({ code, message, hard: true });

const LIMIT_EXCEEDED = soft('LIMIT_EXCEEDED', 'Card limit exceeded');
const EXPIRED_CARD = hard('EXPIRED_CARD', 'Expired card');
const INVALID_SECURITY_CODE = hard('INVALID_SECURITY_CODE', 'Invalid security code');
const ACQUIRER_CONTINGENCY = soft('ACQUIRER_CONTINGENCY', 'Acquirer or issuer temporarily unavailable');
const DECLINED_BY_BANK = soft('DECLINED_BY_BANK', 'Declined by bank');

/** Decline codes by ISO 8583 response code (field 39). */
const DECLINES = new Map<string, Decline>([
  ['05', soft('DO_NOT_HONOR', 'Do not honor')],
  ['14', hard('INVALID_CARD_NUMBER', 'Invalid card number')],
  ['22', ACQUIRER_CONTINGENCY],
  ['33', EXPIRED_CARD],
  ['41', hard('REPORTED_LOST', 'Card reported lost')],
  ['43', hard('REPORTED_STOLEN', 'Card reported stolen')],
  ['51', soft('INSUFFICIENT_FUNDS', 'Insufficient funds')],
  ['54', EXPIRED_CARD],
  ['57', hard('USER_RESTRICTION', 'Transaction not permitted to cardholder')],
  ['59', hard('FRAUD_SUSPECTED', 'Suspected fraud')],
  ['61', LIMIT_EXCEEDED],
  ['62', soft('RESTRICTED_BY_BANK', 'Card restricted by bank')],
  ['65', LIMIT_EXCEEDED],
  // The issuer may have said yes, too late to be heard: nobody else is to be asked.
  ['68', hard('PROVIDER_TIMEOUT', 'Issuer did not answer in time')],
  ['80', ACQUIRER_CONTINGENCY],
  ['82', INVALID_SECURITY_CODE],
  ['90', ACQUIRER_CONTINGENCY],
  ['91', ACQUIRER_CONTINGENCY],
  ['92', ACQUIRER_CONTINGENCY],
  ['96', ACQUIRER_CONTINGENCY],
  ['N7', INVALID_SECURITY_CODE],
]);

/** What an ISO 8583 response code means as a decline; one that the table does not have is a soft DECLINED_BY_BANK. */
export function declineOf(iso8583Code: string): Decline {
  return DECLINES.get(iso8583Code.toUpperCase()) ?? DECLINED_BY_BANK;
}
