import type { JsonValue } from '@bufbuild/protobuf';
import { currencyDigits, type Money } from '#src/money.ts';
import { isJsonObject, readMoney } from '../kit/provider-answer.ts';
import { fromDecimals, toDecimals } from '../kit/provider-money.ts';

/** An amount as Adyen writes it. */
export type AdyenAmount = { readonly currency: string; readonly value: number };

/**
 * Currencies whose number of decimal places at Adyen differs from ISO 4217.
 * https://docs.adyen.com/development-resources/currency-codes
 */
const DECIMALS_AT_ADYEN: Readonly<Record<string, number>> = { CLP: 2, ISK: 2, CVE: 0, IDR: 0 };

/** Converts money to Adyen's units; undefined if Adyen cannot express the amount. */
export function toAdyenAmount({ minorUnits, currency }: Money): AdyenAmount | undefined {
  const reported = toDecimals({ minorUnits, currency }, decimalsAtAdyen(currency));
  return reported && reported.minorUnits <= Number.MAX_SAFE_INTEGER
    ? { currency, value: Number(reported.minorUnits) }
    : undefined;
}

/**
 * Converts an amount to ISO 4217 minor units; undefined if it is not an amount, or not a whole number of minor units.
 */
export function fromAdyenAmount(amount: JsonValue | undefined): Money | undefined {
  if (!isJsonObject(amount)) return undefined;
  const reported = readMoney(amount.value, amount.currency, 'minor_units');
  return reported && fromDecimals(reported, decimalsAtAdyen(reported.currency));
}

function decimalsAtAdyen(currency: string): number | undefined {
  return DECIMALS_AT_ADYEN[currency] ?? currencyDigits(currency);
}
