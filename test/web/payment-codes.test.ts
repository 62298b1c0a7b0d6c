import { expect, it } from 'vitest';
import { drawBarcode, drawQrCode } from '#src/web/payment-codes.ts';

it('a QR code and a barcode are drawn as SVG, without scripts, styles or text', () => {
  for (const svg of [drawQrCode('00020101'), drawBarcode('93000123456789'), drawBarcode('1'.repeat(44))]) {
    expect(svg).toMatch(
      /^<svg viewBox="[\d. ]+" xmlns="http:\/\/www\.w3\.org\/2000\/svg"( preserveAspectRatio="none")?>/,
    );
    expect(svg).not.toMatch(/<script|<style|style=|<text|href/);
  }
});

it('a boleto’s 44 digits have another kind of bars than a reference', () => {
  const bars = (text: string) => drawBarcode(text)?.match(/M\d/g)?.length ?? 0;
  // Interleaved 2 of 5 has five bars for two digits, and four at the ends; Code 128 three bars for two digits.
  expect(bars('1'.repeat(44))).toBe(44 * 2.5 + 4);
  expect(bars('1'.repeat(42))).toBeLessThan(44 * 2);
});

it.each(['', 'x'.repeat(61), 'código', 'line\nbreak'])('no barcode is drawn for %j', (text) => {
  expect(drawBarcode(text)).toBeUndefined();
});

it.each(['', 'x'.repeat(2_001)])(
  'no QR code is drawn for a text of other than 1 to 2,000 characters',
  (text) => {
    expect(drawQrCode(text)).toBeUndefined();
  },
);
