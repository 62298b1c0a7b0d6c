import { currencyDigits, type Money } from '#src/money.ts';

/** The form of a file (RFC 4180, UTF-8). */
export type CsvFormat = {
  /** A semicolon comes with a decimal comma, as spreadsheets in Spanish, Portuguese or German expect. */
  readonly separator: ',' | ';';
  /** Begins the file with a byte-order mark, by which Excel knows UTF-8. */
  readonly hasBom: boolean;
  /** Leaves texts as they are, for programs. */
  readonly isRaw: boolean;
};

/** A cell: a text from anywhere, money, or nothing. */
export type Cell = string | Money | undefined;

/** Returns a function that writes a line, with its end. */
export function csvLine(format: CsvFormat): (cells: readonly Cell[]) => string {
  const { separator, isRaw } = format;
  const point = separator === ';' ? ',' : '.';
  const special = separator === ';' ? /[;"\r\n]/ : /[,"\r\n]/;
  const write = (cell: Cell): string => {
    if (cell === undefined || cell === '') return '';
    if (typeof cell !== 'string') return exactDecimal(cell, point);
    const text = !isRaw && isFormula(cell) ? `'${cell}` : cell;
    return special.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return (cells) => {
    let line = '';
    for (const [i, cell] of cells.entries()) line += i === 0 ? write(cell) : separator + write(cell);
    return `${line}\r\n`;
  };
}

/** Returns what a file begins with, before its first line. */
export function csvStart({ hasBom }: CsvFormat): string {
  return hasBom ? '\u{feff}' : '';
}

// Spreadsheets skip blanks, and some read the full-width forms of the signs.
const FORMULA = /^\s*[=+\-@＝＋－＠]|^[\t\r\n]/;

/** Reports whether a spreadsheet would run a text as a formula. */
function isFormula(text: string): boolean {
  return FORMULA.test(text);
}

/** Writes money with exactly the digits of its currency: -12.00 (USD), 1200 (JPY), 1.250 (KWD). */
function exactDecimal({ minorUnits, currency }: Money, point: string): string {
  const digits = currencyDigits(currency) ?? 0;
  const sign = minorUnits < 0n ? '-' : '';
  const text = (minorUnits < 0n ? -minorUnits : minorUnits).toString();
  if (digits === 0) return sign + text;
  const padded = text.padStart(digits + 1, '0');
  return `${sign}${padded.slice(0, -digits)}${point}${padded.slice(-digits)}`;
}
