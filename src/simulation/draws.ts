import { hash } from 'node:crypto';

const BYTES_EACH = 6;
const COUNT = 10;

/**
 * Draws ten numbers in [0, 1), each uniform over names and independent of the others. A name always draws the same
 * numbers, so every strategy has the same luck, in whatever order it asks.
 */
export function drawNumbers(name: string): readonly number[] {
  const bytes = hash('sha512', name, 'buffer');
  return Array.from({ length: COUNT }, (_, i) => bytes.readUIntBE(i * BYTES_EACH, BYTES_EACH) / 2 ** 48);
}

/** Returns the share that a number in [0, 1) falls into, and how far into it, again in [0, 1). */
export function shareAt(
  shares: readonly number[],
  drawn: number,
): { readonly index: number; readonly within: number } {
  let left = drawn * shares.reduce((sum, share) => sum + share, 0);
  for (const [index, share] of shares.entries()) {
    if (left < share) return { index, within: left / share };
    left -= share;
  }
  // Reached only through rounding.
  return { index: shares.findLastIndex((share) => share > 0), within: 0 };
}
