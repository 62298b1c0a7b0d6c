import { create, type JsonObject } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import type { LookUp, Operation, OperationKind } from '#src/connectors/connector.ts';
import type { DeclineMeaning } from '#src/connectors/decline.ts';
import type { HttpResult } from '#src/connectors/http-client.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import {
  alarmingOutcome,
  answeredAboutAnother,
  approvedOutcome,
  bodyOf,
  differingMoney,
  fromResult,
  isHttpUrl,
  isJsonObject,
  isTextLike,
  objectAt,
  outcomeOfStatus,
  textOf,
  unknownOutcome,
  withoutFields,
} from '#src/connectors/provider-answer.ts';
import { meaningOf, meaningOfError } from './decline-codes.ts';
import { fromAdyenAmount } from './money.ts';
import { operationReference } from './to-provider.ts';

/** Names under which the record shows a connection's answers. */
export type ShownAs = { readonly providerId: string; readonly merchantAccount: string };

/** Matches Adyen's ids of payments and of operations on them. */
export const PSP_REFERENCE = /^[A-Za-z0-9_-]{1,64}$/;
const AUTHORIZATION_CODE = /^[A-Za-z0-9]{1,6}$/;
const NETWORK_TRANSACTION_ID = /^[A-Za-z0-9]{1,64}$/;
const ERROR_TYPES: ReadonlySet<string> = new Set(['validation', 'security', 'configuration', 'internal']);
/** A request with the same key is done or in progress, and counts instead of this one. */
const ALREADY_PROCESSED = 704;
/** The issuer demands authentication of the cardholder. */
const AUTHENTICATION_WANTED: DeclineMeaning = { iso8583Code: '1A' };
/** Fields that the record does not show: the one that lets a browser act on the payment, and a signature. */
const NOT_SHOWN: ReadonlySet<string> = new Set(['action', 'hmacSignature']);

/** Reads the outcome of a payment from the HTTP result of its request. */
export function fromPayment(result: HttpResult, attempt: PaymentAttempt, shownAs: ShownAs): Outcome {
  const isCard = attempt.method.kind === 'card';
  return fromAnswer(result, shownAs, isCard, (body) => readPayment(body, attempt, isCard, shownAs));
}

/**
 * Reads the outcome of a payment from the HTTP result of its details. Anybody who can write the payer's return query
 * can insert another payment's: an answer that names another says nothing about ours. One that names none may be ours.
 */
export function fromDetails(result: HttpResult, query: LookUp, shownAs: ShownAs): Outcome {
  return fromAnswer(result, shownAs, false, (body) => {
    const { merchantReference } = body;
    if (merchantReference === query.transactionId) {
      return readPayment(body, query, query.of.kind === 'card', shownAs);
    }
    if (merchantReference === undefined) return unknownOutcome('the details do not say whose they are');
    return { kind: 'not_sent', because: 'turned_away', detail: "the details are another payment's" };
  });
}

function readPayment(
  body: JsonObject,
  asked: Pick<PaymentAttempt, 'transactionId' | 'money'>,
  isCard: boolean,
  shownAs: ShownAs,
): Outcome {
  const { merchantReference, amount, resultCode, pspReference } = body;
  if (merchantReference !== undefined && merchantReference !== asked.transactionId) {
    return answeredAboutAnother('merchantReference');
  }
  const difference = amount === undefined ? undefined : differingMoney(fromAdyenAmount(amount), asked.money);
  if (difference !== undefined) return answeredAboutAnother(difference);
  const reported = {
    providerData: providerDataOf(body, textOf(resultCode), shownAs),
    ...(isTextLike(pspReference, PSP_REFERENCE) && { reference: pspReference }),
  };
  return readResultCode(body, reported, isCard) ?? contradiction(reported.providerData);
}

/** Returns true if Adyen accepted a technical cancel; a notification reports its outcome. */
export function isTechnicalCancelTaken(
  result: HttpResult,
  transactionId: string,
  { merchantAccount }: ShownAs,
): boolean {
  const body = bodyOf(result, 201);
  const isOurs = body?.paymentReference === transactionId && body.merchantAccount === merchantAccount;
  return isOurs && body.status === 'received';
}

/** Reads the HTTP result of a capture, a cancel or a refund: at best, Adyen confirms that it has the request. */
export function fromOperation(
  result: HttpResult,
  kind: OperationKind,
  operation: Pick<Operation, 'transactionId' | 'money' | 'payment'>,
  shownAs: ShownAs,
): Outcome {
  return fromAnswer(result, shownAs, false, (body) => {
    const { amount, pspReference } = body;
    const expected = {
      merchantAccount: shownAs.merchantAccount,
      paymentPspReference: operation.payment.reference,
      reference: operationReference(kind, operation.transactionId),
    };
    const other = Object.entries(expected).find(([name, value]) => body[name] !== value)?.[0];
    if (other !== undefined) return answeredAboutAnother(other);
    const difference =
      kind === 'cancel' ? undefined : differingMoney(fromAdyenAmount(amount), operation.money);
    if (difference !== undefined) return answeredAboutAnother(difference);
    const providerData = providerDataOf(body, textOf(body.status), shownAs);
    if (body.status !== 'received' || !isTextLike(pspReference, PSP_REFERENCE)) {
      return contradiction(providerData);
    }
    return { kind: 'pending', providerData, reference: pspReference };
  });
}

