import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { Money } from '#src/money.ts';
import type { HttpResult } from '../kit/http-client.ts';
import {
  answeredAboutAnother,
  bodyOf,
  differingMoney,
  fromResult,
  isSuccess,
  neverHappens,
  readMoney,
  unknownOutcome,
  withMovedMoney,
} from '../kit/provider-answer.ts';
import type { Outcome } from '../port/outcome.ts';
import { type Answer, isError, providerDataOf, readAnswer } from './answers.ts';
import { declineOfPage, fromRefusal } from './refusals.ts';

/** Values that a response must match. */
export type Asked = {
  /** The Idempotency-Key of the request. */
  readonly idempotencyKey: string;
  /** undefined for a request without an amount. */
  readonly money: Money | undefined;
  /** The `object` that the response must have. */
  readonly object: string;
};

/**
 * Reads the outcome from a response about the request.
 *
 * @returns undefined if the response contradicts itself.
 */
export type ReadOutcome = (answer: Answer, reported: Reported, httpStatus: number) => Outcome | undefined;

/** Response fields that every outcome contains. */
export type Reported = {
  readonly providerData: ProviderData;
  readonly reference: string;
  readonly providerPaymentId: string;
};

/** ISO 8583 field 39. */
export const RESPONSE_CODE = /^[A-Z0-9]{2}$/;
/** HTTP status of a decline. */
export const DECLINED = 402;

/**
 * Reads a call's HTTP result strictly: a response counts only if it matches the call in every respect (key, kind,
 * amount, currency). Otherwise the outcome is `unknown`, since the money may have moved.
 *
 * A refusal (400, 401, 403, …) with the provider's own error body is `not_sent`: the provider did not accept the
 * request, so nothing happened and the attempt may be made elsewhere. The same status without that body, for example
 * from a proxy, is `unknown`. So is a 409: something else happened under our key.
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
      return unknownOutcome('the response is not of the kind that the request asked for');
    }
    if (answer.idempotency_key !== asked.idempotencyKey) return answeredAboutAnother('idempotency_key');
    const moved = readMoney(answer.amount, answer.currency, 'minor_units');
    // A cancellation releases everything that is left, whatever amount it names.
    const isCompared = asked.money !== undefined && asked.object !== 'cancellation';
    const difference = isCompared ? differingMoney(moved, asked.money) : undefined;
    const isMoving = asked.object === 'capture' || asked.object === 'refund';
    if (difference !== undefined && !isMoving) return answeredAboutAnother(difference);
    const providerData = providerDataOf(answer, providerId);
    const reported = { providerData, reference: answer.id, providerPaymentId: answer.id };
    const outcome = readOutcome(answer, reported, status);
    return outcome
      ? withMovedMoney(outcome, difference, moved)
      : unknownOutcome('the response contradicts itself', providerData);
  });
}

/**
 * Reads a look-up's HTTP result as strictly as `readResult`. Only a response counts: a failed look-up proves nothing.
 */
export function readLookUp(
  result: HttpResult,
  asked: Asked,
  providerId: string,
  readOutcome: ReadOutcome,
): Outcome {
  if (result.kind !== 'answer') return unknownOutcome(result.detail);
  if (isNeverReceived(result)) return unknownOutcome('the provider has not received the request');
  if (isClosed(result, asked.idempotencyKey))
    return neverHappens('the provider closed the request before it arrived');
  const outcome = readResult(result, asked, providerId, readOutcome);
  return outcome.kind === 'not_sent' ? unknownOutcome(outcome.detail) : outcome;
}

/** Returns true if the response to a look-up reports that the provider does not know the key. */
export function isNeverReceived(result: HttpResult): boolean {
  return isError(readAnswer(bodyOf(result, 404)));
}

function isClosed(result: HttpResult, idempotencyKey: string): boolean {
  const { object, idempotency_key: key } = readAnswer(bodyOf(result));
  return object === 'closed' && key === idempotencyKey;
}

/** Reads the outcome of a page on which the payer did not consent; undefined for any other status. */
export function readRefusal(status: string, reported: Reported): Outcome | undefined {
  if (status === 'expired') return { kind: 'expired', ...reported };
  const decline = declineOfPage(status);
  return decline && { kind: 'declined', ...reported, ...decline };
}

/** Sends the payer to a page; undefined if the response has no URL. */
export function redirectTo(page: string | undefined, reported: Reported): Outcome | undefined {
  return page === undefined ? undefined : { kind: 'awaits_payer', ...reported, show: { page } };
}
