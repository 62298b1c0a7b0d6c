import { formatMoney, type Money } from '#src/money.ts';

/** An amount as PayPal writes it. */
export type PayPalAmount = { readonly currency_code: string; readonly value: string };

/**
 * The only currencies that PayPal accepts. It accepts BRL, CNY and MYR only from accounts in their countries, and
 * checks that itself.
 */
const CURRENCIES = new Set(
  'AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF ILS JPY MXN MYR NOK NZD PHP PLN SEK SGD THB TWD USD'.split(
    ' ',
  ),
);
/** Accepted in whole units only; HUF and TWD have two decimal places in ISO 4217. */
const NO_DECIMALS = new Set(['HUF', 'JPY', 'TWD']);

/**
 * Converts money to PayPal's decimal text.
 *
 * @returns undefined if PayPal does not accept the currency or cannot express the amount. Nothing is rounded.
 */
export function toPayPalAmount(money: Money): PayPalAmount | undefined {
  const { currency, minorUnits } = money;
  if (!CURRENCIES.has(currency) || minorUnits < 0n) return undefined;
  const value = formatMoney(money);
  if (!NO_DECIMALS.has(currency)) return { currency_code: currency, value };
  const [whole = '', fraction = ''] = value.split('.');
  return /^0*$/.test(fraction) ? { currency_code: currency, value: whole } : undefined;
}
