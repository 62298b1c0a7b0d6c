import { MAX_DECIMAL_LENGTH } from '#src/money.ts';

const DECIMAL = /^(-?)0*(\d+?)(?:\.(\d+))?$/;

/**
 * Returns the canonical form of a decimal `-?digits[.digits]` of up to 64 characters: no redundant zeros, no minus
 * before zero. `"007.50"` is `"7.5"`, `"-0.0"` is `"0"`.
 *
 * @returns undefined if the text is not such a decimal.
 */
export function canonicalDecimal(text: string): string | undefined {
  const match = text.length <= MAX_DECIMAL_LENGTH ? DECIMAL.exec(text) : null;
  if (!match) return undefined;
  const [, sign = '', whole = '', given = ''] = match;
  const fraction = given.replace(/0+$/, '');
  if (whole === '0' && fraction === '') return '0';
  return fraction === '' ? sign + whole : `${sign}${whole}.${fraction}`;
}
