import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { differingAmount, toAmount } from '#src/connectors/mercado-pago/money.ts';
import { amountIn } from '#src/connectors/mercado-pago/to-provider.ts';
import { CURRENCIES, currencyDigits, formatMoney, largestAmount, parseMoney } from '#src/money.ts';

/** ISO 4217 defines two decimal places for COP; Mercado Pago accepts none for either. */
const WHOLE_UNITS = ['CLP', 'COP'];
const money = fc.constantFrom(...CURRENCIES).chain((currency) => {
  const max = largestAmount(currency)?.minorUnits ?? 0n;
  return fc.bigInt({ min: 1n, max }).map((minorUnits) => ({ minorUnits, currency }));
});

describe('amounts at Mercado Pago', () => {
  it("Mercado Pago's amounts equal ours exactly, or are rejected, in every ISO 4217 currency", () => {
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

  it('a Mercado Pago amount that differs from ours by the smallest unit is detected in every currency', () => {
    fc.assert(
      fc.property(money, (asked) => {
        const other = toAmount({ ...asked, minorUnits: asked.minorUnits + 1n });
        if (other !== undefined) expect(differingAmount(other, asked.currency, asked)).toBe('amount');
      }),
    );
  });

  it("Mercado Pago's amounts are also read from strings, but not from inexact values", () => {
    const asked = { minorUnits: 1_050n, currency: 'BRL' };
    expect(differingAmount('10.50', 'BRL', asked)).toBeUndefined();
    for (const amount of [10.501, '10,50', '1e1', null, undefined, {}, -10.5]) {
      expect(differingAmount(amount, 'BRL', asked)).toBe('amount');
    }
    expect(differingAmount(10.5, 'USD', asked)).toBe('currency');
  });

  it("Mercado Pago's amounts in a currency of whole units are whole, and others are rejected", () => {
    expect(toAmount({ minorUnits: 150_000n, currency: 'COP' })).toBe(1_500);
    expect(toAmount({ minorUnits: 150_050n, currency: 'COP' })).toBeUndefined();
    expect(toAmount({ minorUnits: 1_500n, currency: 'CLP' })).toBe(1_500);
  });

  it("an amount can be sent to Mercado Pago only in the account's currency", () => {
    const account = { currency: 'MXN' };
    expect(amountIn({ minorUnits: 1_050n, currency: 'MXN' }, account)).toBe(10.5);
    expect(amountIn({ minorUnits: 1_050n, currency: 'USD' }, account)).toBeUndefined();
  });
});
