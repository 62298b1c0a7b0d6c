import type Stripe from 'stripe';
import type { Address, CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import { type ThreeDSecure, ThreeDSecureSchema } from '#gen/payments/v1/payment_method_pb.js';
import type { Money } from '#src/money.ts';
import type { Secret } from '#src/secret.ts';
import { encodeForm, type FormValue } from '../kit/form-body.ts';
import type { HttpRequest } from '../kit/http-client.ts';
import { phoneNumberOf } from '../kit/phone-number.ts';
import type { ProviderCall, SendTarget } from '../kit/provider-client.ts';
import type { AttemptCard, AttemptFacts, Method, PaymentAttempt } from '../port/attempt.ts';
import type { Operation } from '../port/connector.ts';
import type { StripeSettings } from './settings.ts';

/** The API version of these requests; the account's default version does not matter. */
const API_VERSION = '2023-08-16';
const MAX_DESCRIPTION_LENGTH = 1_000;
const MAX_METADATA = 50;
const MAX_METADATA_VALUE = 500;

/** Payment method of a card attempt. */
export type CardMethod = Extract<Method, { by: 'card' }>;
/** Payment method of an attempt that charges a card: the card itself, or the one behind a wallet's token. */
export type ChargedMethod = Extract<Method, { by: 'card' | 'wallet_token' }>;
/** Parameters from Stripe's official types for the version above; an absent parameter may also be undefined. */
export type Wire<T> = T extends object ? { readonly [Name in keyof T]?: Wire<T[Name]> | undefined } : T;
/** Fields of a request. */
export type Fields = { readonly [name: string]: FormValue };

/** A request to Stripe without its headers. */
export type StripeTarget = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly fields: Fields;
  /** Idempotency key, bound to one path. undefined if a repeat changes nothing. */
  readonly key: string | undefined;
};

/** Sends a request within its call's deadline. */
export type Send = SendTarget<StripeTarget>;
/** Everything that one call of a connection needs. */
export type Call = ProviderCall<StripeTarget, StripeSettings>;

/** Builds a read request. */
export function get(path: string, fields: Fields): StripeTarget {
  return { method: 'GET', path, fields, key: undefined };
}

/** Builds a request that Stripe carries out once per key. */
export function post(path: string, fields: Fields, key: string | undefined): StripeTarget {
  return { method: 'POST', path, fields, key };
}

/** Returns the path of a PaymentIntent, or of an action on it (`/confirm`). */
export function intentPath(intentId: string, verb = ''): string {
  return `/v1/payment_intents/${encodeURIComponent(intentId)}${verb}`;
}

/** Builds the HTTP request. The body may contain a card, and must only be written to Stripe's socket. */
export function httpRequest({ method, path, fields, key }: StripeTarget, apiKey: Secret): HttpRequest {
  const form = encodeForm(fields);
  const headers = {
    authorization: `Bearer ${apiKey.reveal()}`,
    'stripe-version': API_VERSION,
    ...(method === 'POST' && { 'content-type': 'application/x-www-form-urlencoded' }),
    ...(key !== undefined && { 'idempotency-key': key }),
  };
  if (method === 'GET') return { method, path: form ? `${path}?${form}` : path, headers, body: undefined };
  return { method, path, headers, body: form };
}

/**
 * Fields of a payment method for the card. Creating the method charges nothing.
 *
 * @param token Stripe's token for the card behind a wallet.
 */
export function paymentMethodFields(
  { customerPayer }: PaymentAttempt,
  method: CardMethod | { readonly token: string },
): Fields {
  const card = 'token' in method ? undefined : method.card;
  return {
    type: 'card',
    card: 'token' in method ? { token: method.token } : cardFields(method.card),
    billing_details: {
      name: (card ? card.holderName : nameOf(customerPayer)) || undefined,
      email: customerPayer.email || undefined,
      phone: phoneNumberOf(customerPayer),
      address: addressOf(customerPayer.billingAddress),
    },
  } satisfies Wire<Stripe.PaymentMethodCreateParams>;
}

function cardFields({ number, securityCode, expirationMonth, expirationYear }: AttemptCard) {
  return {
    number: number.reveal(),
    exp_month: expirationMonth,
    exp_year: 2000 + expirationYear,
    cvc: securityCode?.reveal(),
  } satisfies Wire<Stripe.PaymentMethodCreateParams.Card1>;
}

