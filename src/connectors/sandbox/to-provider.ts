import type { Decimal } from '#gen/google/type/decimal_pb.js';
import type { Airline, Order } from '#gen/payments/v1/additional_data_pb.js';
import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import type { StoredCredentials, ThreeDSecure } from '#gen/payments/v1/payment_method_pb.js';
import { roundMoney } from '#src/money.ts';
import type { HttpRequest } from '../kit/http-client.ts';
import type { SendTarget } from '../kit/provider-client.ts';
import type { AttemptCard, PaymentAttempt } from '../port/attempt.ts';
import type { LookUp, Operation, OperationKind } from '../port/connector.ts';
import { assertNever } from '../port/outcome.ts';
import type { SandboxSettings } from './settings.ts';

/** Sends a request within its call's deadline. */
export type Send = SendTarget<HttpRequest>;

/** Largest amount that the provider's JSON numbers represent exactly. */
export const MAX_MINOR_UNITS = BigInt(Number.MAX_SAFE_INTEGER);

const OPERATION_PATHS: Readonly<Record<OperationKind, string>> = {
  capture: '/v1/captures',
  cancel: '/v1/cancellations',
  refund: '/v1/refunds',
};

/**
 * Builds the request for an attempt. The body contains the card number and the security code, and must only be written
 * to the provider's socket. Absent values are left out.
 */
export function paymentRequest(attempt: PaymentAttempt, settings: SandboxSettings): HttpRequest {
  const { method } = attempt;
  const post = (path: string, specific: object) =>
    postRequest(settings, path, attempt.transactionId, { ...factsOf(attempt, settings), ...specific });
  switch (method.by) {
    case 'card':
    case 'wallet_token':
      return post(method.verify ? '/v1/verifications' : '/v1/charges', {
        ...payersWay(attempt),
        capture: method.capture,
        installments: method.installments,
        three_d_secure_setup_id: method.threeDSecureSetupId,
        three_d_secure: method.threeDSecure && threeDSecureOf(method.threeDSecure),
        stored_credentials: method.storedCredentials && storedCredentialsOf(method.storedCredentials),
        soft_descriptor: method.softDescriptor || undefined,
        ...(method.by === 'card'
          ? { card: cardOf(method.card) }
          : { token: { wallet: method.type, data: method.token.reveal() } }),
      });
    case 'payer':
      if (method.show === 'page')
        return post('/v1/wallet-orders', { ...payersWay(attempt), wallet: method.type });
      return post('/v1/codes', {
        ...payersWay(attempt),
        method: settings.methods[method.type] ?? method.type,
        bank: method.bankId || undefined,
        account_type: method.accountType,
      });
    case 'wallet':
      return post('/v1/wallet-enrollments', {
        wallet: method.type,
        wallet_token: method.enrolled?.token,
        card_type: method.cardType,
      });
    default:
      return assertNever(method);
  }
}

/** Builds the request for the banks of a method. */
export function banksRequest(type: string, settings: SandboxSettings): HttpRequest {
  const path = `${settings.basePath}/v1/banks?method=${encodeURIComponent(settings.methods[type] ?? type)}`;
  const headers = { authorization: `Bearer ${settings.apiKey.reveal()}` };
  return { method: 'GET', path, headers, body: undefined };
}

/** Builds the request for the account of the key. */
export function accountRequest({ basePath, apiKey, accountId }: SandboxSettings): HttpRequest {
  const headers = {
    authorization: `Bearer ${apiKey.reveal()}`,
    ...(accountId !== undefined && { 'sandbox-account': accountId }),
  };
  return { method: 'GET', path: `${basePath}/v1/account`, headers, body: undefined };
}

/** Builds the request for a capture, a cancel or a refund. */
export function operationRequest(
  kind: OperationKind,
  operation: Operation & { readonly isFinal?: boolean },
  settings: SandboxSettings,
): HttpRequest {
  const { payment, money } = operation;
  return postRequest(settings, OPERATION_PATHS[kind], operation.transactionId, {
    payment: payment.reference ?? payment.transactionId,
    ...(kind !== 'cancel' && { amount: Number(money.minorUnits), currency: money.currency }),
    final: operation.isFinal,
    reference: operation.merchantReference || undefined,
    description: operation.description || undefined,
    reason: operation.reason,
  });
}

/** Builds the request that takes the money of an approved order. */
export function completionRequest(query: LookUp, settings: SandboxSettings): HttpRequest {
  const { reference, transactionId } = query;
  const payment = reference ?? transactionId;
  return postRequest(settings, '/v1/completions', completionKey(transactionId), { payment });
}

/**
 * Returns the idempotency key of a transaction's completion. It never changes, so that a repeat cannot take money
 * twice.
 */
export function completionKey(transactionId: string): string {
  return `${transactionId}-complete`;
}

