import { currencyDigits, type Money } from '#src/money.ts';
import { fromDecimals, toDecimals } from '../kit/provider-money.ts';

/**
 * Currencies that Stripe counts in whole units, and currencies that ISO 4217 counts in whole units but Stripe in
 * hundredths.
 */
const NO_DECIMALS = new Set('BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' '));
const TWO_DECIMALS = new Set(['ISK', 'UGX']);
/** Counted in thousandths; the last digit must be 0. */
const THREE_DECIMALS = new Set(['BHD', 'JOD', 'KWD', 'OMR', 'TND']);
/**
 * Twelve digits, which Stripe accepts only in a few currencies. Stripe itself enforces the lower limits of the others.
 */
const MAX_AMOUNT = 999_999_999_999n;

/**
 * Converts money to the units in which Stripe counts the currency.
 *
 * @returns undefined if Stripe cannot express the amount, or its unit for the currency is unknown.
 */
export function toStripeMoney({ minorUnits, currency }: Money): Money | undefined {
  const money = toDecimals({ minorUnits, currency }, decimalsAtStripe(currency));
  if (!money || money.minorUnits <= 0n || money.minorUnits > MAX_AMOUNT) return undefined;
  return THREE_DECIMALS.has(currency) && money.minorUnits % 10n !== 0n ? undefined : money;
}

/** Converts money from Stripe to ISO 4217 minor units; undefined if Stripe's unit for the currency is unknown. */
export function fromStripeMoney(money: Money): Money | undefined {
  return fromDecimals(money, decimalsAtStripe(money.currency));
}

function decimalsAtStripe(currency: string): number | undefined {
  if (NO_DECIMALS.has(currency)) return 0;
  if (TWO_DECIMALS.has(currency)) return 2;
  if (THREE_DECIMALS.has(currency)) return 3;
  return currencyDigits(currency) === 2 ? 2 : undefined;
}
