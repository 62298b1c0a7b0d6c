const MAX_LENGTH = 22;
/** Matches characters that Stripe does not allow on a statement, after accents are separated from their letters. */
const NOT_ALLOWED = /[^\x20-\x7e]|[<>\\'"*]/g;
/** Latin letters that are not a plain letter with an accent. */
const PLAIN: Readonly<Record<string, string>> = {
  ...{ ß: 'ss', ẞ: 'SS', æ: 'ae', Æ: 'AE', œ: 'oe', Œ: 'OE', ø: 'o', Ø: 'O', ł: 'l', Ł: 'L' },
  ...{ đ: 'd', Đ: 'D', ð: 'd', Ð: 'D', þ: 'th', Þ: 'TH', ı: 'i' },
};
const NOT_PLAIN = new RegExp(`[${Object.keys(PLAIN).join('')}]`, 'g');

/**
 * Returns the merchant's text for the cardholder's statement in the letters that Stripe allows.
 *
 * @returns undefined if no letter is left: Stripe refuses such a string, so the account's default is used.
 */
export function descriptorOf(softDescriptor: string): string | undefined {
  const latin = softDescriptor
    .normalize('NFKD')
    .replace(NOT_PLAIN, (letter) => PLAIN[letter] ?? '')
    .replace(NOT_ALLOWED, '');
  const suffix = latin.trim().slice(0, MAX_LENGTH).trim();
  return /[A-Za-z]/.test(suffix) ? suffix : undefined;
}
