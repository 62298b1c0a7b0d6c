import type { ReadSettlement, SettlementLine } from '#src/connectors/port/settlement-line.ts';

/** Reads a whole report, given in pieces of 7 characters, so that every boundary falls somewhere. */
export async function readLines(
  read: ReadSettlement,
  text: string,
  options: { currency?: string } = {},
): Promise<SettlementLine[]> {
  const lines: SettlementLine[] = [];
  for await (const line of read(pieces(text), options)) lines.push(line);
  return lines;
}

async function* pieces(text: string): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += 7) yield text.slice(at, at + 7);
}

/** Builds a CSV file from a header and the cells of its lines by column. */
export function csv(
  columns: readonly string[],
  rows: readonly Readonly<Record<string, string>>[],
  { separator = ',', end = '\r\n' } = {},
): string {
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column] ?? ''))];
  return lines.map((cells) => cells.join(separator) + end).join('');
}
