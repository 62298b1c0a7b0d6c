const DECIMAL = /^(-?)0*(\d+?)(?:\.(\d+))?$/;
const MAX_LENGTH = 64;

/**
 * The one spelling of a decimal `-?digits[.digits]` of up to 64 characters: no zeros before or after that say nothing,
 * no minus before zero. `"007.50"` is `"7.5"`, `"-0.0"` is `"0"`.
 *
 * @returns undefined when the text is no such decimal.
 */
export function canonicalDecimal(text: string): string | undefined {
  const match = text.length <= MAX_LENGTH ? DECIMAL.exec(text) : null;
  if (!match) return undefined;
  const [, sign = '', whole = '', given = ''] = match;
  const fraction = given.replace(/0+$/, '');
  if (whole === '0' && fraction === '') return '0';
  return fraction === '' ? sign + whole : `${sign}${whole}.${fraction}`;
}
