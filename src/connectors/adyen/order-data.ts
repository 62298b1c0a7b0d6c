import type { Airline, Order } from '#gen/payments/v1/additional_data_pb.js';
import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import { roundMoney } from '#src/money.ts';
import { toAdyenAmount } from './money.ts';

const DATE_AND_TIME = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}))?/;

/** Converts the items of an order to Adyen's `lineItems`. */
export function lineItemsOf({ items }: Order, currency: string): readonly object[] | undefined {
  if (items.length === 0) return undefined;
  return items.map((item) => {
    const unit = item.unitAmount && roundMoney(item.unitAmount.value, currency);
    return {
      id: item.id || undefined,
      sku: item.skuCode || undefined,
      description: item.name || undefined,
      quantity: item.quantity,
      amountIncludingTax: unit && toAdyenAmount(unit)?.value,
      itemCategory: item.category || undefined,
      brand: item.brand || undefined,
    };
  });
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
