import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { HttpResult } from '../kit/http-client.ts';
import {
  alarmingOutcome,
  answeredAboutAnother,
  approvedOutcome,
  bodyOf,
  differingMoney,
  fromResult,
  isSuccess,
  isTextLike,
  unknownOutcome,
} from '../kit/provider-answer.ts';
import { chargesCard, isLocalMethod, type PaymentAttempt } from '../port/attempt.ts';
import type { Bank, LookUp, Operation, OperationKind } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import {
  type Answer,
  namesOf,
  PSP_REFERENCE,
  providerDataOf,
  readAnswer,
  readPaymentMethods,
  type ShownAs,
} from './answers.ts';
import { readInstructions } from './instructions.ts';
import { fromAdyenAmount } from './money.ts';
import { declined, fromRefusal, fromTransientError, meaningOf, type Reported } from './refusals.ts';
import { withCard } from './reported-card.ts';
import { operationReference } from './to-provider.ts';

/** The method of an attempt: a card or the token of a wallet, a local method, or one whose payer is redirected. */
type PaidBy = 'card' | 'code' | 'page';

/** Reads the outcome of a payment from the HTTP result of its request. */
export function fromPayment(result: HttpResult, attempt: PaymentAttempt, shownAs: ShownAs): Outcome {
  const { method } = attempt;
  const paidBy = chargesCard(method) ? 'card' : isLocalMethod(method) ? 'code' : 'page';
  return fromAnswer(result, shownAs, paidBy === 'card', (answer) =>
    readPayment(answer, attempt, paidBy, shownAs),
  );
}

/**
 * Reads the outcome of a payment from the HTTP result of its details request. Anyone can forge the payer's return query
 * with another payment's data, so a response that names another payment proves nothing about ours. A response that
 * names no payment may be about ours.
 */
export function fromDetails(result: HttpResult, query: LookUp, shownAs: ShownAs): Outcome {
  return fromAnswer(result, shownAs, false, (answer) => {
    const { merchantReference } = answer;
    if (merchantReference === query.transactionId) {
      // A payer who returns has been shown everything.
      return readPayment(answer, query, query.of.kind === 'CARD' ? 'card' : 'page', shownAs);
    }
    if (merchantReference === undefined)
      return unknownOutcome('the response to the details request names no payment');
    return { kind: 'not_sent', because: 'turned_away', detail: 'the details belong to another payment' };
  });
}

function readPayment(
  answer: Answer,
  asked: Pick<PaymentAttempt, 'transactionId' | 'money'>,
  paidBy: PaidBy,
  shownAs: ShownAs,
): Outcome {
  const { merchantReference, resultCode, pspReference, action } = answer;
  const amount = answer.amount ?? action.initialAmount;
  if (merchantReference !== undefined && merchantReference !== asked.transactionId) {
    return answeredAboutAnother('merchantReference');
  }
  const difference = amount === undefined ? undefined : differingMoney(fromAdyenAmount(amount), asked.money);
  if (difference !== undefined) return answeredAboutAnother(difference);
  const reported = {
    providerData: providerDataOf(answer, resultCode, shownAs),
    ...namesOf(pspReference),
  };
  return readResultCode(answer, reported, paidBy) ?? contradiction(reported.providerData);
}

/** Returns true if Adyen accepted a technical cancel. A notification reports the outcome. */
export function isTechnicalCancelTaken(
  result: HttpResult,
  transactionId: string,
  { merchantAccount }: ShownAs,
): boolean {
  const { paymentReference, merchantAccount: account, status } = readAnswer(bodyOf(result, 201));
  return paymentReference === transactionId && account === merchantAccount && status === 'received';
}

