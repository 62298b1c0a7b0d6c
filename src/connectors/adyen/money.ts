import type { JsonValue } from '@bufbuild/protobuf';
import { isJsonObject, readMoney } from '#src/connectors/provider-answer.ts';
import { currencyDigits, type Money } from '#src/money.ts';

/** An amount as Adyen writes it. */
export type AdyenAmount = { readonly currency: string; readonly value: number };

/**
 * Currencies that Adyen counts with other decimals than ISO 4217 gives them.
 * https://docs.adyen.com/development-resources/currency-codes
 */
const DECIMALS_AT_ADYEN: Readonly<Record<string, number>> = { CLP: 2, ISK: 2, CVE: 0, IDR: 0 };

/** Money as Adyen counts it; undefined when Adyen has no such amount. */
export function toAdyenAmount({ minorUnits, currency }: Money): AdyenAmount | undefined {
  const { finer, coarser } = factors(currency);
  const value = (minorUnits * finer) / coarser;
  const isExact = value * coarser === minorUnits * finer;
  return isExact && value <= Number.MAX_SAFE_INTEGER ? { currency, value: Number(value) } : undefined;
}

/** Money in ISO 4217's minor units; undefined when it is no amount, or one that ISO 4217 does not have. */
export function fromAdyenAmount(amount: JsonValue | undefined): Money | undefined {
  if (!isJsonObject(amount)) return undefined;
  const told = readMoney(amount.value, amount.currency, 'minor_units');
  if (!told || currencyDigits(told.currency) === undefined) return undefined;
  const { finer, coarser } = factors(told.currency);
  const minorUnits = (told.minorUnits * coarser) / finer;
  return minorUnits * finer === told.minorUnits * coarser ? { ...told, minorUnits } : undefined;
}

function factors(currency: string): { finer: bigint; coarser: bigint } {
  const ours = currencyDigits(currency) ?? 0;
  const theirs = DECIMALS_AT_ADYEN[currency] ?? ours;
  return {
    finer: 10n ** BigInt(Math.max(theirs - ours, 0)),
    coarser: 10n ** BigInt(Math.max(ours - theirs, 0)),
  };
}
