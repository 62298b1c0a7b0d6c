import { create, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { AttemptMethod } from '#src/connectors/attempt.ts';
import { assertNever, type LookUp, type Outcome } from '#src/connectors/connector.ts';
import type { HttpResult } from '#src/connectors/http-client.ts';

/**
 * The fields of the provider's answers that are shown in `raw_response`; anything else an answer holds is dropped, so a
 * provider that echoed a card number or a security code in a field of its own would not get it into a record.
 */
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

const MAX_TEXT_LENGTH = 1_024;
/** What a card number could be (ISO/IEC 7812-1 allows up to 19 digits); the provider's own numbers are shorter. */
const CARD_NUMBER_LIKE = /\d{13,}/g;
/** ISO 8583 fields 37, 38 and 39. */
const RETRIEVAL_REFERENCE_NUMBER = /^[A-Z0-9]{12}$/;
const AUTHORIZATION_CODE = /^[A-Z0-9]{6}$/;
const RESPONSE_CODE = /^[A-Z0-9]{2}$/;
const APPROVED = '00';

/** The statuses with which the provider refuses a call before it does anything, and says so in an error body. */
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 403, 404, 413, 415, 422, 429]);
/** Those that are the connection's trouble, not this one call's: our key, our rate. */
const REFUSALS_OF_ALL: ReadonlySet<number> = new Set([401, 403, 429]);

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
  if (result.kind !== 'answer') return unknown(result.detail);
  if (isUnheardOf(result)) return unknown('the provider has not heard of it');
  const answer = parseObject(result.body);
  if (isClosed(result.status, answer, attempt))
    return { kind: 'not_sent', detail: 'the provider closed it unheard', because: 'turned_away' };
  const outcome = fromAnswer(result, attempt, providerId);
  return outcome.kind === 'not_sent' ? unknown(outcome.detail) : outcome;
}

/** Whether the result of a look-up is the provider's word that it knows nothing under that key. */
export function isUnheardOf(result: HttpResult): boolean {
  if (result.kind !== 'answer' || result.status !== 404) return false;
  const answer = parseObject(result.body);
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
  const answer = parseObject(result.body);
  if (!answer) return unknown(`the answer cannot be read: ${status}`);
  if (REFUSALS.has(status) && isErrorBody(answer)) {
    const detail = `the provider refused the request: ${status}`;
    return { kind: 'not_sent', detail, because: REFUSALS_OF_ALL.has(status) ? 'unreachable' : 'turned_away' };
  }
  if (status !== 200 && status !== 201 && status !== 402) return unknown(`the provider's answer: ${status}`);

  const fault = mismatchOf(answer, attempt);
  if (fault !== undefined) return unknown(`the answer is not about this attempt: ${fault}`);
  const providerData = providerDataOf(answer, providerId);
  return (
    readOutcome(answer, status, attempt.method, providerData) ??
    unknown('the answer contradicts itself', providerData)
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
      if (httpStatus === 402 || answer.status !== 'created' || !isHttpUrl(redirectUrl)) return undefined;
      return { kind: 'redirect', providerData, redirectUrl };
    }
    case 'wallet_enrollment':
      return httpStatus !== 402 && answer.status === 'pending'
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
  if (!matches(response_code, RESPONSE_CODE)) return undefined;
  if (status === 'declined' && response_code !== APPROVED && captured === false) {
    return { kind: 'declined', providerData, iso8583Code: response_code };
  }
  if (
    status === 'approved' &&
    httpStatus !== 402 &&
    response_code === APPROVED &&
    captured === capture &&
    matches(authorization_code, AUTHORIZATION_CODE) &&
    matches(retrieval_reference_number, RETRIEVAL_REFERENCE_NUMBER)
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

/** The first field that is not this attempt's. */
function mismatchOf(answer: JsonObject, attempt: AskedAttempt): string | undefined {
  if (answer.object !== OBJECTS[attempt.method.kind]) return 'object';
  if (!matches(answer.id, /^[a-z]{2}_[0-9a-f-]{36}$/)) return 'id';
  if (answer.idempotency_key !== attempt.transactionId) return 'idempotency_key';
  if (answer.amount !== Number(attempt.money.minorUnits)) return 'amount';
  if (answer.currency !== attempt.money.currency) return 'currency';
  return undefined;
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
    if (typeof value === 'string') raw[field] = textOf(value);
    else if (typeof value === 'number' || typeof value === 'boolean' || value === null) raw[field] = value;
  }
  return raw;
}

/** A text of the provider's, bounded and without what might be a card number. */
function textOf(value: JsonValue | undefined): string {
  if (typeof value !== 'string') return '';
  return value.slice(0, MAX_TEXT_LENGTH).replace(CARD_NUMBER_LIKE, '[removed]');
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function parseObject(body: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(UTF8.decode(body));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isErrorBody(answer: JsonObject): boolean {
  return (
    isObject(answer.error) &&
    typeof answer.error.type === 'string' &&
    typeof answer.error.message === 'string'
  );
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function matches(value: JsonValue | undefined, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value);
}

function isHttpUrl(value: JsonValue | undefined): value is string {
  if (typeof value !== 'string' || value.length > MAX_TEXT_LENGTH) return false;
  const protocol = URL.parse(value)?.protocol;
  return protocol === 'http:' || protocol === 'https:';
}

function unknown(detail: string, providerData?: ProviderData): Outcome {
  return { kind: 'unknown', detail, providerData };
}
