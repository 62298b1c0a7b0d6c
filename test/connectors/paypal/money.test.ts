import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readMoney } from '#src/connectors/kit/provider-answer.ts';
import { toPayPalAmount } from '#src/connectors/paypal/money.ts';
import { CURRENCIES, currencyDigits, parseMoney } from '#src/money.ts';

const SUPPORTED =
  'AUD BRL CAD CNY CZK DKK EUR HKD HUF ILS JPY MYR MXN TWD NZD NOK PHP PLN GBP SGD SEK CHF THB USD'.split(
    ' ',
  );
const NO_DECIMALS = ['HUF', 'JPY', 'TWD'];

describe("PayPal's amounts", () => {
  it.each([...CURRENCIES])(
    'a PayPal amount in %s is rejected, or is a decimal number that PayPal accepts and that is read back unchanged',
    (currency) => {
      const digits = currencyDigits(currency) ?? 0;
      fc.assert(
        fc.property(
          fc.bigInt(0n, 10n ** 12n),
          fc.integer({ min: 0, max: 10 ** digits - 1 }),
          fc.boolean(),
          (whole, fraction, isWhole) => {
            const decimals = isWhole || digits === 0 ? '' : `.${String(fraction).padStart(digits, '0')}`;
            const money = parseMoney(`${whole}${decimals}`, currency);
            if (!money) throw new Error('no money');
            const amount = toPayPalAmount(money);
            const isTaken =
              SUPPORTED.includes(currency) && (!NO_DECIMALS.includes(currency) || /^(\.0+)?$/.test(decimals));
            expect(amount !== undefined).toBe(isTaken);
            if (!amount) return;
            expect(amount.currency_code).toBe(currency);
            expect(amount.value).toMatch(NO_DECIMALS.includes(currency) ? /^\d+$/ : /^\d+\.\d\d$/);
            expect(readMoney(amount.value, amount.currency_code, 'decimal')).toEqual(money);
          },
        ),
      );
    },
  );

  it.each([
    ['55.75', 'USD', '55.75'],
    ['500', 'JPY', '500'],
    ['500.00', 'HUF', '500'],
    ['500.50', 'HUF', undefined],
    ['500', 'TWD', '500'],
    ['0.05', 'EUR', '0.05'],
    ['500', 'COP', undefined],
  ])('a PayPal amount for %s %s is written as %s', (text, currency, value) => {
    const money = parseMoney(text, currency);
    expect(money && toPayPalAmount(money)?.value).toBe(value);
  });

  it("PayPal's amounts are never negative", () => {
    expect(toPayPalAmount({ minorUnits: -1n, currency: 'USD' })).toBeUndefined();
  });
});
