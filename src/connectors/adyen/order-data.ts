import type { Airline } from '#gen/payments/v1/additional_data_pb.js';
import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import { type OrderLines, orderLinesOf } from '../kit/order-lines.ts';
import type { AttemptFacts } from '../port/attempt.ts';
import { type AdyenAmount, toAdyenAmount } from './money.ts';

const DATE_AND_TIME = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}))?/;

/** Adyen's payment methods whose invoices need items: Oney, Affirm, Afterpay, Clearpay, Klarna, Ratepay, Riverty, Zip. */
const NEEDS_ITEMS = /^(facilypay_|affirm|afterpay|clearpay|klarna|ratepay|riverty|zip)/;
const MAX_DESCRIPTION_LENGTH = 100;

/**
 * Returns Adyen's `lineItems`: the order's items, with its shipping and fee, if they add up to the amount. Otherwise, a
 * payment method that needs items gets one with the whole amount, and every other method gets none.
 */
export function lineItemsOf(
  { additionalData, money, description }: AttemptFacts,
  amount: AdyenAmount,
  methodType: string,
): readonly object[] | undefined {
  const whole = {
    description: description.slice(0, MAX_DESCRIPTION_LENGTH) || 'Payment',
    quantity: 1,
    amountIncludingTax: amount.value,
  };
  const lines = orderLinesOf(additionalData?.order, money);
  return (lines && fromLines(lines)) ?? (NEEDS_ITEMS.test(methodType) ? [whole] : undefined);
}

/** @returns undefined if Adyen cannot express an amount. */
function fromLines({ items, shipping, fee }: OrderLines): readonly object[] | undefined {
  const lines = items.map(({ item, unit, quantity }) => ({
    id: item.id || undefined,
    sku: item.skuCode || undefined,
    description: item.name || undefined,
    quantity,
    amountIncludingTax: toAdyenAmount(unit)?.value,
    itemCategory: item.category || undefined,
    brand: item.brand || undefined,
  }));
  const more = Object.entries({ Shipping: shipping, Fee: fee }).flatMap(([description, money]) =>
    money && money.minorUnits > 0n
      ? [{ description, quantity: 1, amountIncludingTax: toAdyenAmount(money)?.value }]
      : [],
  );
  const all = [...lines, ...more];
  return all.every(({ amountIncludingTax }) => amountIncludingTax !== undefined) ? all : undefined;
}

/** Converts air travel to Adyen's `enhancedSchemeData.airline`; undefined if no traveler is named. */
export function airlineOf(airline: Airline, payer: CustomerPayer): object | undefined {
  const [ticket] = airline.ticket ? [airline.ticket] : airline.tickets;
  const first = airline.passengers[0] ?? payer;
  const passengerName = [first.firstName, first.lastName].filter(Boolean).join(' ');
  if (passengerName === '') return undefined;
  const address = ticket?.issue && [ticket.issue.address, ticket.issue.city].filter(Boolean).join(', ');
  return {
    passengerName,
    customerReferenceNumber: airline.pnr || undefined,
    legs: airline.legs.map((leg) => ({
      carrierCode: leg.carrierCode || undefined,
      flightNumber: leg.flightNumber || undefined,
      departureAirportCode: leg.departureAirport || undefined,
      destinationAirportCode: leg.arrivalAirport || undefined,
      dateOfTravel: dateTimeOf(leg.departureDatetime),
      classOfTravel: leg.fareClassCode || undefined,
      fareBasisCode: leg.fareBasisCode || undefined,
      stopOverCode: leg.stopoverCode || undefined,
    })),
    passengers: airline.passengers.map(({ firstName, lastName, dateOfBirth }) => ({
      firstName: firstName || undefined,
      lastName: lastName || undefined,
      dateOfBirth: dateOfBirth || undefined,
    })),
    ticket: ticket && {
      number: ticket.ticketNumber || undefined,
      issueDate: dateTimeOf(ticket.issue?.date)?.slice(0, 10),
      issueAddress: address || undefined,
    },
    travelAgency: ticket?.issue && {
      code: ticket.issue.travelAgentCode || undefined,
      name: ticket.issue.travelAgentName || undefined,
    },
  };
}

/** Converts local time to the card schemes' form of RFC 3339; undefined if it is unreadable. */
function dateTimeOf(text: string | undefined): string | undefined {
  const [, date, time = '00:00'] = DATE_AND_TIME.exec(text ?? '') ?? [];
  const given = `${date}T${time}:00Z`;
  return date !== undefined && !Number.isNaN(Date.parse(given)) ? given : undefined;
}
