import { create, type JsonObject } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { HttpResult } from '#src/connectors/http-client.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import {
  answeredAboutAnother,
  bodyOf,
  differingMoney,
  fromResult,
  isTextLike,
  neverHappens,
  objectAt,
  outcomeOfStatus,
  readMoney,
  textOf,
  unknownOutcome,
} from '#src/connectors/provider-answer.ts';
import type { Money } from '#src/money.ts';

/** Values that an answer must agree with. */
export type Asked = {
  /** The Idempotency-Key of the request. */
  readonly idempotencyKey: string;
  /** undefined for a request without an amount. */
  readonly money: Money | undefined;
  /** The `object` that the answer must have. */
  readonly object: string;
};

/**
 * Reads the outcome from an answer that is about the request.
 *
 * @returns undefined if the answer contradicts itself.
 */
export type ReadOutcome = (answer: JsonObject, reported: Reported, httpStatus: number) => Outcome | undefined;

/** Fields of the answer that every outcome contains. */
export type Reported = { readonly providerData: ProviderData; readonly reference: string };

/** ISO 8583 field 39. */
export const RESPONSE_CODE = /^[A-Z0-9]{2}$/;
/** ISO 8583 response codes. */
const DO_NOT_HONOR = '05';
const CUSTOMER_CANCELLATION = '17';
/** HTTP status of a decline. */
export const DECLINED = 402;

/** Fields of an answer that `raw_response` shows; all others are dropped. */
const SHOWN_FIELDS = [
  ...['object', 'id', 'payment', 'idempotency_key', 'account', 'acquirer', 'status', 'failure_code'],
  ...['response_code', 'response_message', 'authorization_code', 'retrieval_reference_number'],
  ...['amount', 'currency', 'captured', 'installments'],
  ...['card_iin', 'card_last_four', 'order_item_count', 'airline_leg_count', 'wallet', 'card_type'],
  ...['checkout_url', 'challenge_url', 'agreement_url', 'created_at'],
];
const ID = /^[a-z]{2}_[0-9a-f-]{36}$/;

/**
 * Reads a call's HTTP result. Strict: an answer counts only if all of it matches this very call (key, kind, amount,
 * currency); else the outcome is `unknown`, since the money may have moved.
 *
 * A refusal (400, 401, 403, …) with the provider's own error body is `not_sent`: the provider says that it did not
 * accept the request, so nothing happened and the attempt may be made elsewhere. The same status without that body,
 * from a proxy in between for example, is `unknown`. So is a 409: something else happened under our key.
 */
export function readResult(
  result: HttpResult,
  asked: Asked,
  providerId: string,
  readOutcome: ReadOutcome,
): Outcome {
  return fromResult(result, (answer, { status }) => {
    const { param } = objectAt(answer, 'error');
    const refusal =
      status === DECLINED ? undefined : outcomeOfStatus(status, isErrorBody(answer), textOf(param));
    if (refusal) return refusal;

    if (answer.object !== asked.object || !isTextLike(answer.id, ID)) {
      return unknownOutcome('the answer is of another kind than was asked for');
    }
    if (answer.idempotency_key !== asked.idempotencyKey) return answeredAboutAnother('idempotency_key');
    // A cancellation is of all that is left. One that failed because nothing is tells another amount than was asked for.
    const isFailedCancel = answer.object === 'cancellation' && answer.status === 'failed';
    const money = isFailedCancel ? undefined : asked.money;
    const reported = readMoney(answer.amount, answer.currency, 'minor_units');
    const difference = money && differingMoney(reported, money);
    if (difference !== undefined) return answeredAboutAnother(difference);
    const providerData = providerDataOf(answer, providerId);
    return (
      readOutcome(answer, { providerData, reference: answer.id }, status) ??
      unknownOutcome('the answer contradicts itself', providerData)
    );
  });
}

/** Reads a look-up's HTTP result in the same way. Only an answer counts, since failing to ask says nothing. */
export function readLookUp(
  result: HttpResult,
  asked: Asked,
  providerId: string,
  readOutcome: ReadOutcome,
): Outcome {
  if (result.kind !== 'answer') return unknownOutcome(result.detail);
  if (isNeverReceived(result)) return unknownOutcome('the provider has not received it');
  if (isClosed(result, asked.idempotencyKey)) return neverHappens('the provider closed it before it came');
  const outcome = readResult(result, asked, providerId, readOutcome);
  return outcome.kind === 'not_sent' ? unknownOutcome(outcome.detail) : outcome;
}

/** Returns true if the provider answered a look-up by saying that it knows nothing under that key. */
export function isNeverReceived(result: HttpResult): boolean {
  const answer = bodyOf(result, 404);
  return answer !== undefined && isErrorBody(answer);
}

function isClosed(result: HttpResult, idempotencyKey: string): boolean {
  const answer = bodyOf(result);
  return answer?.object === 'closed' && answer.idempotency_key === idempotencyKey;
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
    ...(isCharge &&
      responseCode && { iso8583ResponseCode: responseCode, iso8583ResponseMessage: responseMessage }),
  });
}

function rawResponseOf(answer: JsonObject): JsonObject {
  const raw: JsonObject = {};
  for (const field of SHOWN_FIELDS) {
    // For a wallet, `status` says if the payer paid.
    if (field === 'captured' && answer.object !== 'charge') continue;
    const value = answer[field];
    if (field === 'challenge_url' && value === null) continue;
    if (value !== undefined && (value === null || typeof value !== 'object')) raw[field] = value;
  }
  return raw;
}

function isErrorBody(answer: JsonObject): boolean {
  const { type, message } = objectAt(answer, 'error');
  return typeof type === 'string' && typeof message === 'string';
}

/** Reads how a payer's page ended without consent; undefined if the status does not say so. */
export function readRefusal(status: unknown, reported: Reported): Outcome | undefined {
  switch (status) {
    case 'declined':
      return { kind: 'declined', ...reported, iso8583Code: DO_NOT_HONOR };
    case 'canceled':
      return { kind: 'declined', ...reported, iso8583Code: CUSTOMER_CANCELLATION };
    case 'expired':
      return { kind: 'expired', ...reported };
    default:
      return undefined;
  }
}
