import type { JsonObject } from '@bufbuild/protobuf';
import type { Money } from '#src/money.ts';
import type { HttpResult } from '../kit/http-client.ts';
import { bodyOf, readJsonObject } from '../kit/provider-answer.ts';
import type { ShownAs } from '../kit/provider-client.ts';
import { type OptionalFields, sendMended } from '../kit/refusal.ts';
import type { AttemptFacts, PaymentAttempt } from '../port/attempt.ts';
import type { Outcome } from '../port/outcome.ts';
import { errorOf, providerDataOf } from './answers.ts';
import { declined, fromRefusal } from './refusals.ts';
import {
  type CardMethod,
  type ChargedMethod,
  type Fields,
  intentFields,
  paymentMethodFields,
  post,
  type Send,
} from './to-provider.ts';

/** Fields that Stripe may refuse and that a payment can do without. */
export const OPTIONAL: OptionalFields = {
  names:
    /^(billing_details\[.+|shipping(\[.+)?|statement_descriptor_suffix|description|metadata\[(?!transaction_id\]).+)$/,
  refusedBy: (result) => [errorOf(bodyOf(result, 400))?.param ?? ''],
  // Stripe requires the name and the address of a shipping together, so all of it is left out.
  pathOf: (name) => (name.startsWith('shipping') ? ['shipping'] : name.replaceAll(']', '').split('[')),
};

/** Creates the payment method of an attempt, which charges nothing. */
export function createPaymentMethod(
  attempt: PaymentAttempt,
  method: CardMethod | { readonly token: string },
  send: Send,
): Promise<HttpResult> {
  const key = `${attempt.transactionId}:pm`;
  return sendTo('/v1/payment_methods', paymentMethodFields(attempt, method), [key, `${key}:2`], send);
}

/**
 * Creates the unconfirmed intent of an attempt, which charges nothing, or returns the existing one.
 *
 * The second request leaves out a refused field but keeps the key, because a refused request does not use up a key at
 * Stripe. If it did, Stripe would also refuse the second request, and nothing would be charged. With another key, a
 * transaction could have two intents, and a look-up might find the wrong one.
 */
export function createIntent(
  facts: AttemptFacts,
  money: Money,
  options: Pick<ChargedMethod, 'capture' | 'softDescriptor'>,
  send: Send,
): Promise<HttpResult> {
  const { transactionId: key } = facts;
  return sendTo('/v1/payment_intents', intentFields(facts, money, options), [key, key], send);
}

/**
 * Sends a request that charges nothing. If Stripe refuses it for an optional field, sends it once more without that
 * field.
 */
function sendTo(
  path: string,
  fields: Fields,
  [key, secondKey]: readonly [string, string],
  send: Send,
): Promise<HttpResult> {
  const sendWith = (kept: Fields, isRepeat: boolean) => send(post(path, kept, isRepeat ? secondKey : key));
  return sendMended(fields, sendWith, OPTIONAL);
}

/**
 * Reads the response to a request that moves no money, in preparation for the request that does.
 *
 * @returns the body of a success, or an outcome. In either case, nothing was charged.
 */
export function fromPreparation(
  result: HttpResult,
  object: string,
  shownAs: ShownAs,
): { readonly id: string; readonly body: JsonObject } | { readonly outcome: Outcome } {
  if (result.kind === 'not_sent') return { outcome: result };
  const unprepared = (detail: string): { outcome: Outcome } => ({
    outcome: { kind: 'not_sent', detail: `before charging: ${detail}`, because: 'unreachable' },
  });
  if (result.kind === 'unknown') return unprepared(result.detail);
  const body = readJsonObject(result.body);
  if (result.status === 200 && body?.object === object && typeof body.id === 'string') {
    return { id: body.id, body };
  }
  const error = errorOf(body);
  const refusal = fromRefusal(result.status, error);
  if (refusal === 'declined' && error && body) {
    return { outcome: declined(error, undefined, providerDataOf({}, body, shownAs)) };
  }
  return refusal !== 'declined' && refusal.kind === 'not_sent'
    ? { outcome: refusal }
    : unprepared(`the provider's response: ${result.status}`);
}

/**
 * Reads the response to a request that only one method of payment needs. A key without the permission for it says nothing
 * about the connection's other payments.
 */
export function fromExtraPreparation(
  result: HttpResult,
  object: string,
  shownAs: ShownAs,
): ReturnType<typeof fromPreparation> {
  const prepared = fromPreparation(result, object, shownAs);
  const isForbidden = result.kind === 'answer' && result.status === 403;
  if (!isForbidden || !('outcome' in prepared) || prepared.outcome.kind !== 'not_sent') return prepared;
  return { outcome: { ...prepared.outcome, because: 'turned_away' } };
}
