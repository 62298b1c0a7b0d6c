import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromAdyenAmount, toAdyenAmount } from '#src/connectors/adyen/money.ts';
import { CURRENCIES, currencyDigits } from '#src/money.ts';

/** Adyen's decimal places for currencies where they differ from ISO 4217. */
const DIFFERENT: Readonly<Record<string, number>> = { CLP: 2, ISK: 2, CVE: 0, IDR: 0 };
const THREE_DECIMALS = ['BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND'];

describe('money at Adyen', () => {
  it.each([...CURRENCIES])(
    'an Adyen amount in %s is exact or rejected, and converts back to the same amount',
    (currency) => {
      const ours = currencyDigits(currency) ?? 0;
      const theirs = DIFFERENT[currency] ?? ours;
      fc.assert(
        fc.property(fc.bigInt({ min: 0n, max: 10n ** 13n }), (minorUnits) => {
          const amount = toAdyenAmount({ minorUnits, currency });
          if (theirs < ours && minorUnits % 10n ** BigInt(ours - theirs) !== 0n) {
            expect(amount).toBeUndefined();
            return;
          }
          expect(amount?.currency).toBe(currency);
          expect(BigInt(amount?.value ?? -1) * 10n ** BigInt(ours)).toBe(minorUnits * 10n ** BigInt(theirs));
          expect(fromAdyenAmount(amount)).toEqual({ minorUnits, currency });
        }),
        { numRuns: 30, seed: 4217 },
      );
    },
  );

  it("Adyen's amounts have three decimal places in the currencies with three decimal places", () => {
    expect(THREE_DECIMALS.map(currencyDigits)).toEqual(THREE_DECIMALS.map(() => 3));
    expect(THREE_DECIMALS.every((currency) => DIFFERENT[currency] === undefined)).toBe(true);
  });

  it.each([
    [5n, 'CLP', 500],
    [5n, 'ISK', 500],
    [500n, 'CVE', 5],
    [1_000_000n, 'IDR', 10_000],
    [5n, 'JPY', 5],
    [5_125n, 'KWD', 5_125],
  ])('an Adyen amount for %d %s minor units is %d', (minorUnits, currency, value) => {
    expect(toAdyenAmount({ minorUnits, currency })).toEqual({ currency, value });
  });

  it("Adyen's amounts are rejected if a JSON number cannot represent them", () => {
    expect(toAdyenAmount({ minorUnits: 10n ** 14n, currency: 'CLP' })).toBeUndefined();
  });

  it.each([
    { currency: 'CLP', value: 550 },
    { currency: 'EUR', value: 1.5 },
    { currency: 'EUR', value: -1 },
    { currency: 'EUR', value: '100' },
    { currency: 'ZZZ', value: 100 },
    { value: 100 },
    'EUR 1',
    null,
    undefined,
  ])('an Adyen amount %j is unreadable', (amount) => {
    expect(fromAdyenAmount(amount)).toBeUndefined();
  });
});
