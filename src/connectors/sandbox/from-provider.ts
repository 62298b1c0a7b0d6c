import type { HttpResult } from '../kit/http-client.ts';
import { approvedOutcome, correcting, unknownOutcome } from '../kit/provider-answer.ts';
import { declineByScheme } from '../kit/refusal.ts';
import { kindOf, type PaymentAttempt } from '../port/attempt.ts';
import type { Corrections, LookUp, Operation, OperationKind } from '../port/connector.ts';
import { assertNever, type Outcome, type ReportedCard } from '../port/outcome.ts';
import type { Answer } from './answers.ts';
import { readCode } from './codes.ts';
import {
  type Asked,
  DECLINED,
  RESPONSE_CODE,
  type ReadOutcome,
  type Reported,
  readLookUp,
  readRefusal,
  readResult,
  redirectTo,
} from './read-answer.ts';
import { completionKey } from './to-provider.ts';

/** ISO 8583 response code. */
const APPROVED = '00';

/** The provider's names for the objects that our requests create. */
const OBJECTS = {
  CARD: 'charge',
  PAYER_PAGE: 'wallet_order',
  PAYER_CODE: 'code',
  WALLET: 'wallet_enrollment',
  capture: 'capture',
  cancel: 'cancellation',
  refund: 'refund',
} as const;

/** Reads the outcome of an attempt from its HTTP result. */
export function fromPayment(result: HttpResult, attempt: PaymentAttempt, providerId: string): Outcome {
  const { method } = attempt;
  return readResult(
    result,
    askedOf(attempt, { ...method, kind: kindOf(method) }),
    providerId,
    (answer, reported, httpStatus) => {
      switch (method.by) {
        case 'card':
        case 'wallet_token':
          return readCharge(answer, reported, httpStatus, method);
        case 'payer':
          // A payer who was never sent to the order, or shown the code, cannot have paid it.
          if (method.show === 'instructions')
            return answer.status === 'created' || answer.status === 'declined'
              ? readCode(answer, reported, httpStatus === DECLINED)
              : undefined;
          return answer.status === 'created' ? readWallet(answer, reported, httpStatus) : undefined;
        case 'wallet':
          return readWallet(answer, reported, httpStatus);
        default:
          return assertNever(method);
      }
    },
  );
}

/** Reads the outcome of a capture, a cancel or a refund from its HTTP result. */
export function fromOperation(
  result: HttpResult,
  kind: OperationKind,
  operation: Operation,
  providerId: string,
): Outcome {
  return readResult(result, askedOf(operation, { kind }), providerId, readOperation);
}

/**
 * Reads the outcome of a completion from its HTTP result. The order's identifier remains the name of the transaction.
 */
export function fromCompletion(result: HttpResult, query: LookUp, providerId: string): Outcome {
  const asked = {
    idempotencyKey: completionKey(query.transactionId),
    money: query.money,
    object: 'completion',
  };
  return readResult(result, asked, providerId, (answer, reported, httpStatus) => {
    const { payment } = answer;
    const ofOrder = { ...reported, reference: payment, providerPaymentId: payment };
    const outcome = readOperation(answer, ofOrder, httpStatus);
    // The order may already be completed or expired: its own look-up decides.
    return outcome?.kind === 'declined' && answer.failure_code !== 'declined'
      ? unknownOutcome('the order cannot be completed: a look-up has to decide')
      : outcome;
  });
}

/** Reads a transaction's outcome from the result of a look-up. */
export function fromLookUp(result: HttpResult, query: LookUp, providerId: string): Outcome {
  const { of } = query;
  return readLookUp(result, askedOf(query, of), providerId, (answer, reported, httpStatus) => {
    switch (of.kind) {
      case 'CARD':
        // An authorization may have been captured or canceled since.
        return readCharge(answer, reported, httpStatus, {
          ...of,
          capture: of.capture || answer.captured === true,
        });
      case 'PAYER_CODE':
        return readCode(answer, reported, httpStatus === DECLINED);
      case 'PAYER_PAGE':
      case 'WALLET':
        return readWallet(answer, reported, httpStatus);
      case 'capture':
      case 'cancel':
      case 'refund':
        return readOperation(answer, reported, httpStatus);
      default:
        return assertNever(of);
    }
  });
}