/** Reads the HTTP result of a capture, a cancel or a refund: at best, Adyen confirms receipt of the request. */
export function fromOperation(
  result: HttpResult,
  kind: OperationKind,
  operation: Pick<Operation, 'transactionId' | 'money' | 'payment'>,
  shownAs: ShownAs,
): Outcome {
  return fromAnswer(result, shownAs, false, (answer) => {
    const { amount, pspReference, status } = answer;
    const expected = {
      merchantAccount: shownAs.merchantAccount,
      paymentPspReference: operation.payment.reference,
      reference: operationReference(kind, operation.transactionId),
    };
    const names = ['merchantAccount', 'paymentPspReference', 'reference'] as const;
    const other = names.find((name) => answer[name] !== expected[name]);
    if (other !== undefined) return answeredAboutAnother(other);
    const difference =
      kind === 'cancel' ? undefined : differingMoney(fromAdyenAmount(amount), operation.money);
    if (difference !== undefined) return answeredAboutAnother(difference);
    const providerData = providerDataOf(answer, typeof status === 'string' ? status : '', shownAs);
    if (status !== 'received' || !isTextLike(pspReference, PSP_REFERENCE)) {
      return contradiction(providerData);
    }
    return { kind: 'pending', providerData, ...namesOf(pspReference) };
  });
}

/** Returns true if Adyen responded to a probe with the account's payment methods. */
export function isPaymentMethods(result: HttpResult): boolean {
  return Array.isArray(bodyOf(result)?.paymentMethods);
}

/** Returns the banks that Adyen names as the issuers of a payment method; none if it cannot be read. */
export function banksIn(result: HttpResult, method: string): readonly Bank[] {
  const { paymentMethods } = readPaymentMethods(bodyOf(result));
  return paymentMethods
    .filter(({ type }) => type === method)
    .flatMap(({ issuers }) => issuers)
    .flatMap(({ id, name, disabled }) => (id && name && disabled !== true ? [{ id, name }] : []));
}

/** @param read reads a success response. @param isCard true if errors about the card are declines. */
function fromAnswer(
  result: HttpResult,
  shownAs: ShownAs,
  isCard: boolean,
  read: (answer: Answer) => Outcome,
): Outcome {
  const notProcessed = fromTransientError(result);
  if (notProcessed) return notProcessed;
  return fromResult(result, (body, { status }) => {
    const answer = readAnswer(body);
    return isSuccess(status) ? read(answer) : fromRefusal(status, answer, isCard, shownAs);
  });
}

/** @returns undefined if the response contradicts itself. */
function readResultCode(answer: Answer, reported: Reported, paidBy: PaidBy): Outcome | undefined {
  const { resultCode, refusalReasonCode: code, refusalReason: text, additionalData } = answer;
  const { authCode = '', networkTxReference: networkTransactionId } = additionalData;
  const { refusalReasonRaw: raw, merchantAdviceCode: adviceCode } = additionalData;
  switch (resultCode) {
    case 'Authorised':
      if (reported.providerPaymentId === undefined) return undefined;
      return {
        ...withCard(approvedOutcome(reported, authCode), answer),
        ...(networkTransactionId !== undefined && { networkTransactionId }),
      };
    case 'Refused':
    case 'Cancelled':
    case 'Error':
      return declined(meaningOf({ resultCode, code, text, raw, adviceCode }), reported);
    case 'RedirectShopper':
    case 'ChallengeShopper':
    case 'IdentifyShopper': {
      const redirect = readRedirect(answer, reported);
      return redirect ?? (paidBy === 'card' ? declined(meaningOf({ resultCode }), reported) : undefined);
    }
    case 'PresentToShopper':
    case 'Pending':
      return (paidBy === 'code' && readInstructions(answer, reported)) || { kind: 'pending', ...reported };
    case 'Received':
      return { kind: 'pending', ...reported };
    case 'PartiallyAuthorised':
      return alarmingOutcome('only part of the amount was authorized', reported.providerData);
    default:
      return undefined;
  }
}

function readRedirect({ action: { type, method, url } }: Answer, reported: Reported): Outcome | undefined {
  if (type !== 'redirect' || method === 'POST' || url === undefined) return undefined;
  return { kind: 'awaits_payer', ...reported, show: { page: url } };
}

function contradiction(providerData: ProviderData): Outcome {
  return unknownOutcome('the response contradicts itself', providerData);
}