/** Returns true if Adyen answered a probe with the list of the account's payment methods. */
export function isPaymentMethods(result: HttpResult): boolean {
  return Array.isArray(bodyOf(result)?.paymentMethods);
}

/** Makes the record's provider data from an answer or a notification. @param status in Adyen's words. */
export function providerDataOf(
  body: JsonObject,
  status: string,
  { providerId, merchantAccount }: ShownAs,
): ProviderData {
  return create(ProviderDataSchema, {
    id: providerId,
    transactionId: textOf(body.pspReference),
    accountId: merchantAccount,
    status,
    responseCode: textOf(body.refusalReasonCode) || textOf(body.errorCode),
    responseMessage: textOf(body.refusalReason) || textOf(body.message),
    rawResponse: withoutFields(body, NOT_SHOWN),
  });
}

/** @param read gets the body of a success. @param isCard true if errors about the card are declines. */
function fromAnswer(
  result: HttpResult,
  shownAs: ShownAs,
  isCard: boolean,
  read: (body: JsonObject) => Outcome,
): Outcome {
  // Adyen's word that it did nothing, and that the same key may be used again.
  const isTransient = result.kind === 'answer' && result.headers['transient-error'] === 'true';
  if (isTransient && result.status === 500) {
    return { kind: 'not_sent', detail: 'the provider did not process it: 500', because: 'unreachable' };
  }
  return fromResult(result, (body, { status }) => fromError(status, body, isCard, shownAs) ?? read(body));
}

/** Reads a status other than success together with its error; undefined for a success. */
function fromError(status: number, body: JsonObject, isCard: boolean, shownAs: ShownAs): Outcome | undefined {
  const errorCode = textOf(body.errorCode);
  const errorType = textOf(body.errorType);
  const isAdyens = body.status === status && ERROR_TYPES.has(errorType);
  if (isAdyens && Number(errorCode) === ALREADY_PROCESSED) {
    return unknownOutcome(`the provider's answer: ${status} ${errorCode}`);
  }
  // Adyen validates first: a request that fails validation was not processed, whatever the status.
  const isInvalid = status === 500 && isAdyens && errorType === 'validation';
  // Adyen names a field only in its message, which may quote values as well.
  const field = /\bfield '?([A-Za-z][\w.]*)/i.exec(textOf(body.message))?.[1];
  const outcome = outcomeOfStatus(isInvalid ? 422 : status, isAdyens, field ?? errorCode);
  if (outcome?.kind !== 'not_sent') return outcome;
  const meaning = isCard && errorType === 'validation' ? meaningOfError(errorCode) : undefined;
  if (meaning) return declined(meaning, { providerData: providerDataOf(body, errorType, shownAs) });
  const detail = `the provider refused the request: ${status} ${errorCode} ${textOf(body.message)}`;
  return { ...outcome, detail };
}

type Reported = { readonly providerData: ProviderData; readonly reference?: string };

/** @returns undefined if the answer contradicts itself. */
function readResultCode(body: JsonObject, reported: Reported, isCard: boolean): Outcome | undefined {
  const resultCode = textOf(body.resultCode);
  const { networkTxReference, refusalReasonRaw } = additionalDataOf(body);
  switch (resultCode) {
    case 'Authorised':
      if (reported.reference === undefined) return undefined;
      return {
        ...approvedOutcome(reported, authorizationCodeOf(body)),
        ...(isTextLike(networkTxReference, NETWORK_TRANSACTION_ID) && {
          networkTransactionId: networkTxReference,
        }),
      };
    case 'Refused':
    case 'Cancelled':
    case 'Error': {
      const refusal = { code: textOf(body.refusalReasonCode), text: textOf(body.refusalReason) };
      return declined(meaningOf({ resultCode, ...refusal, raw: textOf(refusalReasonRaw) }), reported);
    }
    case 'RedirectShopper':
    case 'ChallengeShopper':
    case 'IdentifyShopper': {
      // Authorization has to wait for the cardholder's authentication: if there is no page for that, the card is
      // declined.
      const redirect = readRedirect(body, reported);
      return redirect ?? (isCard ? declined(AUTHENTICATION_WANTED, reported) : undefined);
    }
    case 'PresentToShopper':
    case 'Pending':
    case 'Received':
      return { kind: 'pending', ...reported };
    case 'PartiallyAuthorised':
      return alarmingOutcome('only a part was authorized', reported.providerData);
    default:
      return undefined;
  }
}

function readRedirect({ action }: JsonObject, reported: Reported): Outcome | undefined {
  if (!isJsonObject(action) || action.type !== 'redirect' || action.method === 'POST') return undefined;
  const { url } = action;
  return isHttpUrl(url) ? { kind: 'redirect', ...reported, redirectUrl: url } : undefined;
}

function declined(meaning: DeclineMeaning, reported: Reported): Outcome {
  reported.providerData.iso8583ResponseCode = meaning.iso8583Code;
  return { kind: 'declined', ...reported, ...meaning };
}

function contradiction(providerData: ProviderData): Outcome {
  return unknownOutcome('the answer contradicts itself', providerData);
}

/** Returns the additional fields of an answer, each of which an account may be set to receive. */
export function additionalDataOf(body: JsonObject): JsonObject {
  return objectAt(body, 'additionalData');
}

/** Returns the issuer's authorization code; '' if there is none. */
export function authorizationCodeOf(body: JsonObject): string {
  const { authCode } = additionalDataOf(body);
  return isTextLike(authCode, AUTHORIZATION_CODE) ? authCode : '';
}
