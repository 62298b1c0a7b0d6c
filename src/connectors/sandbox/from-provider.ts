import { create, type JsonObject } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { AttemptMethod } from '#src/connectors/attempt.ts';
import { assertNever, type LookUp, type Outcome } from '#src/connectors/connector.ts';
import type { HttpResult } from '#src/connectors/http-client.ts';
import {
  answeredAboutAnother,
  differingMoney,
  isHttpUrl,
  isJsonObject,
  isTextLike,
  outcomeOfStatus,
  readJsonObject,
  readMoney,
  textOf,
  unknownOutcome,
} from '#src/connectors/provider-answer.ts';

/** The fields of the provider's answers that are shown in `raw_response`; anything else an answer holds is dropped. */
const SHOWN_FIELDS = [
  'object',
  'id',
  'idempotency_key',
  'account',
  'acquirer',
  'status',
  'response_code',
  'response_message',
  'authorization_code',
  'retrieval_reference_number',
  'amount',
  'currency',
  'captured',
  'installments',
  'card_iin',
  'card_last_four',
  'order_item_count',
  'airline_leg_count',
  'wallet',
  'card_type',
  'checkout_url',
  'created_at',
];

const ID = /^[a-z]{2}_[0-9a-f-]{36}$/;
/** ISO 8583 fields 37, 38 and 39. */
const RETRIEVAL_REFERENCE_NUMBER = /^[A-Z0-9]{12}$/;
const AUTHORIZATION_CODE = /^[A-Z0-9]{6}$/;
const RESPONSE_CODE = /^[A-Z0-9]{2}$/;
const APPROVED = '00';
/** The HTTP status of a declined charge. */
const DECLINED = 402;

const OBJECTS: Readonly<Record<AttemptMethod['kind'], string>> = {
  card: 'charge',
  wallet_redirect: 'wallet_order',
  wallet_enrollment: 'wallet_enrollment',
};

/**
 * What an attempt's HTTP result says of it. Strict: an answer counts only if all of it is as it must be for this very
 * attempt (key, kind, amount, currency); else the outcome is `unknown`, since the money may have moved.
 *
 * A refusal (400, 401, 403, …) with the provider's own error body is `not_sent`: the provider says that it did not take
 * the request up, so nothing happened and the attempt may be made elsewhere. The same status without that body, from a
 * proxy in between say, is `unknown`. So is a 409: something else happened under our key.
 */
export function fromProvider(result: HttpResult, attempt: AskedAttempt, providerId: string): Outcome {
  if (result.kind === 'not_sent') return result;
  if (result.kind === 'unknown') return { ...result, providerData: undefined };
  return fromAnswer(result, attempt, providerId);
}

/** What an answer is read against; a PaymentAttempt is one. */
export type AskedAttempt = Pick<LookUp, 'transactionId' | 'money'> & {
  readonly method:
    | { readonly kind: 'card'; readonly capture: boolean }
    | { readonly kind: 'wallet_redirect' | 'wallet_enrollment' };
};

/**
 * What the result of a look-up says of an attempt. Only an answer says anything: that the provider could not be asked is
 * not its word.
 */
export function fromLookUp(result: HttpResult, attempt: AskedAttempt, providerId: string): Outcome {
  if (result.kind !== 'answer') return unknownOutcome(result.detail);
  if (isUnheardOf(result)) return unknownOutcome('the provider has not heard of it');
  const answer = readJsonObject(result.body);
  if (isClosed(result.status, answer, attempt))
    return { kind: 'not_sent', detail: 'the provider closed it unheard', because: 'turned_away' };
  const outcome = fromAnswer(result, attempt, providerId);
  return outcome.kind === 'not_sent' ? unknownOutcome(outcome.detail) : outcome;
}

/** Whether the result of a look-up is the provider's word that it knows nothing under that key. */
export function isUnheardOf(result: HttpResult): boolean {
  if (result.kind !== 'answer' || result.status !== 404) return false;
  const answer = readJsonObject(result.body);
  return answer !== undefined && isErrorBody(answer);
}

function isClosed(status: number, answer: JsonObject | undefined, attempt: AskedAttempt): boolean {
  return status === 200 && answer?.object === 'closed' && answer.idempotency_key === attempt.transactionId;
}

