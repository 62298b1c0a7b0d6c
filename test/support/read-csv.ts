/**
 * Reads a file as RFC 4180 says.
 *
 * @returns its lines as objects by the names of the first line.
 * @throws Error for a file whose quotes do not close, whose last line does not end, or whose lines differ in length.
 */
export function readCsv(text: string, separator = ','): Record<string, string>[] {
  const lines: string[][] = [[]];
  const cell = new RegExp(`("(?:[^"]|"")*"|[^"${separator}\\r\\n]*)(${separator}|\\r\\n)`, 'y');
  while (cell.lastIndex < text.length) {
    const at = cell.lastIndex;
    const match = cell.exec(text);
    if (!match) throw new Error(`no cell at ${at}: ${text.slice(at, at + 40)}`);
    const [, written = '', end] = match;
    lines.at(-1)?.push(written.startsWith('"') ? written.slice(1, -1).replaceAll('""', '"') : written);
    if (end === '\r\n') lines.push([]);
  }
  if (lines.pop()?.length !== 0) throw new Error('the last line does not end');
  const [names = [], ...rows] = lines;
  return rows.map((row) => {
    if (row.length !== names.length) throw new Error(`a line has ${row.length} cells, not ${names.length}`);
    return Object.fromEntries(names.map((name, i) => [name, row[i] ?? '']));
  });
}

/** Adds up a column of decimals by currency, exactly, in units of 10^-3. */
export function sumsOf(rows: readonly Record<string, string>[], column = 'amount'): Record<string, bigint> {
  const sums: Record<string, bigint> = {};
  for (const row of rows) {
    const { currency = '', [column]: text = '' } = row;
    const [whole = '', fraction = ''] = text.split('.');
    const thousandths = BigInt(whole.replace('-', '') + fraction.padEnd(3, '0')) || 0n;
    sums[currency] = (sums[currency] ?? 0n) + (text.startsWith('-') ? -thousandths : thousandths);
  }
  return sums;
}