function askedOf(
  { transactionId, money }: Pick<LookUp, 'transactionId' | 'money'>,
  of: { readonly kind: keyof typeof OBJECTS; readonly verify?: boolean },
): Asked {
  return { idempotencyKey: transactionId, money, object: of.verify ? 'verification' : OBJECTS[of.kind] };
}

function readCharge(
  answer: Answer,
  reported: Reported,
  httpStatus: number,
  asked: { readonly capture: boolean; readonly verify: boolean },
): Outcome | undefined {
  const { status, response_code: code, authorization_code: authorizationCode } = answer;
  const { retrieval_reference_number: retrievalReferenceNumber } = answer;
  const { network_transaction_id: networkTransactionId } = answer;
  if (status === 'challenge_required') return redirectTo(answer.challenge_url, reported);
  if (status === 'pending') return { kind: 'pending', ...reported };
  if (status === 'expired') return { kind: 'expired', ...reported };
  if (!RESPONSE_CODE.test(code)) return undefined;
  const captured = answer.captured === true;
  if (status === 'declined' && code !== APPROVED && !captured) {
    return { kind: 'declined', ...reported, ...declineByScheme(code) };
  }
  // A canceled charge was approved before; the cancellation is the outcome of another transaction.
  const isApproved = (status === 'approved' || status === 'canceled') && code === APPROVED;
  if (
    isApproved &&
    httpStatus !== DECLINED &&
    (asked.verify || captured === asked.capture) &&
    authorizationCode !== undefined &&
    retrievalReferenceNumber !== undefined
  ) {
    return {
      kind: 'approved',
      ...reported,
      authorizationCode,
      retrievalReferenceNumber,
      ...(networkTransactionId !== undefined && { networkTransactionId }),
      ...(answer.card_brand !== undefined && { card: cardBehind(answer) }),
    };
  }
  return undefined;
}

/** Returns the card behind a wallet's token. */
function cardBehind(answer: Answer): ReportedCard {
  return {
    brand: answer.card_brand,
    lastFour: answer.card_last_four,
    expirationMonth: answer.card_exp_month,
    expirationYear: answer.card_exp_year,
    type: answer.card_funding,
  };
}

function readWallet(answer: Answer, reported: Reported, httpStatus: number): Outcome | undefined {
  const { status, checkout_url } = answer;
  if (httpStatus === DECLINED) return undefined;
  switch (status) {
    case 'created':
      return redirectTo(checkout_url, reported);
    case 'payer_approved':
      return { kind: 'to_complete', ...reported };
    case 'pending':
      return { kind: 'pending', ...reported };
    case 'paid':
      return approvedOutcome(reported);
    default:
      return readRefusal(status, reported);
  }
}

const OPERATION = { failed: ['succeeded'], succeeded: ['failed'] };

/** The provider's corrections: a capture or a refund may fail after it succeeded, and be made again. */
export const CORRECTIONS: Corrections = { payment: {}, capture: OPERATION, refund: OPERATION };

const readOperation: ReadOutcome = (answer, reported, httpStatus) => {
  const { object, status, response_code: code } = answer;
  const isCorrected = object === OBJECTS.capture || object === OBJECTS.refund;
  const corrects = isCorrected ? correcting(OPERATION, status) : {};
  if (!RESPONSE_CODE.test(code)) return undefined;
  if (status === 'failed' && code !== APPROVED)
    return { kind: 'declined', ...reported, ...corrects, ...declineByScheme(code) };
  if (httpStatus === DECLINED || code !== APPROVED) return undefined;
  if (status === 'pending') return { kind: 'pending', ...reported };
  return status === 'succeeded' ? approvedOutcome({ ...reported, ...corrects }) : undefined;
};
