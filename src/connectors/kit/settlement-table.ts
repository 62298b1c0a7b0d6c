import { SettlementFileError } from '../port/settlement-line.ts';

/** Limits on a report: characters of a line, cells of a line, and characters of a cell that is stored. */
export const TABLE_LIMITS = { line: 64 * 1024, cells: 500, stored: 255 };

/** A line of a table, whose cells are found by the name of their column. */
export type TableRow = {
  /** Line of the file on which it begins, from 1. */
  readonly lineNumber: number;
  /** Returns a cell without blanks around it; undefined if it is empty, or the file has no such column. */
  read(column: string): string | undefined;
  /** Returns whether the file has the column. */
  has(column: string): boolean;
};

/**
 * Reads a CSV file (RFC 4180) by the names in its first line, which may be in any order and case. Accepts a byte-order
 * mark, any ends of lines, and `;` instead of `,`. Other columns are ignored.
 *
 * @param required columns without which the file is refused; an array of names stands for any one of them.
 * @throws SettlementFileError for a file that is no such table.
 */
export async function* readTable(
  text: AsyncIterable<string>,
  required: readonly (string | readonly string[])[],
): AsyncGenerator<TableRow, void> {
  let header:
    | { readonly separator: string; readonly columns: ReadonlyMap<string, number>; width: number }
    | undefined;
  for await (const { lineNumber, line } of recordsOf(text)) {
    if (!header) {
      header = readHeader(line, required);
      continue;
    }
    if (line.trim() === '') continue;
    const cells = cellsOf(line, header.separator, lineNumber);
    if (cells.length !== header.width) {
      throw new SettlementFileError(
        `line ${lineNumber}: has ${cells.length} cells, but the first line names ${header.width} columns`,
      );
    }
    yield rowOf(cells, header.columns, lineNumber);
  }
  if (!header) throw new SettlementFileError('line 1: the file is empty');
}

function rowOf(cells: readonly string[], columns: ReadonlyMap<string, number>, lineNumber: number): TableRow {
  return {
    lineNumber,
    has: (column) => columns.has(folded(column)),
    read: (column) => {
      const at = columns.get(folded(column));
      const cell = at === undefined ? '' : (cells[at] ?? '').trim();
      if (cell.length > TABLE_LIMITS.stored) {
        throw cellError(lineNumber, column, `has more than ${TABLE_LIMITS.stored} characters`);
      }
      return cell === '' ? undefined : cell;
    },
  };
}

/** Creates the error for a cell. */
export function cellError(lineNumber: number, column: string, problem: string): SettlementFileError {
  return new SettlementFileError(`line ${lineNumber}, column ${column}: ${problem}`);
}

function readHeader(line: string, required: readonly (string | readonly string[])[]) {
  const text = line.replace(/^\u{feff}/u, '');
  const separator = text.split(';').length > text.split(',').length ? ';' : ',';
  const names = cellsOf(text, separator, 1).map(folded);
  const columns = new Map<string, number>();
  const twice = new Set<string>();
  for (const [at, name] of names.entries()) {
    if (columns.has(name)) twice.add(name);
    columns.set(name, at);
  }
  const wanted = required.map((one) => (typeof one === 'string' ? [one] : one));
  const missing = wanted.filter((any) => !any.some((name) => columns.has(folded(name))));
  if (missing.length > 0) {
    const list = missing.map((any) => any.join(' or ')).join(', ');
    throw new SettlementFileError(`line 1: the report must have the columns ${list}`);
  }
  const doubled = wanted.flat().find((name) => twice.has(folded(name)));
  if (doubled) throw cellError(1, doubled, 'is there twice');
  return { separator, columns, width: names.length };
}

/** Returns a column's name in lower case, with single blanks. */
function folded(name: string): string {
  return name.trim().replaceAll(/\s+/g, ' ').toLowerCase();
}

/** Splits a file into records, which end at the ends of lines that no quotes enclose. */
async function* recordsOf(text: AsyncIterable<string>): AsyncGenerator<{ lineNumber: number; line: string }> {
  let rest = '';
  let record = '';
  let isQuoted = false;
  let lineNumber = 0;
  let startedAt = 1;
  const add = (line: string): boolean => {
    lineNumber += 1;
    if (record === '') startedAt = lineNumber;
    record = record === '' ? line : `${record}\n${line}`;
    tooLong(record, startedAt);
    if (line.includes('"') && (line.split('"').length - 1) % 2 === 1) isQuoted = !isQuoted;
    return !isQuoted;
  };
  for await (const piece of text) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!add(line.endsWith('\r') ? line.slice(0, -1) : line)) continue;
      yield { lineNumber: startedAt, line: record };
      record = '';
    }
    tooLong(rest, lineNumber + 1);
  }
  if (rest !== '' && add(rest)) yield { lineNumber: startedAt, line: record };
  if (isQuoted)
    throw new SettlementFileError(`line ${startedAt}: a quote is not closed: the file is incomplete`);
}

function tooLong(line: string, lineNumber: number): void {
  if (line.length > TABLE_LIMITS.line) {
    throw new SettlementFileError(`line ${lineNumber}: has more than ${TABLE_LIMITS.line} characters`);
  }
}

function cellsOf(line: string, separator: string, lineNumber: number): string[] {
  const cells = line.includes('"') ? quotedCells(line, separator, lineNumber) : line.split(separator);
  if (cells.length > TABLE_LIMITS.cells) {
    throw new SettlementFileError(`line ${lineNumber}: has more than ${TABLE_LIMITS.cells} cells`);
  }
  return cells;
}

function quotedCells(line: string, separator: string, lineNumber: number): string[] {
  const cells: string[] = [];
  let at = 0;
  for (;;) {
    let end: number;
    if (line[at] === '"') {
      end = at + 1;
      while (end < line.length && (line[end] !== '"' || line[end + 1] === '"'))
        end += line[end] === '"' ? 2 : 1;
      if (end >= line.length) throw new SettlementFileError(`line ${lineNumber}: a quote is not closed`);
      cells.push(line.slice(at + 1, end).replaceAll('""', '"'));
      end += 1;
    } else {
      end = line.indexOf(separator, at);
      if (end < 0) end = line.length;
      cells.push(line.slice(at, end));
    }
    if (end >= line.length) return cells;
    if (line[end] !== separator)
      throw new SettlementFileError(`line ${lineNumber}: text follows a closing quote`);
    at = end + 1;
  }
}
