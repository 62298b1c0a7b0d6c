import type Stripe from 'stripe';
import type { Money } from '#src/money.ts';
import type { AttemptFacts } from '../port/attempt.ts';
import { expiryDays, type StripeMethod } from './local-methods.ts';
import { addressOf, describedBy, type Fields, nameOf, type Wire } from './to-provider.ts';

/**
 * Fields of a PaymentIntent that is confirmed at once and so makes a code for its payer, which takes no money. They are a
 * pure function of the stored payment, so that the request can be repeated.
 *
 * @param money in Stripe's units.
 * @param customerId Stripe's customer of this transaction alone, for a transfer to a customer's balance.
 * @returns undefined if Stripe does not accept the expiry.
 */
export function codeFields(
  facts: AttemptFacts,
  money: Money,
  method: StripeMethod,
  customerId: string | undefined,
): Fields | undefined {
  const options = optionsOf(facts, method);
  if (!options) return undefined;
  const taxId = facts.customerPayer.document?.documentNumber?.replace(/[^0-9A-Za-z]/g, '') || undefined;
  return {
    amount: Number(money.minorUnits),
    currency: money.currency.toLowerCase(),
    capture_method: 'automatic',
    confirm: true,
    customer: customerId,
    payment_method_types: [method],
    payment_method_data: {
      type: method,
      ...(method === 'boleto' && { boleto: { tax_id: taxId } }),
      billing_details: billingOf(facts),
    },
    payment_method_options: options,
    ...describedBy(facts),
    expand: ['latest_charge'],
  } satisfies Wire<Stripe.PaymentIntentCreateParams>;
}

/**
 * Fields of a PaymentIntent that nobody can pay, because it is not confirmed: it uses up the key of a creation that Stripe
 * has not received.
 */
export function unpayableFields(facts: AttemptFacts, money: Money, method: StripeMethod): Fields {
  return {
    amount: Number(money.minorUnits),
    currency: money.currency.toLowerCase(),
    payment_method_types: [method],
    ...describedBy(facts),
  } satisfies Wire<Stripe.PaymentIntentCreateParams>;
}

/** Fields of a customer, whose balance receives the transfers of one transaction. */
export function customerFields({ customerPayer, transactionId, paymentId }: AttemptFacts): Fields {
  return {
    name: nameOf(customerPayer) || undefined,
    email: customerPayer.email || undefined,
    description: 'One payment by transfer',
    metadata: { transaction_id: transactionId, payment_id: paymentId },
  } satisfies Wire<Stripe.CustomerCreateParams>;
}

function billingOf({ customerPayer, country }: AttemptFacts) {
  const address = addressOf(customerPayer.billingAddress);
  return {
    name: nameOf(customerPayer) || undefined,
    email: customerPayer.email || undefined,
    address: address && { ...address, country: address.country ?? country },
  } satisfies Wire<Stripe.PaymentIntentCreateParams.PaymentMethodData.BillingDetails>;
}

function optionsOf(facts: AttemptFacts, method: StripeMethod) {
  type Options = Wire<Stripe.PaymentIntentCreateParams.PaymentMethodOptions>;
  switch (method) {
    case 'pix':
      return { pix: { expires_at: Math.floor(facts.expiresAtMs / 1_000) } } satisfies Options;
    case 'customer_balance': {
      const bank_transfer = { type: 'mx_bank_transfer' } as const;
      return { customer_balance: { funding_type: 'bank_transfer', bank_transfer } } satisfies Options;
    }
    default: {
      const expires_after_days = expiryDays(method, facts);
      if (expires_after_days === undefined) return undefined;
      const term = { expires_after_days };
      return (method === 'boleto' ? { boleto: term } : { oxxo: term }) satisfies Options;
    }
  }
}
