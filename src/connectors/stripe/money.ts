import { fromDecimals, toDecimals } from '#src/connectors/provider-money.ts';
import { currencyDigits, type Money } from '#src/money.ts';

/** Currencies that Stripe counts in whole units; then those that only ISO 4217 does, and Stripe in hundredths. */
const NO_DECIMALS = new Set('BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' '));
const TWO_DECIMALS = new Set(['ISK', 'UGX']);
/** Counted in thousandths, of which the last digit must be 0. */
const THREE_DECIMALS = new Set(['BHD', 'JOD', 'KWD', 'OMR', 'TND']);
/** Twelve digits, which Stripe accepts in a few currencies only; it enforces the lower limits of the others itself. */
const MAX_AMOUNT = 999_999_999_999n;

/**
 * Converts money to the units in which Stripe counts its currency.
 *
 * @returns undefined if Stripe has no such amount, or its unit for the currency is not known.
 */
export function toStripeMoney({ minorUnits, currency }: Money): Money | undefined {
  const money = toDecimals({ minorUnits, currency }, decimalsAtStripe(currency));
  if (!money || money.minorUnits <= 0n || money.minorUnits > MAX_AMOUNT) return undefined;
  return THREE_DECIMALS.has(currency) && money.minorUnits % 10n !== 0n ? undefined : money;
}

/** Converts money from Stripe to ISO 4217's minor units; undefined if its unit for the currency is not known. */
export function fromStripeMoney(money: Money): Money | undefined {
  return fromDecimals(money, decimalsAtStripe(money.currency));
}

function decimalsAtStripe(currency: string): number | undefined {
  if (NO_DECIMALS.has(currency)) return 0;
  if (TWO_DECIMALS.has(currency)) return 2;
  if (THREE_DECIMALS.has(currency)) return 3;
  return currencyDigits(currency) === 2 ? 2 : undefined;
}
