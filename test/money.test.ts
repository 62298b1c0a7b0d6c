import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { currencyDigits, formatMoney, isDecimal, parseMoney, roundMoney, toDecimal } from '#src/money.ts';

const currency = fc.constantFrom('JPY', 'USD', 'KWD', 'CLF');
const minorUnits = fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n });

describe('amounts of money', () => {
  it.each([
    ['3000', 'USD', '3000.00', 300_000n],
    ['55.75', 'USD', '55.75', 5_575n],
    ['149.9', 'BRL', '149.90', 14_990n],
    ['1200', 'JPY', '1200.0', 1_200n],
    ['1200.000', 'JPY', '1200.0', 1_200n],
    ['1.5', 'KWD', '1.500', 1_500n],
    ['1.2345', 'CLF', '1.2345', 12_345n],
    ['0.05', 'USD', '0.05', 5n],
    ['-0.05', 'USD', '-0.05', -5n],
    ['-0', 'USD', '0.00', 0n],
    ['007.50', 'USD', '7.50', 750n],
    ['90071992547409.93', 'USD', '90071992547409.93', 9_007_199_254_740_993n],
  ])('the amount %s %s is formatted as %s', (text, code, written, units) => {
    const money = parseMoney(text, code);
    expect(money).toEqual({ minorUnits: units, currency: code });
    expect(money && formatMoney(money)).toBe(written);
    expect(money && toDecimal(money).value).toBe(written);
  });

  it('a formatted amount parses to the same amount', () => {
    fc.assert(
      fc.property(currency, minorUnits, (code, units) => {
        const money = { minorUnits: units, currency: code };
        expect(parseMoney(formatMoney(money), code)).toEqual(money);
      }),
    );
  });

  it.each([
    ['8.403361', 'USD', 840n],
    ['8.405', 'USD', 841n],
    ['8.40499999999999999999', 'USD', 840n],
    ['-8.405', 'USD', -841n],
    ['33.33', 'JPY', 33n],
    ['0.5', 'JPY', 1n],
    ['0.09999999999999999', 'KWD', 100n],
    ['7', 'USD', 700n],
    ['1e3', 'USD', undefined],
    ['1', 'XXX', undefined],
  ])('the amount %s %s is rounded half up if it is only descriptive', (text, code, units) => {
    expect(roundMoney(text, code)?.minorUnits).toBe(units);
  });

  it('an amount with more decimal places than its currency has is refused, not rounded', () => {
    fc.assert(
      fc.property(currency, minorUnits, fc.integer({ min: 1, max: 9 }), (code, units, digit) => {
        const digits = currencyDigits(code) ?? 0;
        const whole = formatMoney({ minorUnits: units, currency: code }).split('.')[0];
        expect(parseMoney(`${whole}.${'0'.repeat(digits)}${digit}`, code)).toBeUndefined();
        expect(parseMoney(`${whole}.${'0'.repeat(digits + 3)}`, code)).toBeDefined();
      }),
    );
  });

  it.each([
    '',
    '-',
    '+1',
    '1e3',
    ' 1',
    '1 ',
    '1.',
    '.5',
    '1,5',
    '0x1',
    'NaN',
    '1.2.3',
    '--1',
    '١',
    '1\n',
    '9'.repeat(65),
  ])('%j is not a decimal number', (text) => {
    expect(isDecimal(text)).toBe(false);
    expect(parseMoney(text, 'USD')).toBeUndefined();
  });

  it('the currency of an amount must be an ISO 4217 code', () => {
    expect(parseMoney('1', 'ZZZ')).toBeUndefined();
    expect(parseMoney('1', 'usd')).toBeUndefined();
    expect(currencyDigits('constructor')).toBeUndefined();
  });
});