/** Builds the request for a transaction's outcome, or for closing a transaction that the provider has not received. */
export function lookUpRequest(
  query: Pick<LookUp, 'transactionId' | 'close'>,
  settings: SandboxSettings,
): HttpRequest {
  const path = `${settings.basePath}/v1/by-idempotency-key/${encodeURIComponent(query.transactionId)}`;
  const headers = { authorization: `Bearer ${settings.apiKey.reveal()}` };
  if (!query.close) return { method: 'GET', path, headers, body: undefined };
  return {
    method: 'POST',
    path: `${path}/close`,
    headers: { ...headers, 'content-type': 'application/json' },
    body: '{}',
  };
}

/** Builds a request that creates something under an idempotency key. */
export function postRequest(
  settings: SandboxSettings,
  path: string,
  idempotencyKey: string,
  body: object,
): HttpRequest {
  return {
    method: 'POST',
    path: settings.basePath + path,
    headers: {
      authorization: `Bearer ${settings.apiKey.reveal()}`,
      'content-type': 'application/json',
      'idempotency-key': idempotencyKey,
      'sandbox-acquirer': settings.acquirer,
      ...(settings.accountId !== undefined && { 'sandbox-account': settings.accountId }),
    },
    body: JSON.stringify(body),
  };
}

function factsOf(attempt: PaymentAttempt, settings: SandboxSettings): object {
  const { currency } = attempt.money;
  const { order, airline } = attempt.additionalData ?? {};
  // Do not request notifications that could not be verified.
  const isNotified = settings.notificationSecrets.length > 0 && attempt.notificationUrl !== '';
  return {
    amount: Number(attempt.money.minorUnits),
    currency,
    country: attempt.country,
    reference: attempt.merchantReference,
    order_number: attempt.merchantOrderId,
    description: attempt.description,
    notification_url: isNotified ? attempt.notificationUrl : undefined,
    payer: payerOf(attempt.customerPayer),
    order: order && orderOf(order, currency),
    airline: airline && airlineOf(airline),
  };
}

/** Returns the payer's ways back and the page's expiry. Only a wallet's page has a way to leave without paying. */
function payersWay({ returnUrl, cancelUrl, method, expiresAtMs }: PaymentAttempt): object {
  return {
    return_url: returnUrl || undefined,
    cancel_url: (method.by === 'payer' && cancelUrl) || undefined,
    expires_at: expiresAtMs > 0 ? new Date(expiresAtMs).toISOString() : undefined,
  };
}

function threeDSecureOf(results: ThreeDSecure): object {
  return {
    version: results.version,
    eci: results.electronicCommerceIndicator,
    cryptogram: results.cryptogram,
    transaction_id: results.transactionId,
    directory_server_transaction_id: results.directoryServerTransactionId,
  };
}

function storedCredentialsOf(credentials: StoredCredentials): object {
  return {
    reason: credentials.reason,
    usage: credentials.usage,
    network_transaction_id: credentials.networkTransactionId,
  };
}

function cardOf(card: AttemptCard): object {
  return {
    number: card.number.reveal(),
    exp_month: card.expirationMonth,
    exp_year: card.expirationYear,
    cvc: card.securityCode?.reveal(),
    holder: card.holderName,
  };
}

/** Returns the payer in the provider's form. */
export function payerOf(payer: CustomerPayer): object {
  return {
    first_name: payer.firstName,
    last_name: payer.lastName,
    email: payer.email,
    ip: payer.ipAddress,
    document: payer.document && {
      type: payer.document.documentType,
      number: payer.document.documentNumber,
    },
    phone: payer.phone && `${payer.phone.countryCode ?? ''} ${payer.phone.number ?? ''}`.trim(),
  };
}

function orderOf(order: Order, currency: string): object {
  return {
    fee: minorUnits(order.feeAmount, currency),
    shipping: minorUnits(order.shippingAmount, currency),
    items: order.items.map((item) => ({
      name: item.name,
      sku: item.skuCode,
      quantity: item.quantity,
      unit_amount: minorUnits(item.unitAmount, currency),
    })),
  };
}

function airlineOf(airline: Airline): object {
  // A single ticket may arrive outside a list.
  const tickets = airline.tickets.length === 0 && airline.ticket ? [airline.ticket] : airline.tickets;
  return {
    pnr: airline.pnr,
    legs: airline.legs.map((leg) => ({
      from: leg.departureAirport,
      to: leg.arrivalAirport,
      departs_at: leg.departureDatetime,
      carrier: leg.carrierCode,
      flight: leg.flightNumber,
    })),
    passengers: airline.passengers.map((passenger) => ({
      first_name: passenger.firstName,
      last_name: passenger.lastName,
    })),
    tickets: tickets.map((ticket) => ticket.ticketNumber ?? null),
  };
}

/** Rounds a decimal to the provider's integer; undefined if a JSON number cannot represent it. */
function minorUnits(decimal: Decimal | undefined, currency: string): number | undefined {
  const units = decimal && Number(roundMoney(decimal.value, currency)?.minorUnits);
  return Number.isSafeInteger(units) ? units : undefined;
}
