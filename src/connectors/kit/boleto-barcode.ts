/** A boleto's line: three fields with a check digit each, the check digit of the barcode, the due date and the amount. */
const LINE = /^(\d{4})(\d{5})(\d)(\d{10})(\d)(\d{10})(\d)(\d)(\d{14})$/;

/**
 * Returns the 44 digits of a boleto's barcode from the 47 digits of its line, which hold the same in another order.
 *
 * @param line as a provider writes it, with spaces or dots.
 * @returns undefined for any other number: its check digits are wrong, or it is a utility's slip of 48 digits.
 */
export function boletoBarcode(line: string): string | undefined {
  const fields = LINE.exec(line.replace(/[\s.-]/g, ''));
  if (!fields) return undefined;
  const [, bank = '', a = '', checkA, b = '', checkB, c = '', checkC, check = '', rest = ''] = fields;
  const areFieldsRight =
    checkOfField(bank + a) === checkA && checkOfField(b) === checkB && checkOfField(c) === checkC;
  const isRight = areFieldsRight && checkOfBarcode(bank + rest + a + b + c) === check;
  return isRight ? bank + check + rest + a + b + c : undefined;
}

/** Returns the check digit of a field, modulo 10: its digits times 2 and 1 in turn, from the right. */
function checkOfField(field: string): string {
  const sum = fromRight(field).reduce((total, digit, index) => {
    const product = digit * (index % 2 === 0 ? 2 : 1);
    return total + Math.floor(product / 10) + (product % 10);
  }, 0);
  return String((10 - (sum % 10)) % 10);
}

/** Returns the check digit of a barcode, modulo 11: its other digits times 2 to 9 in turn, from the right. */
function checkOfBarcode(digits: string): string {
  const sum = fromRight(digits).reduce((total, digit, index) => total + digit * (2 + (index % 8)), 0);
  const rest = 11 - (sum % 11);
  return String(rest >= 10 ? 1 : rest);
}

function fromRight(digits: string): number[] {
  return [...digits].reverse().map(Number);
}
