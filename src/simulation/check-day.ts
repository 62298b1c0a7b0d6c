import type {
  SimulatedConnection,
  SimulatedDay,
  SimulatedRates,
} from '#gen/payments/config/simulation_pb.js';
import { CURRENCIES } from '#src/money.ts';
import { CARD_BRANDS } from '#src/payments/card.ts';
import { COUNTRIES } from '#src/payments/check-request.ts';

/** A fault in a scenario; `field` is its path: `connections[0].rates.approval_percent`. */
export type DayFault = { readonly field: string; readonly message: string };

/** Checks what the rules in simulation.proto cannot say. */
export function checkDay(day: SimulatedDay): DayFault[] {
  const ids = day.connections.map(({ id }) => id);
  return [
    ...day.hours.flatMap((share, i) => range(`hours[${i}]`, share, 0, MAX_SHARE)),
    ...fault(
      day.hours.length > 0 && day.hours.every((share) => share === 0),
      'hours',
      'need an hour above 0',
    ),
    ...fault(!CURRENCIES.has(day.currency), 'currency', 'is not an ISO 4217 currency'),
    ...range('amount_from', day.amountFrom, MIN_AMOUNT, MAX_AMOUNT),
    ...range('amount_to', day.amountTo, day.amountFrom, MAX_AMOUNT),
    ...percent('alike_percent', day.alikePercent),
    ...day.cards.flatMap((cards, i) => [
      ...checkSegment(`cards[${i}]`, cards),
      ...checkCountry(`cards[${i}].country`, cards.country),
      ...fault(
        !(cards.share > 0 && cards.share <= MAX_SHARE),
        `cards[${i}].share`,
        `must be above 0, up to ${MAX_SHARE}`,
      ),
      ...percent(`cards[${i}].hard_decline_percent`, cards.hardDeclinePercent),
    ]),
    ...day.connections.flatMap((connection, i) => [
      ...fault(ids.indexOf(connection.id) < i, `connections[${i}].id`, 'is listed twice'),
      ...checkConnection(`connections[${i}]`, connection),
    ]),
  ];
}

const MAX_SHARE = 1_000_000;
const MIN_AMOUNT = 0.01;
const MAX_AMOUNT = 1e9;

function checkConnection(path: string, { rates, cards, incidents, cost }: SimulatedConnection): DayFault[] {
  return [
    ...fault(rates?.approvalPercent === undefined, `${path}.rates.approval_percent`, 'is needed'),
    ...checkRates(`${path}.rates`, rates),
    ...cards.flatMap((card, i) => [
      ...checkSegment(`${path}.cards[${i}]`, card),
      ...checkRates(`${path}.cards[${i}].rates`, card.rates),
    ]),
    ...incidents.flatMap((incident, i) => [
      ...range(`${path}.incidents[${i}].from_hour`, incident.fromHour, 0, 24),
      ...range(`${path}.incidents[${i}].to_hour`, incident.toHour, incident.fromHour, 24),
      ...checkSegment(`${path}.incidents[${i}]`, incident),
      ...checkRates(`${path}.incidents[${i}].rates`, incident.rates),
    ]),
    ...(cost ? percent(`${path}.cost.percent`, cost.percent) : []),
    ...(cost ? range(`${path}.cost.fixed`, cost.fixed, 0, MAX_AMOUNT) : []),
  ];
}

function checkRates(path: string, rates: SimulatedRates | undefined): DayFault[] {
  return [
    ...percent(`${path}.approval_percent`, rates?.approvalPercent),
    ...percent(`${path}.hard_decline_percent`, rates?.hardDeclinePercent),
    ...percent(`${path}.not_sent_percent`, rates?.notSentPercent),
    ...percent(`${path}.unknown_percent`, rates?.unknownPercent),
  ];
}

/** Checks brand and country. A missing one means every brand or country, unless the rules in the .proto require it. */
function checkSegment(
  path: string,
  { brand, issuerCountry }: { readonly brand: string; readonly issuerCountry: string },
): DayFault[] {
  return [
    ...fault(
      brand !== '' && !CARD_BRANDS.includes(brand),
      `${path}.brand`,
      `is none of ${CARD_BRANDS.join(', ')}`,
    ),
    ...checkCountry(`${path}.issuer_country`, issuerCountry),
  ];
}

function checkCountry(field: string, country: string): DayFault[] {
  return fault(country !== '' && !COUNTRIES.has(country), field, 'is not a country of ISO 3166-1');
}

function percent(field: string, value: number | undefined): DayFault[] {
  return range(field, value ?? 0, 0, 100);
}

function range(field: string, value: number, from: number, to: number): DayFault[] {
  return fault(value < from || value > to, field, `must be ${from} to ${to}`);
}

function fault(isFault: boolean, field: string, message: string): DayFault[] {
  return isFault ? [{ field, message }] : [];
}
