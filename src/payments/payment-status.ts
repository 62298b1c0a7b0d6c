import { Payment_Status, Payment_SubStatus_Value, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import { assertNever, type Outcome } from '#src/connectors/connector.ts';
import { declineOf } from '#src/connectors/decline.ts';

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

/** Nobody followed the redirect, or the authorization lapsed. */
const EXPIRED: States = {
  payment: Payment_Status.EXPIRED,
  subStatus: Payment_SubStatus_Value.EXPIRED,
  transaction: Transaction_Status.EXPIRED,
  responseCode: 'EXPIRED',
  responseMessage: 'Payment expired',
};

/** THE state table: what becomes of a payment, by what is known of its attempt. */
export function statesOf(outcome: Outcome): States {
  switch (outcome.kind) {
    case 'approved':
      return APPROVED;
    case 'redirect':
      return REDIRECT;
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
    case 'not_sent':
      return NOT_SENT;
    default:
      return assertNever(outcome);
  }
}
