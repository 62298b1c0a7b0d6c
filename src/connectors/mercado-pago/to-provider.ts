import type { Payer, PreferenceRequest } from 'mercadopago/dist/clients/preference/commonTypes.js';
import type { Address, CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import type { Money } from '#src/money.ts';
import type { HttpRequest } from '../kit/http-client.ts';
import { type OrderLines, orderLinesOf } from '../kit/order-lines.ts';
import { phoneNumberOf } from '../kit/phone-number.ts';
import type { ProviderCall, SendTarget } from '../kit/provider-client.ts';
import type { AttemptFacts, PaymentAttempt } from '../port/attempt.ts';
import { toAmount } from './money.ts';
import type { MercadoPagoSettings } from './settings.ts';

/** A request without its credentials. */
export type Target = Pick<HttpRequest, 'method' | 'path'> & {
  readonly body?: object;
  readonly idempotencyKey?: string;
  /** true: a Pix refund that waits for the central bank is shown, instead of refused although it may go through. */
  readonly showsRefundsInProcess?: true;
};

/** The context of one call of a connection. */
export type Call = ProviderCall<Target, MercadoPagoSettings>;

/** Sends a request within its call's deadline. */
export type Send = SendTarget<Target>;

/** Greatest length of an item's title, and of a payment's description. */
export const MAX_TITLE = 256;
const MAX_NOTIFICATION_URL = 248;
/** More payments than any payer will attempt on one preference. */
const MAX_PAYMENTS = 50;
/** Title of an item or a payment without one. */
export const UNTITLED = 'Payment';

/** Adds the parts common to all requests. */
export function httpRequest(target: Target, { accessToken }: MercadoPagoSettings): HttpRequest {
  const { method, path, body, idempotencyKey, showsRefundsInProcess } = target;
  return {
    method,
    path,
    headers: {
      authorization: `Bearer ${accessToken.reveal()}`,
      ...(body && { 'content-type': 'application/json' }),
      ...(idempotencyKey !== undefined && { 'x-idempotency-key': idempotencyKey }),
      ...(showsRefundsInProcess && { 'x-render-in-process-refunds': 'true' }),
    },
    body: body && JSON.stringify(body),
  };
}

/** Builds the request for a preference: a page on which the payer pays. It moves no money. */
export function createPreference(
  attempt: PaymentAttempt,
  amount: number,
  settings: MercadoPagoSettings,
): Target & { readonly body: PreferenceRequest } {
  const { returnUrl, cancelUrl, expiresAtMs, transactionId } = attempt;
  const expiresAt = dateTime(expiresAtMs);
  const { statementDescriptor, excludedPaymentTypes } = settings;
  const body: PreferenceRequest = {
    items: itemsOf(attempt, amount),
    external_reference: transactionId,
    back_urls: { success: returnUrl, pending: returnUrl, failure: cancelUrl },
    ...(returnUrl.startsWith('https:') && { auto_return: 'approved' }),
    ...notificationUrlOf(attempt, settings),
    payer: payerOf(attempt.customerPayer),
    ...(statementDescriptor !== '' && { statement_descriptor: statementDescriptor }),
    expires: true,
    expiration_date_to: expiresAt,
    date_of_expiration: expiresAt,
    ...(settings.binaryMode && { binary_mode: true }),
    ...(excludedPaymentTypes.length > 0 && {
      payment_methods: { excluded_payment_types: excludedPaymentTypes.map((id) => ({ id })) },
    }),
    ...metadataOf(attempt),
  };
  return { method: 'POST', path: '/checkout/preferences', body, idempotencyKey: transactionId };
}

/** Returns the field that requests notifications, unless they could not be verified. */
export function notificationUrlOf(
  attempt: Pick<AttemptFacts, 'notificationUrl'>,
  { webhookSecrets }: MercadoPagoSettings,
): { readonly notification_url?: string } {
  const url = `${attempt.notificationUrl}?source_news=webhooks`;
  return webhookSecrets.length > 0 && url.length <= MAX_NOTIFICATION_URL ? { notification_url: url } : {};
}

/** Returns the field with the merchant's own data. */
export function metadataOf({ metadata }: Pick<AttemptFacts, 'metadata'>): {
  readonly metadata?: Record<string, string>;
} {
  if (metadata.length === 0) return {};
  return { metadata: Object.fromEntries(metadata.map(({ key, value }) => [key, value])) };
}

/** Builds the request that reads a preference. */
export function getPreference(preferenceId: string): Target {
  return { method: 'GET', path: `/checkout/preferences/${preferenceId}` };
}

/** Time by which the end of a closed preference is backdated, since our clock may be ahead of the provider's. */
export const BACKDATED_MS = 60 * 60_000;

/** Builds the request that closes a preference, after which nobody can pay it. */
export function closePreference(preferenceId: string, nowMs: number): Target {
  const body = { expires: true, expiration_date_to: dateTime(nowMs - BACKDATED_MS) };
  return { method: 'PUT', path: `/checkout/preferences/${preferenceId}`, body };
}

/** Builds the request that searches for a transaction's payments, the newest first. */
export function searchPayments(transactionId: string): Target {
  const search = new URLSearchParams({
    external_reference: transactionId,
    sort: 'date_created',
    criteria: 'desc',
    limit: String(MAX_PAYMENTS),
  });
  return { method: 'GET', path: `/v1/payments/search?${search}` };
}

/** Builds the request that reads a payment. */
export function getPayment(paymentId: string): Target {
  return { method: 'GET', path: `/v1/payments/${paymentId}` };
}

/** Builds the request that reads a chargeback. */
export function getChargeback(chargebackId: string): Target {
  return { method: 'GET', path: `/v1/chargebacks/${chargebackId}` };
}

/** Builds the request that reads the access token's user. */
export function getUser(): Target {
  return { method: 'GET', path: '/users/me' };
}

/** Builds the request that refunds a payment. A repeat under the same key returns the first refund. */
export function createRefund(paymentId: string, amount: number, transactionId: string): Target {
  const path = `/v1/payments/${paymentId}/refunds`;
  return {
    ...{ method: 'POST', path, body: { amount }, idempotencyKey: transactionId },
    showsRefundsInProcess: true,
  };
}

/** Builds the request that lists a payment's refunds. */
export function listRefunds(paymentId: string): Target {
  return { method: 'GET', path: `/v1/payments/${paymentId}/refunds`, showsRefundsInProcess: true };
}

/** Formats a time as ISO 8601 with an offset and milliseconds. */
export function dateTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '+00:00');
}

