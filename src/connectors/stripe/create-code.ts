import type { Money } from '#src/money.ts';
import type { HttpResult } from '../kit/http-client.ts';
import { sendCreation } from '../kit/lost-creation.ts';
import { isSuccess, turnedAway } from '../kit/provider-answer.ts';
import type { ShownAs } from '../kit/provider-client.ts';
import { sendMended } from '../kit/refusal.ts';
import type { AttemptFacts } from '../port/attempt.ts';
import type { Outcome } from '../port/outcome.ts';
import { codeFields, customerFields, unpayableFields } from './code-fields.ts';
import type { StripeMethod } from './local-methods.ts';
import { fromExtraPreparation, OPTIONAL } from './preparations.ts';
import { post, type Send } from './to-provider.ts';

/** Facts that decide what is created. Money is in Stripe's units. */
export type CodeAsked = {
  readonly attempt: AttemptFacts;
  readonly money: Money;
  readonly method: StripeMethod;
};

/**
 * Creates the intent of a payment with a code and confirms it, which takes no money, or returns the existing one: the
 * key is the transaction's id, and the body comes from the record alone.
 *
 * A transfer goes to the balance of a customer at Stripe. Each transaction has a customer of its own, because money that is
 * left on a balance settles the customer's next payment.
 *
 * @returns the response, or the outcome of an attempt that made no code.
 */
export async function createCode(
  { attempt, money, method }: CodeAsked,
  send: Send,
  shownAs: ShownAs,
): Promise<HttpResult | { readonly outcome: Outcome }> {
  const { transactionId } = attempt;
  let customerId: string | undefined;
  if (method === 'customer_balance') {
    const target = post('/v1/customers', customerFields(attempt), `${transactionId}:customer`);
    const customer = fromExtraPreparation(await sendCreation(send, target, isKept), 'customer', shownAs);
    if ('outcome' in customer) return customer;
    customerId = customer.id;
  }
  const fields = codeFields(attempt, money, method, customerId);
  if (!fields) return { outcome: turnedAway('it cannot end this code at that time') };
  return sendMended(
    fields,
    (kept) => sendCreation(send, post('/v1/payment_intents', kept, transactionId), isKept),
    OPTIONAL,
  );
}

/**
 * Uses up the key of a creation that may not have reached Stripe, so that it can no longer make a code.
 *
 * @returns the response: an intent that nobody can pay, or an error if the creation has used the key.
 */
export function preventCode({ attempt, money, method }: CodeAsked, send: Send): Promise<HttpResult> {
  return send(post('/v1/payment_intents', unpayableFields(attempt, money, method), attempt.transactionId));
}

/** Returns true for a response that Stripe keeps under a request's key: a success or a decline. */
function isKept(status: number): boolean {
  return isSuccess(status) || status === 402;
}
