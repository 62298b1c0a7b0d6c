import { randomInt } from 'node:crypto';
import { formatMoney } from '#src/money.ts';

/** Simulated banks and networks have codes that no real one has, so that nobody pays a code by mistake. */
const BANK = '999';
const DAY_MS = 86_400_000;
/** Boletos count days from here, starting with 1000, in the time of Brasília. */
const BOLETO_EPOCH_MS = Date.UTC(2025, 1, 22, 3);
const BOLETO_FACTORS = { first: 1_000, count: 9_000 };
/** Largest amount that the barcode of a boleto can hold, in minor units. */
export const MAX_BOLETO_AMOUNT = 9_999_999_999;

/**
 * Creates the text of a dynamic Pix QR code: an EMV merchant-presented code with a checksum, as the Brazilian central
 * bank defines it.
 *
 * @param amount minor units of BRL.
 * @param location where the payer's bank would read the charge: a URL without its scheme.
 */
export function pixText(amount: number, location: string): string {
  const account = element('00', 'br.gov.bcb.pix') + element('25', location);
  const text = [
    element('00', '01'),
    element('01', '12'),
    element('26', account),
    element('52', '0000'),
    element('53', '986'),
    element('54', formatMoney({ minorUnits: BigInt(amount), currency: 'BRL' })),
    element('58', 'BR'),
    element('59', 'LOJA SANDBOX'),
    element('60', 'SAO PAULO'),
    element('62', element('05', '***')),
    '6304',
  ].join('');
  return text + crc16(text);
}

/** Writes an element of an EMV code: its id, the length of its value, and the value. */
function element(id: string, value: string): string {
  return id + String(value.length).padStart(2, '0') + value;
}

/** Computes CRC-16/CCITT-FALSE, as four hexadecimal digits. */
function crc16(text: string): string {
  let crc = 0xffff;
  for (const byte of Buffer.from(text)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++)
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc.toString(16).toUpperCase().padStart(4, '0');
}

/**
 * Creates a boleto: the 44 digits of its barcode, and its line of 47 digits, each field with its check digit.
 *
 * @param amount minor units of BRL, at most MAX_BOLETO_AMOUNT.
 * @param dueMs the day on which it expires.
 */
export function boletoNumbers(amount: number, dueMs: number): { barcode: string; line: string } {
  const days = Math.floor((dueMs - BOLETO_EPOCH_MS) / DAY_MS);
  const factor = BOLETO_FACTORS.first + (days % BOLETO_FACTORS.count);
  const value = String(factor) + String(amount).padStart(10, '0');
  const free = randomDigits(25);
  const bank = `${BANK}9`;
  const check = modulo11(bank + value + free);
  const fields = [bank + free.slice(0, 5), free.slice(5, 15), free.slice(15)];
  const line = fields.map((field) => field + modulo10(field)).join('') + check + value;
  return { barcode: bank + check + value + free, line };
}

/** Creates a CLABE: an account number of 18 digits with a check digit, as banks in Mexico have them. */
export function clabe(): string {
  const digits = `${BANK}180${randomDigits(11)}`;
  const weights = [3, 7, 1];
  const sum = [...digits].reduce(
    (total, digit, i) => total + ((Number(digit) * (weights[i % 3] ?? 0)) % 10),
    0,
  );
  return digits + String((10 - (sum % 10)) % 10);
}

/** Creates a reference for paying in cash: digits that begin with `99`, the last of which is a check digit. */
export function cashReference(length: number): string {
  const digits = `99${randomDigits(length - 3)}`;
  return digits + modulo10(digits);
}

/** Computes the check digit of modulo 10, with the weights 2 and 1 from the right (as in the Luhn check). */
function modulo10(digits: string): string {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const weighted = Number(digits.at(-1 - i)) * (i % 2 === 0 ? 2 : 1);
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return String((10 - (sum % 10)) % 10);
}

/** Computes the check digit of a boleto's barcode: modulo 11, with the weights 2 to 9 from the right. */
function modulo11(digits: string): string {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) sum += Number(digits.at(-1 - i)) * (2 + (i % 8));
  const check = 11 - (sum % 11);
  return String(check > 9 ? 1 : check);
}

function randomDigits(count: number): string {
  return Array.from({ length: count }, () => randomInt(10)).join('');
}
