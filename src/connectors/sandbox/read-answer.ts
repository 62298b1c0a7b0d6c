import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { HttpResult } from '#src/connectors/http-client.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import {
  answeredAboutAnother,
  bodyOf,
  differingMoney,
  fromResult,
  isSuccess,
  neverHappens,
  readMoney,
  unknownOutcome,
} from '#src/connectors/provider-answer.ts';
import type { Money } from '#src/money.ts';
import { type Answer, isError, providerDataOf, readAnswer } from './answers.ts';
import { declineOfPage, fromRefusal } from './refusals.ts';

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
export type ReadOutcome = (answer: Answer, reported: Reported, httpStatus: number) => Outcome | undefined;

/** Fields of the answer that every outcome contains. */
export type Reported = { readonly providerData: ProviderData; readonly reference: string };

/** ISO 8583 field 39. */
export const RESPONSE_CODE = /^[A-Z0-9]{2}$/;
/** HTTP status of a decline. */
export const DECLINED = 402;

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
  return fromResult(result, (body, { status }) => {
    const answer = readAnswer(body);
    if (!isSuccess(status) && status !== DECLINED) return fromRefusal(status, answer);

    if (answer.object !== asked.object || answer.id === undefined) {
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
  return isError(readAnswer(bodyOf(result, 404)));
}

function isClosed(result: HttpResult, idempotencyKey: string): boolean {
  const { object, idempotency_key: key } = readAnswer(bodyOf(result));
  return object === 'closed' && key === idempotencyKey;
}

/** Reads how a payer's page ended without consent; undefined if the status does not say so. */
export function readRefusal(status: string, reported: Reported): Outcome | undefined {
  if (status === 'expired') return { kind: 'expired', ...reported };
  const decline = declineOfPage(status);
  return decline && { kind: 'declined', ...reported, ...decline };
}

/** Sends the payer to a page; undefined if the answer has no address of one. */
export function redirectTo(redirectUrl: string | undefined, reported: Reported): Outcome | undefined {
  return redirectUrl === undefined ? undefined : { kind: 'redirect', ...reported, redirectUrl };
}
