import { create } from '@bufbuild/protobuf';
import currencyCodes from 'currency-codes';
import { type Decimal, DecimalSchema } from '#gen/google/type/decimal_pb.js';

/** An amount of money: an integer of the currency's minor units (ISO 4217), never a float. */
export type Money = { readonly minorUnits: bigint; readonly currency: string };

/**
 * ISO 4217 codes in which nobody can be charged: those for "no currency", tests, precious metals and units of account.
 * The standard gives them no minor unit ("N.A.").
 */
const NOT_MONEY = new Set('XXX XTS XAG XAU XPD XPT XBA XBB XBC XBD XDR XSU XUA'.split(' '));
/** Currencies that ISO 4217 has added since the library's list of 2024-06-25. */
const ADDED: readonly (readonly [code: string, digits: number])[] = [['XCG', 2]];
const DIGITS = new Map<string, number>([
  ...currencyCodes.data.flatMap(({ code, digits }) => (NOT_MONEY.has(code) ? [] : [[code, digits] as const])),
  ...ADDED,
]);
/** Every ISO 4217 code that an amount may have. */
export const CURRENCIES: ReadonlySet<string> = new Set(DIGITS.keys());

/** Limits on an amount: 10^12 major units, and the minor units that every JSON parser reads exactly. */
const MAX_MAJOR_UNITS = 10n ** 12n;
const MAX_MINOR_UNITS = BigInt(Number.MAX_SAFE_INTEGER);

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/;
/** Limit on the length of a decimal, including trailing zeros. */
export const MAX_DECIMAL_LENGTH = 64;
/** Limit on the decimal places, without trailing zeros, of an amount that only describes goods. */
export const MAX_DESCRIPTIVE_DECIMALS = 20;
const NO_DECIMAL = `must be a decimal number without exponent, of at most ${MAX_DECIMAL_LENGTH} characters`;

/** Returns the message for a string that is not a decimal. */
export function whyNoDecimal(text: string): string {
  return text.includes(',') ? 'must have a decimal point and no comma, as in 1055.75' : NO_DECIMAL;
}

/** Returns a currency's number of decimal places (ISO 4217); undefined for an unknown currency. */
export function currencyDigits(currency: string): number | undefined {
  return DIGITS.get(currency);
}

/** Returns the largest amount in a currency, positive or negative; undefined for an unknown currency. */
export function largestAmount(currency: string): Money | undefined {
  const digits = currencyDigits(currency);
  if (digits === undefined) return undefined;
  const limit = MAX_MAJOR_UNITS * 10n ** BigInt(digits);
  return { minorUnits: limit < MAX_MINOR_UNITS ? limit : MAX_MINOR_UNITS, currency };
}

/** Reports whether a string is a decimal as on the wire: `-?digits[.digits]`, without exponent, spaces or plus sign. */
export function isDecimal(text: string): boolean {
  return text.length <= MAX_DECIMAL_LENGTH && DECIMAL.test(text);
}

/**
 * Parses a decimal as money.
 *
 * @returns undefined if the text is not a decimal, the currency is unknown, or the decimal has more decimal places
 * (without trailing zeros) than the currency: money is never rounded.
 */
export function parseMoney(text: string, currency: string): Money | undefined {
  const digits = currencyDigits(currency);
  if (digits === undefined || text.length > MAX_DECIMAL_LENGTH) return undefined;
  const match = DECIMAL.exec(text);
  if (!match) return undefined;
  const [, sign = '', whole = '', given = ''] = match;
  const fraction = given.replace(/0+$/, '');
  if (fraction.length > digits) return undefined;
  const minorUnits = BigInt(whole + fraction.padEnd(digits, '0'));
  return { minorUnits: sign === '-' ? -minorUnits : minorUnits, currency };
}

/**
 * Parses a decimal as money, rounded half away from zero to the currency's decimal places. Use it only for amounts that
 * describe goods, for providers that count in minor units; amounts that move money need `parseMoney`.
 *
 * @returns undefined if the text is not a decimal, or the currency is unknown.
 */
export function roundMoney(text: string, currency: string): Money | undefined {
  const digits = currencyDigits(currency);
  if (digits === undefined || text.length > MAX_DECIMAL_LENGTH) return undefined;
  const match = DECIMAL.exec(text);
  if (!match) return undefined;
  const [, sign = '', whole = '', fraction = ''] = match;
  const cut = BigInt(whole + fraction.slice(0, digits).padEnd(digits, '0'));
  const minorUnits = fraction.charAt(digits) >= '5' ? cut + 1n : cut;
  return { minorUnits: sign === '-' ? -minorUnits : minorUnits, currency };
}

/**
 * Formats money as a decimal with the currency's number of decimal places, but at least one: "3000.00" (USD), "1200.0"
 * (JPY).
 */
export function formatMoney(money: Money): string {
  const digits = currencyDigits(money.currency) ?? 0;
  const negative = money.minorUnits < 0n;
  const text = (negative ? -money.minorUnits : money.minorUnits).toString().padStart(digits + 1, '0');
  const whole = text.slice(0, text.length - digits);
  const fraction = text.slice(text.length - digits) || '0';
  return `${negative ? '-' : ''}${whole}.${fraction}`;
}

/** Converts money to the wire's Decimal message. */
export function toDecimal(money: Money): Decimal {
  return create(DecimalSchema, { value: formatMoney(money) });
}
