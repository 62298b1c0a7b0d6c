import type { Decimal } from '#gen/google/type/decimal_pb.js';
import type { Airline, Order } from '#gen/payments/v1/additional_data_pb.js';
import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import type { AttemptCard, PaymentAttempt } from '#src/connectors/attempt.ts';
import { assertNever, type LookUp } from '#src/connectors/connector.ts';
import type { HttpRequest } from '#src/connectors/http-client.ts';
import { parseMoney } from '#src/money.ts';
import type { SandboxSettings } from './settings.ts';

/**
 * The request that an attempt becomes. Its body holds the card number and the security code: it is for the provider's
 * socket only. Absent values are left out.
 */
export function toProvider(attempt: PaymentAttempt, settings: SandboxSettings): HttpRequest {
  const { method } = attempt;
  switch (method.kind) {
    case 'card':
      return post('/v1/charges', attempt, settings, {
        capture: method.capture,
        installments: method.installments,
        three_d_secure_setup_id: method.threeDSecureSetupId,
        card: cardOf(method.card),
      });
    case 'wallet_redirect':
      return post('/v1/wallet-orders', attempt, settings, {
        wallet: method.type,
        return_url: attempt.returnUrl,
      });
    case 'wallet_enrollment':
      return post('/v1/wallet-enrollments', attempt, settings, {
        wallet: method.type,
        wallet_token: method.token,
        card_type: method.cardType,
      });
    default:
      return assertNever(method);
  }
}

/** The request that asks what became of an attempt; or has it closed when the provider has not heard of it. */
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

function post(
  path: string,
  attempt: PaymentAttempt,
  settings: SandboxSettings,
  specific: object,
): HttpRequest {
  const { currency } = attempt.money;
  const { order, airline } = attempt.additionalData ?? {};
  return {
    method: 'POST',
    path: settings.basePath + path,
    headers: {
      authorization: `Bearer ${settings.apiKey.reveal()}`,
      'content-type': 'application/json',
      'idempotency-key': attempt.transactionId,
      'sandbox-acquirer': settings.acquirer,
      ...(settings.accountId !== undefined && { 'sandbox-account': settings.accountId }),
    },
    body: JSON.stringify({
      amount: Number(attempt.money.minorUnits),
      currency,
      country: attempt.country,
      reference: attempt.merchantReference,
      order_number: attempt.merchantOrderId,
      description: attempt.description,
      payer: payerOf(attempt.customerPayer),
      order: order && orderOf(order, currency),
      airline: airline && airlineOf(airline),
      ...specific,
    }),
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

function payerOf(payer: CustomerPayer): object {
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
  // A single ticket may stand alone.
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

/** A decimal as the provider's integer; left out when it cannot be told exactly. */
function minorUnits(decimal: Decimal | undefined, currency: string): number | undefined {
  const units = decimal && Number(parseMoney(decimal.value, currency)?.minorUnits);
  return Number.isSafeInteger(units) ? units : undefined;
}
