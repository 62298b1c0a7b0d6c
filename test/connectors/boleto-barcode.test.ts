import { describe, expect, it } from 'vitest';
import { boletoBarcode } from '#src/connectors/kit/boleto-barcode.ts';

/** Lines and bars that follow the banks' rules. */
const LINE = '03399.33384 52937.493451 03201.015660 1 99700000300000';
const BARCODE = '03391997000003000009333852937493450320101566';

describe("a boleto's barcode", () => {
  it('the digits of the bars follow from those of the line, with or without its dots and spaces', () => {
    expect(boletoBarcode(LINE)).toBe(BARCODE);
    expect(boletoBarcode(LINE.replace(/\D/g, ''))).toBe(BARCODE);
    expect(boletoBarcode('23793.38128 60007.827136 95000.063305 9 75520000370000')).toBe(
      '23799755200003700003381260007827139500006330',
    );
  });

  it('a line with any wrong digit has no bars', () => {
    const digits = LINE.replace(/\D/g, '');
    for (let at = 0; at < digits.length; at += 1) {
      const other = String((Number(digits[at]) + 1) % 10);
      expect(boletoBarcode(digits.slice(0, at) + other + digits.slice(at + 1))).toBeUndefined();
    }
  });

  it.each(['', '59168954601529', BARCODE, `${LINE}0`, 'https://bank.example'])(
    'other numbers have no bars: %j',
    (number) => {
      expect(boletoBarcode(number)).toBeUndefined();
    },
  );
});