/** Returns a payer's full name; '' if it is unknown. */
export function nameOf({ firstName, lastName }: CustomerPayer): string {
  return [firstName, lastName].filter(Boolean).join(' ');
}

/**
 * Fields of a PaymentIntent without a payment method. Creating the intent charges nothing. The fields are a pure
 * function of the stored payment: a look-up sends them again, and Stripe compares every field.
 *
 * @param money in Stripe's units.
 */
export function intentFields(
  facts: AttemptFacts,
  money: Money,
  { capture, softDescriptor }: Pick<ChargedMethod, 'capture' | 'softDescriptor'>,
): Fields {
  const { description, metadata } = describedBy(facts);
  return {
    amount: Number(money.minorUnits),
    currency: money.currency.toLowerCase(),
    capture_method: capture ? 'automatic' : 'manual',
    payment_method_types: ['card'],
    statement_descriptor_suffix: descriptorOf(softDescriptor),
    description,
    shipping: shippingOf(facts.customerPayer),
    metadata,
  } satisfies Wire<Stripe.PaymentIntentCreateParams>;
}

/** Fields of a PaymentIntent that describe the payment and lead back to it. */
export function describedBy(facts: AttemptFacts) {
  return {
    description: facts.description.slice(0, MAX_DESCRIPTION_LENGTH) || undefined,
    metadata: {
      ...metadataOf(facts),
      transaction_id: facts.transactionId,
      payment_id: facts.paymentId,
      merchant_order_id: facts.merchantOrderId || undefined,
      merchant_reference: facts.merchantReference || undefined,
      booking_reference: facts.additionalData?.airline?.pnr || undefined,
    } as Record<string, string>,
  } satisfies Wire<Stripe.PaymentIntentCreateParams>;
}

/** Names in an intent's metadata that are reserved for us: references, and notes that operations add. */
const OUR_NAMES: ReadonlySet<string> = new Set([
  ...['transaction_id', 'payment_id', 'merchant_order_id', 'merchant_reference', 'booking_reference'],
  ...['capture_transaction_id', 'closed'],
]);

/** Returns the merchant's metadata without entries that Stripe would refuse, and with room for ours. */
function metadataOf({ metadata }: AttemptFacts): Record<string, string> {
  const kept = metadata.filter(
    ({ key, value }) =>
      /^[^[\]]{1,40}$/.test(key) && !OUR_NAMES.has(key) && value !== '' && value.length <= MAX_METADATA_VALUE,
  );
  const room = MAX_METADATA - OUR_NAMES.size;
  return Object.fromEntries(kept.slice(0, room).map(({ key, value }) => [key, value]));
}

/** Fields of the only request of an attempt that moves money: it charges the payment method, or authorizes a charge. */
export function confirmFields(
  attempt: PaymentAttempt,
  method: ChargedMethod,
  paymentMethodId: string,
  settings: Pick<StripeSettings, 'requestThreeDSecure'>,
): Fields {
  const { threeDSecure, threeDSecureSetupId, installments } = method;
  const wanted = threeDSecureSetupId === undefined ? settings.requestThreeDSecure : 'any';
  return {
    payment_method: paymentMethodId,
    return_url: attempt.returnUrl,
    payment_method_options: {
      card: {
        request_three_d_secure: threeDSecure ? 'automatic' : wanted,
        ...(installments > 1 && {
          installments: {
            enabled: true,
            plan: { count: installments, interval: 'month', type: 'fixed_count' },
          },
        }),
        ...(threeDSecure && externalResultOf(threeDSecure)),
      },
    },
    expand: ['latest_charge'],
  } satisfies Wire<Stripe.PaymentIntentConfirmParams>;
}

/** Returns the names of fields that Stripe requires in 3-D Secure results and that these results lack. */
export function missingForResults(result: ThreeDSecure): string[] {
  const required = ['version', 'cryptogram', idOfResult(result)] as const;
  return required.filter((name) => !result[name]).map((name) => ThreeDSecureSchema.field[name].name);
}

/** Returns the field with the id by which issuers identify an authentication: before version 2, only the XID exists. */
function idOfResult({ version }: ThreeDSecure): 'transactionId' | 'directoryServerTransactionId' {
  return version?.startsWith('1') ? 'transactionId' : 'directoryServerTransactionId';
}

