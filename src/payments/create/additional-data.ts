import { create } from '@bufbuild/protobuf';
import type { Decimal } from '#gen/google/type/decimal_pb.js';
import {
  type AdditionalData,
  AdditionalDataSchema,
  type Airline,
  AirlineLegSchema,
  AirlineSchema,
  type AirlineTicket,
  AirlineTicketSchema,
  type Order,
  OrderItemSchema,
  OrderSchema,
} from '#gen/payments/v1/additional_data_pb.js';
import { parseMoney, toDecimal } from '#src/money.ts';

/**
 * Returns the additional data for the record: as sent, with every amount padded to its currency's number of decimal
 * places.
 */
export function recordedAdditionalData(
  sent: AdditionalData | undefined,
  currency: string,
): AdditionalData | undefined {
  if (!sent) return undefined;
  return create(AdditionalDataSchema, {
    airline: sent.airline && recordedAirline(sent.airline, currency),
    order: sent.order && recordedOrder(sent.order, currency),
    ...(sent.sellerDetails && { sellerDetails: sent.sellerDetails }),
  });
}

function recordedOrder(sent: Order, currency: string): Order {
  return create(OrderSchema, {
    ...sent,
    feeAmount: inDigitsOf(currency, sent.feeAmount),
    shippingAmount: inDigitsOf(currency, sent.shippingAmount),
    tipAmount: inDigitsOf(currency, sent.tipAmount),
    items: sent.items.map((item) =>
      create(OrderItemSchema, { ...item, unitAmount: inDigitsOf(currency, item.unitAmount) }),
    ),
  });
}

/** Records a single ticket as `ticket`. With several, `ticket` is the first and `tickets` holds all. */
function recordedAirline(sent: Airline, currency: string): Airline {
  const tickets = (sent.tickets.length === 0 && sent.ticket ? [sent.ticket] : sent.tickets).map((ticket) =>
    recordedTicket(ticket, currency),
  );
  return create(AirlineSchema, {
    pnr: sent.pnr,
    legs: sent.legs.map((leg) =>
      create(AirlineLegSchema, {
        ...leg,
        baseFare: inDigitsOf(leg.baseFareCurrency ?? currency, leg.baseFare),
      }),
    ),
    passengers: sent.passengers,
    tickets: tickets.length > 1 ? tickets : [],
    ticket: tickets[0],
  });
}

function recordedTicket(sent: AirlineTicket, currency: string): AirlineTicket {
  return create(AirlineTicketSchema, {
    ...sent,
    totalFareAmount: inDigitsOf(currency, sent.totalFareAmount),
    totalTaxAmount: inDigitsOf(currency, sent.totalTaxAmount),
    totalFeeAmount: inDigitsOf(currency, sent.totalFeeAmount),
  });
}

/** Pads a decimal to its currency's number of decimal places. A decimal with more places stays as sent. */
function inDigitsOf(currency: string, decimal: Decimal | undefined): Decimal | undefined {
  const money = decimal && parseMoney(decimal.value, currency);
  return money ? toDecimal(money) : decimal;
}