function fromAnswer(
  result: Extract<HttpResult, { kind: 'answer' }>,
  attempt: AskedAttempt,
  providerId: string,
): Outcome {
  const { status } = result;
  const answer = readJsonObject(result.body);
  if (!answer) return unknownOutcome(`the answer cannot be read: ${status}`);
  const refusal = status === DECLINED ? undefined : outcomeOfStatus(status, isErrorBody(answer));
  if (refusal) return refusal;

  if (answer.object !== OBJECTS[attempt.method.kind] || !isTextLike(answer.id, ID)) {
    return unknownOutcome('the answer is of another kind than was asked for');
  }
  const difference = differenceOf(answer, attempt);
  if (difference !== undefined) return answeredAboutAnother(difference);
  const providerData = providerDataOf(answer, providerId);
  return (
    readOutcome(answer, status, attempt.method, providerData) ??
    unknownOutcome('the answer contradicts itself', providerData)
  );
}

function readOutcome(
  answer: JsonObject,
  httpStatus: number,
  method: AskedAttempt['method'],
  providerData: ProviderData,
): Outcome | undefined {
  switch (method.kind) {
    case 'card':
      return readCharge(answer, httpStatus, method.capture, providerData);
    case 'wallet_redirect': {
      const redirectUrl = answer.checkout_url;
      if (httpStatus === DECLINED || answer.status !== 'created' || !isHttpUrl(redirectUrl)) return undefined;
      return { kind: 'redirect', providerData, redirectUrl };
    }
    case 'wallet_enrollment':
      return httpStatus !== DECLINED && answer.status === 'pending'
        ? { kind: 'pending', providerData }
        : undefined;
    default:
      return assertNever(method);
  }
}

function readCharge(
  answer: JsonObject,
  httpStatus: number,
  capture: boolean,
  providerData: ProviderData,
): Outcome | undefined {
  const { status, response_code, authorization_code, retrieval_reference_number, captured } = answer;
  if (!isTextLike(response_code, RESPONSE_CODE)) return undefined;
  if (status === 'declined' && response_code !== APPROVED && captured === false) {
    return { kind: 'declined', providerData, iso8583Code: response_code };
  }
  if (
    status === 'approved' &&
    httpStatus !== DECLINED &&
    response_code === APPROVED &&
    captured === capture &&
    isTextLike(authorization_code, AUTHORIZATION_CODE) &&
    isTextLike(retrieval_reference_number, RETRIEVAL_REFERENCE_NUMBER)
  ) {
    return {
      kind: 'approved',
      providerData,
      authorizationCode: authorization_code,
      retrievalReferenceNumber: retrieval_reference_number,
    };
  }
  return undefined;
}

/** The first field by which an answer is about another attempt than this one. */
function differenceOf(answer: JsonObject, attempt: AskedAttempt): string | undefined {
  if (answer.idempotency_key !== attempt.transactionId) return 'idempotency_key';
  return differingMoney(readMoney(answer.amount, answer.currency, 'minor_units'), attempt.money);
}

function providerDataOf(answer: JsonObject, providerId: string): ProviderData {
  const isCharge = answer.object === 'charge';
  const responseCode = textOf(answer.response_code);
  const responseMessage = textOf(answer.response_message);
  return create(ProviderDataSchema, {
    id: providerId,
    transactionId: textOf(answer.id),
    accountId: textOf(answer.account),
    status: textOf(answer.status),
    subStatus: isCharge && answer.status === 'approved' ? (answer.captured ? 'captured' : 'authorized') : '',
    responseMessage,
    responseCode,
    rawResponse: rawResponseOf(answer),
    ...(isCharge && { iso8583ResponseCode: responseCode, iso8583ResponseMessage: responseMessage }),
  });
}

function rawResponseOf(answer: JsonObject): JsonObject {
  const raw: JsonObject = {};
  for (const field of SHOWN_FIELDS) {
    const value = answer[field];
    if (value !== undefined && (value === null || typeof value !== 'object')) raw[field] = value;
  }
  return raw;
}

function isErrorBody(answer: JsonObject): boolean {
  return (
    isJsonObject(answer.error) &&
    typeof answer.error.type === 'string' &&
    typeof answer.error.message === 'string'
  );
}