/** Results of external 3-D Secure. The types of the API version above lack these newer fields. */
function externalResultOf(result: ThreeDSecure): Fields {
  return {
    three_d_secure: {
      version: result.version,
      cryptogram: result.cryptogram,
      transaction_id: result[idOfResult(result)],
      electronic_commerce_indicator: result.electronicCommerceIndicator?.padStart(2, '0'),
    },
  };
}

/** Fields of a capture. They put the capture's transaction id in the intent's metadata. */
export function captureFields(operation: Operation, money: Money): Fields {
  return {
    amount_to_capture: Number(money.minorUnits),
    metadata: { capture_transaction_id: operation.transactionId },
    expand: ['latest_charge'],
  } satisfies Wire<Stripe.PaymentIntentCaptureParams>;
}

/** Fields of a cancel, which releases an authorization. */
export function cancelFields({ reason }: Operation): Fields {
  return {
    cancellation_reason: reasonOf(reason),
    expand: ['latest_charge'],
  } satisfies Wire<Stripe.PaymentIntentCancelParams>;
}

/** Fields of a refund. */
export function refundFields(operation: Operation, money: Money, intentId: string): Fields {
  return {
    payment_intent: intentId,
    amount: Number(money.minorUnits),
    reason: reasonOf(operation.reason),
    metadata: {
      transaction_id: operation.transactionId,
      merchant_reference: operation.merchantReference || undefined,
    } as Record<string, string>,
  } satisfies Wire<Stripe.RefundCreateParams>;
}

function reasonOf(reason: string | undefined): Stripe.RefundCreateParams.Reason | undefined {
  switch (reason) {
    case 'DUPLICATE':
      return 'duplicate';
    case 'FRAUDULENT':
      return 'fraudulent';
    case 'REQUESTED_BY_CUSTOMER':
      return 'requested_by_customer';
    default:
      return undefined;
  }
}

/** Returns an address as Stripe takes it; undefined if there is none. */
export function addressOf(address: Address | undefined) {
  if (!address) return undefined;
  const { addressLine1, addressLine2, neighborhood, city, state, zipCode, country } = address;
  return {
    line1: addressLine1 || undefined,
    line2: [addressLine2, neighborhood].filter(Boolean).join(', ') || undefined,
    city: city || undefined,
    state: state || undefined,
    postal_code: zipCode || undefined,
    country: country || undefined,
  } satisfies Wire<Stripe.AddressParam>;
}

/** Stripe requires both a name and an address, or neither. */
function shippingOf(payer: CustomerPayer) {
  const name = nameOf(payer);
  const address = addressOf(payer.shippingAddress);
  return name !== '' && address?.line1 ? { name, phone: phoneNumberOf(payer), address } : undefined;
}

const MAX_LENGTH = 22;
/** Matches characters that Stripe does not allow on a statement, after accents are separated from their letters. */
const NOT_ALLOWED = /[^\x20-\x7e]|[<>\\'"*]/g;
/** Latin letters that are not a plain letter with an accent. */
const PLAIN: Readonly<Record<string, string>> = {
  ...{ ß: 'ss', ẞ: 'SS', æ: 'ae', Æ: 'AE', œ: 'oe', Œ: 'OE', ø: 'o', Ø: 'O', ł: 'l', Ł: 'L' },
  ...{ đ: 'd', Đ: 'D', ð: 'd', Ð: 'D', þ: 'th', Þ: 'TH', ı: 'i' },
};
const NOT_PLAIN = new RegExp(`[${Object.keys(PLAIN).join('')}]`, 'g');

/**
 * Returns the merchant's text for the cardholder's statement in the letters that Stripe allows.
 *
 * @returns undefined if no letter is left: Stripe refuses such a string, so the account's default is used.
 */
function descriptorOf(softDescriptor: string): string | undefined {
  const latin = softDescriptor
    .normalize('NFKD')
    .replace(NOT_PLAIN, (letter) => PLAIN[letter] ?? '')
    .replace(NOT_ALLOWED, '');
  const suffix = latin.trim().slice(0, MAX_LENGTH).trim();
  return /[A-Za-z]/.test(suffix) ? suffix : undefined;
}
