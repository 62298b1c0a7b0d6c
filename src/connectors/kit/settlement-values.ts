import { createHash } from 'node:crypto';
import { CURRENCIES, currencyDigits, largestAmount, type Money, parseMoney } from '#src/money.ts';
import type { SettlementLine } from '../port/settlement-line.ts';
import { cellError, type TableRow } from './settlement-table.ts';

/** Reads a currency in any case. @throws SettlementFileError if it is not an ISO 4217 code; undefined if empty. */
export function readCurrency(row: TableRow, column: string): string | undefined {
  const code = row.read(column)?.toUpperCase();
  if (code === undefined || CURRENCIES.has(code)) return code;
  throw cellError(row.lineNumber, column, 'is no currency: give an ISO 4217 code, such as EUR');
}

/** Reads a currency that must be there. @throws SettlementFileError as readCurrency does. */
export function requireCurrency(row: TableRow, column: string): string {
  const code = readCurrency(row, column);
  if (code === undefined) throw cellError(row.lineNumber, column, 'is empty');
  return code;
}

/** Reads a text that must be there. @throws SettlementFileError if it is empty. */
export function requireText(row: TableRow, column: string): string {
  const text = row.read(column);
  if (text === undefined) throw cellError(row.lineNumber, column, 'is empty');
  return text;
}

/**
 * Reads a decimal amount in major units as minor units; 0 if it is empty or the column is absent.
 *
 * @throws SettlementFileError if it is no decimal with a point, or does not fit the currency.
 */
export function readAmount(row: TableRow, column: string, currency: string): bigint {
  const text = row.read(column);
  if (text === undefined) return 0n;
  const minorUnits = exactAmount(text, currency);
  if (minorUnits !== undefined) return minorUnits;
  throw cellError(row.lineNumber, column, noAmount(currency));
}

/** Parses a decimal amount as minor units; undefined if it does not fit the currency. */
export function exactAmount(text: string, currency: string): bigint | undefined {
  const minorUnits = parseMoney(text, currency)?.minorUnits;
  const largest = largestAmount(currency)?.minorUnits ?? 0n;
  return minorUnits === undefined || minorUnits > largest || minorUnits < -largest ? undefined : minorUnits;
}

/** Returns the problem of a text that is no amount in a currency. */
export function noAmount(currency: string): string {
  return `is no amount in ${currency}: it must be a decimal with a point and at most ${currencyDigits(currency)} decimal places`;
}

/** Returns money with the sign of another amount, since some reports print it without one. */
export function signedLike(minorUnits: bigint, like: bigint, currency: string): Money {
  const size = minorUnits < 0n ? -minorUnits : minorUnits;
  return { minorUnits: like < 0n ? -size : size, currency };
}

const UUID = /^(?:[a-z]+-)?([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})$/;

/** Returns our id in a reference such as `<id>` or `refund-<id>`; undefined if it is not ours. */
export function ourIdIn(...references: readonly (string | undefined)[]): string | undefined {
  for (const reference of references) {
    const id = reference === undefined ? undefined : UUID.exec(reference)?.[1];
    if (id !== undefined) return id;
  }
  return undefined;
}

const TIME = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d{1,9})?)(Z|[+-]\d\d:?\d\d)?$/;

/**
 * Reads a time such as `2026-09-30 23:59:59` or `2026-09-30T23:59:59.000-03:00`.
 *
 * @param zone of a time without an offset, such as `Z` or `+01:00`; undefined if it is not known.
 * @returns undefined if the cell is empty, or the zone is not known.
 * @throws SettlementFileError if it is no time.
 */
export function readTime(row: TableRow, column: string, zone: string | undefined): Date | undefined {
  const text = row.read(column);
  if (text === undefined) return undefined;
  const time = timeOf(text, zone);
  if (time !== 'no time') return time;
  throw cellError(row.lineNumber, column, 'is no time: it must be as in 2026-09-30 23:59:59');
}

/** Parses a time as readTime does. */
export function timeOf(text: string, zone: string | undefined): Date | undefined | 'no time' {
  const [, day, clock, offset] = TIME.exec(text) ?? [];
  if (day === undefined) return 'no time';
  const own = offset?.replace(/^([+-]\d\d)(\d\d)$/, '$1:$2') ?? zone;
  const time = new Date(`${day}T${clock}${own ?? 'Z'}`);
  if (Number.isNaN(time.getTime())) return 'no time';
  return own === undefined ? undefined : time;
}

/** Creates a function that returns keys for lines to which the provider gives none: equal lines are numbered. */
export function createLineKeys(): (parts: readonly unknown[]) => string {
  const counts = new Map<number, number>();
  return (parts) => {
    const digest = createHash('sha256')
      .update(JSON.stringify(parts.map((part) => String(part ?? ''))))
      .digest();
    // Numbers of 48 bits keep a million lines in a few tens of megabytes.
    const short = digest.readUIntBE(0, 6);
    const n = (counts.get(short) ?? 0) + 1;
    counts.set(short, n);
    return `${digest.toString('base64url')}-${n}`;
  };
}

/** The amounts of a line: a fee that the report does not name is whatever lies between gross and net. */
export function balanced(
  amounts: Pick<SettlementLine, 'gross' | 'net'> & { readonly tax?: bigint; readonly feeParts?: number },
): Pick<SettlementLine, 'gross' | 'fee' | 'feeParts' | 'tax' | 'net'> {
  const { gross, net, tax = 0n, feeParts = 1 } = amounts;
  return { gross, fee: net - gross - tax, feeParts: Math.max(1, feeParts), tax, net };
}
