import type { Order } from '#gen/payments/v1/additional_data_pb.js';
import type { Address, CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import type { Money } from '#src/money.ts';
import type { Secret } from '#src/secret.ts';
import type { HttpRequest } from '../kit/http-client.ts';
import { orderLinesOf } from '../kit/order-lines.ts';
import type { SendTarget } from '../kit/provider-client.ts';
import { stateCodeOf } from '../kit/state-code.ts';
import type { AttemptFacts } from '../port/attempt.ts';
import type { Operation } from '../port/connector.ts';
import { type PayPalAmount, toPayPalAmount } from './money.ts';
import type { PayPalSettings } from './settings.ts';

/** A call to PayPal's API, without the token. */
export type ApiRequest = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** `PayPal-Request-Id`: a repeat with the same id counts as the same request. */
  readonly requestId?: string;
  readonly body?: string;
};

/** Sends a request within its call's deadline. */
export type Send = SendTarget<ApiRequest>;

const MAX_TEXT = 127;
const MAX_NOTE = 255;
const MAX_NAME = 140;
const MAX_EMAIL = 254;

/** Builds the HTTP request, with the token. */
export function httpRequest({ method, path, requestId, body }: ApiRequest, token: Secret): HttpRequest {
  const headers = {
    authorization: `Bearer ${token.reveal()}`,
    accept: 'application/json',
    ...(body !== undefined && { 'content-type': 'application/json', prefer: 'return=representation' }),
    ...(requestId !== undefined && { 'paypal-request-id': requestId }),
  };
  return { method, path, headers, body };
}

/**
 * Builds the request for an order that the payer then approves. It is a pure function of the record: a repeat under the
 * same id returns the same order in its current state.
 */
export function createOrder(
  attempt: AttemptFacts,
  amount: PayPalAmount,
  settings: PayPalSettings,
): ApiRequest & { readonly body: string } {
  const { transactionId, description, returnUrl, cancelUrl, customerPayer } = attempt;
  const shipping = settings.sendsShippingAddress ? shippingOf(customerPayer) : undefined;
  const { email } = customerPayer;
  return post('/v2/checkout/orders', transactionId, {
    intent: 'CAPTURE',
    purchase_units: [
      {
        reference_id: transactionId,
        custom_id: transactionId,
        invoice_id: transactionId,
        description: cut(description, MAX_TEXT),
        amount,
        ...itemsOf(attempt.additionalData?.order, attempt.money),
        shipping,
      },
    ],
    payment_source: {
      paypal: {
        email_address: email && email.length >= 3 && email.length <= MAX_EMAIL ? email : undefined,
        name: nameOf(customerPayer),
        experience_context: {
          brand_name: settings.brandName,
          locale: settings.locale,
          shipping_preference: shipping ? 'SET_PROVIDED_ADDRESS' : 'NO_SHIPPING',
          user_action: 'PAY_NOW',
          return_url: returnUrl || undefined,
          cancel_url: cancelUrl || undefined,
        },
      },
    },
  });
}

/** Builds the request for an order's current state. */
export function getOrder(orderId: string): ApiRequest {
  return { method: 'GET', path: `/v2/checkout/orders/${orderId}` };
}

/** Builds the request that takes the money of an approved order. */
export function captureOrder(orderId: string, transactionId: string): ApiRequest {
  return post(`/v2/checkout/orders/${orderId}/capture`, `${transactionId}:capture`, {});
}

/** Builds the request for a capture's current state. */
export function getCapture(captureId: string): ApiRequest {
  return { method: 'GET', path: `/v2/payments/captures/${captureId}` };
}

/** Builds the request that refunds captured money. */
export function refundCapture(
  { transactionId, description }: Pick<Operation, 'transactionId' | 'description'>,
  captureId: string,
  amount: PayPalAmount,
): ApiRequest {
  return post(`/v2/payments/captures/${captureId}/refund`, transactionId, {
    amount,
    custom_id: transactionId,
    invoice_id: transactionId,
    note_to_payer: cut(oneLine(description), MAX_NOTE),
  });
}

/** Builds the request for a refund's current state. */
export function getRefund(refundId: string): ApiRequest {
  return { method: 'GET', path: `/v2/payments/refunds/${refundId}` };
}

/** Requests the account of the access token. */
export function getUser(): ApiRequest {
  return { method: 'GET', path: '/v1/identity/oauth2/userinfo?schema=paypalv1.1' };
}

function post(path: string, requestId: string, body: object): ApiRequest & { readonly body: string } {
  return { method: 'POST', path, requestId, body: JSON.stringify(body) };
}

/** Returns the items of the order if they add up to exactly the amount and PayPal can express each of them. */
function itemsOf(order: Order | undefined, money: Money): object {
  const lines = orderLinesOf(order, money);
  if (!lines) return {};
  const { shipping, fee, itemTotal } = lines;
  const parts = [
    itemTotal,
    ...lines.items.map(({ unit }) => unit),
    ...(shipping ? [shipping] : []),
    ...(fee ? [fee] : []),
  ];
  if (!parts.every(toPayPalAmount)) return {};
  return {
    amount: {
      ...toPayPalAmount(money),
      breakdown: {
        item_total: toPayPalAmount(itemTotal),
        shipping: shipping && toPayPalAmount(shipping),
        handling: fee && toPayPalAmount(fee),
      },
    },
    items: lines.items.map(({ item, unit, quantity }) => ({
      name: cut(item.name, MAX_TEXT) ?? 'Item',
      quantity: String(quantity),
      unit_amount: toPayPalAmount(unit),
      sku: cut(item.skuCode, MAX_TEXT),
    })),
  };
}

function nameOf({ firstName, lastName }: CustomerPayer): object | undefined {
  const [given_name, surname] = [cut(firstName, MAX_NAME), cut(lastName, MAX_NAME)];
  return given_name || surname ? { given_name, surname } : undefined;
}

function shippingOf({ shippingAddress, firstName, lastName }: CustomerPayer): object | undefined {
  if (!shippingAddress?.country || !shippingAddress.addressLine1) return undefined;
  const fullName = cut([firstName, lastName].filter(Boolean).join(' '), 300);
  return { name: fullName && { full_name: fullName }, address: addressOf(shippingAddress) };
}

function addressOf(address: Address): object {
  return {
    address_line_1: address.addressLine1,
    address_line_2: address.addressLine2 || undefined,
    admin_area_2: cut(address.city, 120),
    admin_area_1: stateCodeOf(address.state ?? '', address.country ?? '') ?? (address.state || undefined),
    postal_code: cut(address.zipCode, 60),
    country_code: address.country,
  };
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** Cuts a string to a number of characters, without splitting one; undefined if the string is empty. */
function cut(text: string | undefined, length: number): string | undefined {
  if (!text) return undefined;
  return text.length <= length ? text : text.slice(0, length).replace(/[\ud800-\udbff]$/, '');
}
