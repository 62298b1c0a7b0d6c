import type { JsonValue } from '@bufbuild/protobuf';
import { differingMoney, readMoney } from '#src/connectors/provider-answer.ts';
import { formatMoney, type Money } from '#src/money.ts';

/** Currencies of which the provider takes whole units only, whatever ISO 4217 says. */
const WHOLE_UNITS: ReadonlySet<string> = new Set(['CLP', 'COP']);
/** A JSON number of so many digits is the same number to every parser. */
const MAX_DIGITS = 15;

/**
 * Money as the provider's JSON number in the currency's major unit: 10.5. Its digits are exactly those of the decimal.
 *
 * @returns undefined when the provider has no such amount.
 */
export function toAmount(money: Money): number | undefined {
  const [whole = '', fraction = ''] = formatMoney(money).split('.');
  const cents = fraction.replace(/0+$/, '');
  if (money.minorUnits <= 0n || whole.length + cents.length > MAX_DIGITS) return undefined;
  if (WHOLE_UNITS.has(money.currency) && cents !== '') return undefined;
  return Number(`${whole}.${cents}`);
}

/**
 * Compares an amount in an answer with the money that was asked for.
 *
 * @param currency as answered; where an answer has none, the one that was asked for.
 * @returns what differs; undefined when nothing does.
 */
export function differingAmount(
  amount: JsonValue | undefined,
  currency: JsonValue | undefined,
  asked: Money,
): 'amount' | 'currency' | undefined {
  const isCurrency = currency === asked.currency;
  return isCurrency ? differingMoney(readMoney(amount, currency, 'decimal'), asked) : 'currency';
}
