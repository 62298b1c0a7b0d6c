import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';

/** Fewest digits of a number without a plus that begins with its country code, and therefore contains it. */
const MIN_WITH_CODE = 11;
/** In Brazil, national numbers have up to 11 digits, and one area has the country's own code. */
const MIN_WITH_CODE_BY_CODE: Readonly<Record<string, number>> = { '55': 12 };

/**
 * Returns a payer's phone number with a plus and one country code: +5511987654321. Merchants write the code with a
 * plus, with zeros or not at all, and again in the number. Without any code, the number is returned as sent; undefined
 * if there is none.
 */
export function phoneNumberOf({ phone }: Pick<CustomerPayer, 'phone'>): string | undefined {
  if (!phone?.number) return undefined;
  const code = digitsOf(phone.countryCode ?? '').replace(/^0+/, '');
  const digits = digitsOf(phone.number);
  if (digits === '') return undefined;
  const withCode = /^\s*(?:\+|00)\s*(?=\d)/.test(phone.number) ? digits.replace(/^00/, '') : undefined;
  if (withCode !== undefined) return `+${withCode}`;
  if (code === '') return phone.number;
  const hasCode = digits.startsWith(code) && digits.length >= (MIN_WITH_CODE_BY_CODE[code] ?? MIN_WITH_CODE);
  return `+${hasCode ? '' : code}${digits}`;
}

function digitsOf(text: string): string {
  return text.replace(/\D/g, '');
}
