import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { differingAmount, toAmount } from '#src/connectors/mercado-pago/money.ts';
import { amountIn } from '#src/connectors/mercado-pago/to-provider.ts';
import { CURRENCIES, currencyDigits, formatMoney, largestAmount, parseMoney } from '#src/money.ts';

/** ISO 4217 gives the second two decimals, Mercado Pago takes neither's. */
const WHOLE_UNITS = ['CLP', 'COP'];
const money = fc.constantFrom(...CURRENCIES).chain((currency) => {
  const max = largestAmount(currency)?.minorUnits ?? 0n;
  return fc.bigInt({ min: 1n, max }).map((minorUnits) => ({ minorUnits, currency }));
});

describe('amounts at Mercado Pago', () => {
  it('are the digits of our decimals, in every currency of ISO 4217, or there is no such amount', () => {
    fc.assert(
      fc.property(money, (asked) => {
        const amount = toAmount(asked);
        const digits = 10n ** BigInt(currencyDigits(asked.currency) ?? 0);
        const isWhole = asked.minorUnits % digits === 0n;
        if (WHOLE_UNITS.includes(asked.currency) && !isWhole) {
          expect(amount).toBeUndefined();
          return;
        }
        const significant = formatMoney(asked)
          .replace(/\.?0+$/, '')
          .replace('.', '').length;
        if (amount === undefined) {
          expect(significant).toBeGreaterThan(15);
          return;
        }
        expect(parseMoney(JSON.stringify(amount), asked.currency)).toEqual(asked);
        expect(differingAmount(amount, asked.currency, asked)).toBeUndefined();
      }),
      { numRuns: 2_000 },
    );
  });

  it('that differ by the smallest unit differ, in every currency of ISO 4217', () => {
    fc.assert(
      fc.property(money, (asked) => {
        const other = toAmount({ ...asked, minorUnits: asked.minorUnits + 1n });
        if (other !== undefined) expect(differingAmount(other, asked.currency, asked)).toBe('amount');
      }),
    );
  });

  it('are read from texts too, and never from what is no exact amount', () => {
    const asked = { minorUnits: 1_050n, currency: 'BRL' };
    expect(differingAmount('10.50', 'BRL', asked)).toBeUndefined();
    for (const amount of [10.501, '10,50', '1e1', null, undefined, {}, -10.5]) {
      expect(differingAmount(amount, 'BRL', asked)).toBe('amount');
    }
    expect(differingAmount(10.5, 'USD', asked)).toBe('currency');
  });

  it('are in the currency of the account only', () => {
    const account = { currency: 'MXN' };
    expect(amountIn({ minorUnits: 1_050n, currency: 'MXN' }, account)).toBe(10.5);
    expect(amountIn({ minorUnits: 1_050n, currency: 'USD' }, account)).toBeUndefined();
  });
});
