import type { JsonObject } from '@bufbuild/protobuf';
import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { HttpResult } from '#src/connectors/http-client.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import {
  bodyOf,
  isJsonObject,
  objectAt,
  outcomeOfStatus,
  readJsonObject,
  textOf,
  unknownOutcome,
} from '#src/connectors/provider-answer.ts';
import type { ShownAs } from '#src/connectors/provider-client.ts';
import { meaningOf } from './decline-codes.ts';
import { providerDataOf } from './provider-data.ts';

const DECLINED = 402;
/** Errors of status 400, 409 or 429 that leave open whether an earlier or a concurrent request has done something. */
const SAYING_NOTHING: ReadonlySet<string> = new Set([
  'payment_intent_unexpected_state',
  'idempotency_key_in_use',
  'lock_timeout',
]);
/**
 * Reads the answer to a request that moves no money and precedes the one that does.
 *
 * @returns the body of a success; else an outcome. In any case, nothing was charged.
 */
export function fromPreparation(
  result: HttpResult,
  object: string,
  shownAs: ShownAs,
): { readonly body: JsonObject } | { readonly outcome: Outcome } {
  if (result.kind === 'not_sent') return { outcome: result };
  const unprepared = (detail: string): { outcome: Outcome } => ({
    outcome: { kind: 'not_sent', detail: `before charging: ${detail}`, because: 'unreachable' },
  });
  if (result.kind === 'unknown') return unprepared(result.detail);
  const body = readJsonObject(result.body);
  const error = body && errorOf(body);
  if (body && isCardError(result.status, error)) {
    return { outcome: declined(error, undefined, providerDataOf({}, body, shownAs)) };
  }
  if (result.status === 200 && body?.object === object && typeof body.id === 'string') return { body };
  const refusal = fromRefusal(result.status, error);
  return refusal?.kind === 'not_sent'
    ? { outcome: refusal }
    : unprepared(`the provider's answer: ${result.status}`);
}

/** Returns true if an answer declines a card rather than refusing a request. */
export function isCardError(status: number, error: JsonObject | undefined): error is JsonObject {
  return status === DECLINED && error?.type === 'card_error';
}

/** Makes a decline from its error: that of an answer, or the last one of an intent. */
export function declined(
  error: JsonObject,
  intent: JsonObject | undefined,
  providerData: ProviderData,
): Outcome {
  const isBlocked = objectAt(objectAt(intent, 'latest_charge'), 'outcome').type === 'blocked';
  const meaning = meaningOf(codeOf(error), isBlocked);
  providerData.iso8583ResponseCode = meaning.iso8583Code;
  providerData.responseCode = codeOf(error);
  providerData.responseMessage = textOf(error.message);
  return { kind: 'declined', providerData, ...meaning };
}

/** Reads a status other than success together with its error; undefined for a success. */
export function fromRefusal(status: number, error: JsonObject | undefined): Outcome | undefined {
  const said = error ? ` ${[textOf(error.code), textOf(error.param)].join(' ').trim()}` : '';
  if (error && (error.type === 'idempotency_error' || SAYING_NOTHING.has(textOf(error.code)))) {
    return unknownOutcome(`the provider's answer: ${status}${said}`);
  }
  // Not a card's decline but a fault of the account's set-up: it may not send card numbers, for example.
  const isSetUp = status === DECLINED && error?.type === 'invalid_request_error' && !error.decline_code;
  const refused = textOf(error?.param) || textOf(error?.code);
  const outcome = outcomeOfStatus(isSetUp ? 400 : status, error !== undefined, refused);
  return outcome?.kind === 'not_sent'
    ? { ...outcome, detail: `the provider refused the request: ${status}${said}` }
    : outcome;
}

/** Returns true if an answer says that the idempotency key was used by a request with other fields. */
export function isKeyUsed(result: HttpResult): boolean {
  const body = bodyOf(result, 400);
  return body !== undefined && errorOf(body)?.type === 'idempotency_error';
}

/** Returns the error in an answer, if it has Stripe's form. */
export function errorOf(body: JsonObject): JsonObject | undefined {
  return isJsonObject(body.error) && typeof body.error.type === 'string' ? body.error : undefined;
}

function codeOf(error: JsonObject): string {
  return textOf(error.decline_code) || textOf(error.code);
}
