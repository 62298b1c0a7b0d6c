import type { JsonValue } from '@bufbuild/protobuf';
import { formatMoney, type Money } from '#src/money.ts';
import { differingMoney, readMoney } from '../kit/provider-answer.ts';

/** Currencies in which the provider accepts only whole units, unlike ISO 4217. */
const WHOLE_UNITS: ReadonlySet<string> = new Set(['CLP', 'COP']);
/** Every parser reads a JSON number of up to this many digits exactly. */
const MAX_DIGITS = 15;

/**
 * Converts money to the provider's JSON number in the currency's major unit: 10.5. The number has exactly the digits of
 * the decimal.
 *
 * @returns undefined if the provider cannot express the amount.
 */
export function toAmount(money: Money): number | undefined {
  const [whole = '', fraction = ''] = formatMoney(money).split('.');
  const cents = fraction.replace(/0+$/, '');
  if (money.minorUnits <= 0n || whole.length + cents.length > MAX_DIGITS) return undefined;
  if (WHOLE_UNITS.has(money.currency) && cents !== '') return undefined;
  return Number(`${whole}.${cents}`);
}

/**
 * Compares an amount in a response with the requested money.
 *
 * @param currency the response's currency; the requested one if the response has none.
 * @returns the field that differs; undefined if they are equal.
 */
export function differingAmount(
  amount: JsonValue | undefined,
  currency: JsonValue | undefined,
  asked: Money,
): 'amount' | 'currency' | undefined {
  const isCurrency = currency === asked.currency;
  return isCurrency ? differingMoney(readMoney(amount, currency, 'decimal'), asked) : 'currency';
}
