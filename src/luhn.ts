/**
 * Reports whether the check digit is correct (ISO/IEC 7812-1, annex B), as in every card number and one in ten other
 * numbers.
 */
export function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charCodeAt(digits.length - 1 - i) - 48;
    const doubled = i % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** Digits that may be a card number, however they are grouped. */
const GROUPED_DIGITS = /\d(?:[ -]?\d){11,18}/g;

/** Reports whether a text contains what may be a card number. */
export function mayHoldCardNumber(text: string): boolean {
  return [...text.matchAll(GROUPED_DIGITS)].some(([found]) => passesLuhn(found.replace(/\D/g, '')));
}
