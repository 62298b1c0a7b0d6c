import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { CategoryDescriptor, Shipments } from 'mercadopago/dist/clients/commonTypes.js';
import type { AdditionalInfo, PayerRequest } from 'mercadopago/dist/clients/payment/create/types.js';
import type { Airline, AirlineLeg } from '#gen/payments/v1/additional_data_pb.js';
import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import { phoneNumberOf } from '../kit/phone-number.ts';
import type { AttemptFacts } from '../port/attempt.ts';
import { addressOf, identificationOf } from './payment-request.ts';
import type { MercadoPagoSettings } from './settings.ts';
import { dateTime, itemsOf } from './to-provider.ts';

/** The types of documents that Mercado Pago knows in each country. It refuses others. */
const DOCUMENTS: Readonly<Record<string, ReadonlySet<string>>> = {
  AR: new Set(['DNI', 'CI', 'LC', 'LE', 'CUIT', 'CUIL']),
  BR: new Set(['CPF', 'CNPJ']),
  CL: new Set(['RUT']),
  CO: new Set(['CC', 'CE', 'NIT', 'PPN', 'TI']),
  MX: new Set(['RFC', 'CURP']),
  PE: new Set(['DNI', 'CE', 'RUC']),
  UY: new Set(['CI']),
};

/** Returns a payer's document, unless Mercado Pago does not know its type in the account's country. */
export function identificationIn(country: string, payer: CustomerPayer) {
  const identification = identificationOf(payer);
  return identification && DOCUMENTS[country]?.has(identification.type) ? identification : undefined;
}

/** Returns the payer of a payment by card. */
export function cardPayerOf(
  payer: CustomerPayer,
  { country }: Pick<MercadoPagoSettings, 'country'>,
): PayerRequest {
  const { email, firstName, lastName, billingAddress } = payer;
  const identification = identificationIn(country, payer);
  return {
    ...(email && { email }),
    ...(firstName && { first_name: firstName }),
    ...(lastName && { last_name: lastName }),
    ...(identification && { identification }),
    ...(billingAddress && { address: addressOf(billingAddress) }),
  };
}

/** Returns what Mercado Pago's fraud prevention is told about a payment by card. */
export function additionalInfoOf(attempt: AttemptFacts, amount: number): AdditionalInfo {
  const { customerPayer, additionalData } = attempt;
  const { ipAddress } = customerPayer;
  const shipments = shipmentsOf(customerPayer);
  const flight = additionalData?.airline && flightOf(additionalData.airline);
  const items = itemsOf(attempt, amount).map(({ currency_id: _, ...item }, index) => ({
    ...item,
    ...(index === 0 && flight && { category_id: 'travels', category_descriptor: flight }),
  }));
  return {
    ...(ipAddress && { ip_address: ipAddress }),
    items,
    payer: buyerOf(customerPayer),
    ...(shipments && { shipments }),
  };
}

function buyerOf(payer: CustomerPayer): NonNullable<AdditionalInfo['payer']> {
  const { firstName, lastName, billingAddress, merchantCustomerCreatedAt: registered } = payer;
  const number = phoneNumberOf(payer);
  const { street_name, street_number, zip_code } = billingAddress ? addressOf(billingAddress) : {};
  return {
    ...(firstName && { first_name: firstName }),
    ...(lastName && { last_name: lastName }),
    ...(number && { phone: { number } }),
    ...(street_name && {
      address: { ...(zip_code && { zip_code }), street_name, ...(street_number && { street_number }) },
    }),
    ...(registered && { registration_date: dateTime(timestampDate(registered).getTime()) }),
  };
}

function shipmentsOf({ shippingAddress }: CustomerPayer): Shipments | undefined {
  if (!shippingAddress) return undefined;
  const { street_name, street_number, zip_code } = addressOf(shippingAddress);
  const { city, state, country } = shippingAddress;
  return {
    receiver_address: {
      ...(zip_code && { zip_code }),
      ...(street_name && { street_name, ...(street_number && { street_number }) }),
      ...(city && { city_name: city }),
      ...(state && { state_name: state }),
      ...(country && { country_name: country }),
    },
  };
}

/** Returns the first passenger and the whole route of a journey. */
function flightOf({ legs, passengers: [passenger] }: Airline): CategoryDescriptor {
  const { firstName, lastName, document } = passenger ?? {};
  const route = routeOf(legs);
  return {
    ...(passenger && {
      passenger: {
        ...(firstName && { first_name: firstName }),
        ...(lastName && { last_name: lastName }),
        ...(document?.documentType &&
          document.documentNumber && {
            identification: { type: document.documentType, number: document.documentNumber },
          }),
      },
    }),
    ...(route && { route }),
  };
}

/** @returns undefined unless the time of arrival is known, which Mercado Pago requires. */
function routeOf(legs: readonly AirlineLeg[]): CategoryDescriptor['route'] | undefined {
  const [first, last] = [legs[0], legs.at(-1)];
  const arrival = localTime(last?.arrivalDatetime, last?.arrivalAirportTimezone);
  if (!first || !last || arrival === undefined) return undefined;
  const departure = localTime(first.departureDatetime, first.departureAirportTimezone);
  return {
    ...(first.departureAirport && { departure: first.departureAirport }),
    ...(last.arrivalAirport && { destination: last.arrivalAirport }),
    ...(departure !== undefined && { departure_date_time: departure }),
    arrival_date_time: arrival,
    ...(first.carrierCode && { company: first.carrierCode }),
  };
}

const DATE_AND_TIME = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}))?/;
const OFFSET = /^[+-]\d{2}:\d{2}$/;

/** Converts local time to ISO 8601 with the airport's offset, or with that of UTC if the offset is not known. */
function localTime(text: string | undefined, zone: string | undefined): string | undefined {
  const [, date, time = '00:00'] = DATE_AND_TIME.exec(text ?? '') ?? [];
  if (date === undefined) return undefined;
  const given = `${date}T${time}:00.000${zone && OFFSET.test(zone) ? zone : '+00:00'}`;
  return Number.isNaN(Date.parse(given)) ? undefined : given;
}
