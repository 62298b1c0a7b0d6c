import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toStripeMoney } from '#src/connectors/stripe/money.ts';
import { CURRENCIES, currencyDigits, parseMoney } from '#src/money.ts';

const NO_DECIMALS = 'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' ');
const THREE_DECIMALS = 'BHD JOD KWD OMR TND'.split(' ');
/** Currencies that ISO 4217 counts in neither hundredths nor whole units, and that Stripe does not list. */
const NOT_KNOWN = ['CLF', 'IQD', 'LYD', 'UYI', 'UYW'];
const MAX = 999_999_999_999n;

/**
 * Stripe's amount for these whole units and decimal digits, computed from the documentation with decimal text
 * alone.
 */
function expected(whole: bigint, decimals: string, currency: string): bigint | undefined {
  if (NOT_KNOWN.includes(currency)) return undefined;
  let digits = 2;
  if (NO_DECIMALS.includes(currency)) digits = 0;
  if (THREE_DECIMALS.includes(currency)) digits = 3;
  const given = decimals.replace(/0+$/, '');
  if (given.length > digits || (digits === 3 && given.length > 2)) return undefined;
  const amount = BigInt(`${whole}${given.padEnd(digits, '0')}`);
  return amount > 0n && amount <= MAX ? amount : undefined;
}

describe("Stripe's amounts", () => {
  it.each([...CURRENCIES])('amounts in %s are converted to the units that Stripe documents', (currency) => {
    const digits = currencyDigits(currency) ?? 0;
    const decimals = fc
      .integer({ min: 0, max: 10 ** digits - 1 })
      .map((value) => (digits === 0 ? '' : String(value).padStart(digits, '0')));
    fc.assert(
      fc.property(fc.oneof(fc.bigInt(0n, 1_000n), fc.bigInt(0n, MAX)), decimals, (whole, fraction) => {
        const money = parseMoney(fraction === '' ? `${whole}` : `${whole}.${fraction}`, currency);
        if (!money) throw new Error('no money');
        const amount = expected(whole, fraction, currency);
        expect(toStripeMoney(money)).toEqual(
          amount === undefined ? undefined : { minorUnits: amount, currency },
        );
      }),
    );
  });

  it.each([
    ['5 UGX is 500', '5', 'UGX', 500n],
    ['5 ISK is 500', '5', 'ISK', 500n],
    ['5.00 MGA is 5', '5.00', 'MGA', 5n],
    ['Stripe cannot express 5.50 MGA', '5.50', 'MGA', undefined],
    ['5.120 KWD is 5120', '5.120', 'KWD', 5_120n],
    ['Stripe cannot express 5.123 KWD', '5.123', 'KWD', undefined],
    ['500 JPY is 500', '500', 'JPY', 500n],
    ['5.00 HUF is 500', '5.00', 'HUF', 500n],
    ['Stripe does not charge 0.00 USD', '0.00', 'USD', undefined],
  ])("amounts are converted to Stripe's own units: %s", (_what, text, currency, minorUnits) => {
    const money = parseMoney(text, currency);
    expect(money && toStripeMoney(money)?.minorUnits).toBe(minorUnits);
  });
});
