import { currencyDigits, type Money } from '#src/money.ts';

/**
 * Converts money from ISO 4217 minor units to a provider's units, which may have a different number of decimal places.
 *
 * @returns undefined if the amount cannot be converted exactly, or ISO 4217 lacks the currency.
 */
export function toDecimals(money: Money, decimals: number | undefined): Money | undefined {
  return scaled(money, currencyDigits(money.currency), decimals);
}

/** Converts a provider's money back to ISO 4217 minor units. */
export function fromDecimals(money: Money, decimals: number | undefined): Money | undefined {
  return scaled(money, decimals, currencyDigits(money.currency));
}

function scaled(money: Money, from: number | undefined, to: number | undefined): Money | undefined {
  if (from === undefined || to === undefined) return undefined;
  const factor = 10n ** BigInt(Math.abs(to - from));
  if (to >= from) return { ...money, minorUnits: money.minorUnits * factor };
  return money.minorUnits % factor === 0n ? { ...money, minorUnits: money.minorUnits / factor } : undefined;
}
