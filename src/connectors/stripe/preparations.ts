import type { AttemptFacts, PaymentAttempt } from '#src/connectors/attempt.ts';
import type { HttpResult } from '#src/connectors/http-client.ts';
import { bodyOf, textOf } from '#src/connectors/provider-answer.ts';
import { withoutField } from '#src/connectors/refused-field.ts';
import type { Money } from '#src/money.ts';
import { errorOf } from './refusals.ts';
import {
  type CardMethod,
  type Fields,
  intentFields,
  paymentMethodFields,
  post,
  type Send,
} from './to-provider.ts';

/** Matches parameters without which a payment is the same: what they describe moves no money. */
const OPTIONAL =
  /^(billing_details\[.+|statement_descriptor_suffix|description|metadata\[(?!transaction_id\]).+)$/;

/** Creates the payment method of an attempt, which charges nothing. */
export function createPaymentMethod(
  attempt: PaymentAttempt,
  method: CardMethod,
  send: Send,
): Promise<HttpResult> {
  const key = `${attempt.transactionId}:pm`;
  return sendMended('/v1/payment_methods', paymentMethodFields(attempt, method), [key, `${key}:2`], send);
}

/**
 * Creates the unconfirmed intent of an attempt, which charges nothing, or returns the one that was created before.
 *
 * A refused field is left out under the same key, which Stripe does not use up for a request that it refused. If it has,
 * it refuses the second request as well, and nothing is charged. Under a key of its own, a transaction could have two
 * intents, of which a look-up would find the wrong one.
 */
export function createIntent(
  facts: AttemptFacts,
  money: Money,
  options: Pick<CardMethod, 'capture' | 'softDescriptor'>,
  send: Send,
): Promise<HttpResult> {
  const { transactionId: key } = facts;
  return sendMended('/v1/payment_intents', intentFields(facts, money, options), [key, key], send);
}

/** Sends a request that charges nothing; if Stripe refuses it for an optional field, once more without that field. */
async function sendMended(
  path: string,
  fields: Fields,
  [key, secondKey]: readonly [string, string],
  send: Send,
): Promise<HttpResult> {
  const result = await send(post(path, fields, key));
  const body = bodyOf(result, 400);
  const param = textOf(body && errorOf(body)?.param);
  const mended = OPTIONAL.test(param)
    ? withoutField(fields, param.replaceAll(']', '').split('['))
    : undefined;
  return mended ? send(post(path, mended, secondKey)) : result;
}