/** Returns a payment's items: the order's if they add up to the amount, or else one item with the whole amount. */
export function itemsOf(attempt: AttemptFacts, amount: number): PreferenceRequest['items'] {
  const { additionalData, money } = attempt;
  const lines = orderLinesOf(additionalData?.order, money);
  const given = lines && fromLines(lines);
  if (given) return given;
  const title = (attempt.description || UNTITLED).slice(0, MAX_TITLE);
  const id = attempt.merchantOrderId || attempt.paymentId;
  return [{ id, title, quantity: 1, unit_price: amount, currency_id: money.currency }];
}

/** @returns undefined if Mercado Pago cannot express an amount. */
function fromLines({ items, shipping, fee }: OrderLines): PreferenceRequest['items'] | undefined {
  const lines = items.map(({ item, unit, quantity }, index) => ({
    id: item.id || item.skuCode || String(index + 1),
    title: (item.name || UNTITLED).slice(0, MAX_TITLE),
    ...(item.category && { category_id: item.category }),
    quantity,
    unit_price: toAmount(unit),
    currency_id: unit.currency,
  }));
  const more = Object.entries({ Shipping: shipping, Fee: fee }).flatMap(([title, money]) =>
    money && money.minorUnits > 0n
      ? [
          {
            id: title.toLowerCase(),
            title,
            quantity: 1,
            unit_price: toAmount(money),
            currency_id: money.currency,
          },
        ]
      : [],
  );
  const all = [...lines, ...more].flatMap(({ unit_price, ...line }) =>
    unit_price === undefined ? [] : [{ ...line, unit_price }],
  );
  return all.length === lines.length + more.length ? all : undefined;
}

function payerOf(payer: CustomerPayer): Payer {
  const { document } = payer;
  const phoneNumber = phoneNumberOf(payer);
  const address = payer.billingAddress ?? payer.shippingAddress;
  return {
    ...(payer.firstName && { name: payer.firstName }),
    ...(payer.lastName && { surname: payer.lastName }),
    ...(payer.email && { email: payer.email }),
    ...(phoneNumber && { phone: { number: phoneNumber } }),
    ...(document?.documentType &&
      document.documentNumber && {
        identification: { type: document.documentType, number: document.documentNumber },
      }),
    ...(address && { address: addressOf(address) }),
  };
}

function addressOf({ addressLine1, zipCode }: Address): NonNullable<Payer['address']> {
  return { ...(zipCode && { zip_code: zipCode }), ...(addressLine1 && { street_name: addressLine1 }) };
}

/** Returns an amount to pay or to refund, in the account's currency. */
export function amountIn(money: Money, settings: Pick<MercadoPagoSettings, 'currency'>): number | undefined {
  return money.currency === settings.currency ? toAmount(money) : undefined;
}
