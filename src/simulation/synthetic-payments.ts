import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { SimulatedCards, SimulatedDay } from '#gen/payments/config/simulation_pb.js';
import { type RoutingFacts, RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';
import { currencyDigits, type Money, parseMoney, toDecimal } from '#src/money.ts';
import { drawNumbers, shareAt } from './draws.ts';

/** A generated payment. */
export type SyntheticPayment = {
  /** Unique id, which also seeds the payment's draws. */
  readonly id: string;
  /** Arrival time, in ms since 1970. */
  readonly atMs: number;
  readonly money: Money;
  readonly cards: SimulatedCards;
  readonly facts: RoutingFacts;
  /** Draw that all providers share when they decide alike; undefined if each one draws for itself. */
  readonly sharedLuck: number | undefined;
  /** Number in [0, 1): if it is below the share of hard declines, every decline of the payment is hard. */
  readonly hardness: number;
};

/** Start of the day: an arbitrary one, fixed because conditions may look at the time. */
export const DAY_STARTS_MS = Date.UTC(2026, 0, 1);
/** An hour in ms. */
export const HOUR_MS = 3_600_000;

/**
 * Generates the payments of a day in order of time. A seed always gives the same payments.
 *
 * @param count number of payments, by default the scenario's.
 */
export function syntheticPayments(day: SimulatedDay, seed: number, count = day.payments): SyntheticPayment[] {
  const hours = day.hours.length > 0 ? day.hours : Array<number>(24).fill(1);
  const shares = day.cards.map(({ share }) => share);
  return Array.from({ length: count }, (_, i) => {
    const id = `${seed}/${i}`;
    const [card = 0, time = 0, amount = 0, alike = 0, sharedLuck = 0, hardness = 0] = drawNumbers(id);
    const cards = day.cards[shareAt(shares, card).index];
    if (!cards) throw new Error('the day was checked, and has cards');
    const hour = shareAt(hours, time);
    const atMs = DAY_STARTS_MS + Math.floor((hour.index + hour.within) * HOUR_MS);
    const money = moneyOf(day, amount);
    return {
      id,
      atMs,
      money,
      cards,
      facts: factsOf(cards, money, atMs),
      sharedLuck: alike * 100 < day.alikePercent ? sharedLuck : undefined,
      hardness,
    };
  }).sort((a, b) => a.atMs - b.atMs);
}

function moneyOf({ amountFrom, amountTo, currency }: SimulatedDay, drawn: number): Money {
  const amount = amountFrom + drawn * (amountTo - amountFrom);
  const money = parseMoney(amount.toFixed(currencyDigits(currency) ?? 0), currency);
  if (!money) throw new Error('the day was checked, and has a currency');
  return money;
}

function factsOf(
  { brand, issuerCountry, country }: SimulatedCards,
  money: Money,
  atMs: number,
): RoutingFacts {
  return create(RoutingFactsSchema, {
    country: country || issuerCountry,
    amount: toDecimal(money),
    currency: money.currency,
    type: 'CARD',
    category: 'CARD',
    workflow: 'DIRECT',
    installments: 1,
    cardBrand: brand,
    issuerCountry,
    capture: true,
    time: timestampFromMs(atMs),
  });
}
