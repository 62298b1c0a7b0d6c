import type { Strategy } from './strategies.ts';
import type { Summary } from './summary.ts';

/** Results of a strategy. */
export type Compared = { readonly strategy: Strategy; readonly summary: Summary };

/** Returns the name of a strategy for tables and legends. */
export function nameOf({ choice, failover }: Strategy): string {
  return failover ? `${choice}, with failover` : choice;
}

type Column = { readonly head: readonly [string, string]; readonly cell: (summary: Summary) => string };

const COLUMNS: readonly Column[] = [
  { head: ['approved', '%'], cell: ({ approvedPercent }) => approvedPercent.toFixed(2) },
  { head: ['pending', '%'], cell: ({ pendingPercent }) => pendingPercent.toFixed(2) },
  { head: ['errors', '%'], cell: ({ errorPercent }) => errorPercent.toFixed(2) },
  { head: ['attempts', 'a payment'], cell: ({ attemptsPerPayment }) => attemptsPerPayment.toFixed(3) },
  { head: ['wait, s', 'mean'], cell: ({ meanWaitS }) => meanWaitS.toFixed(2) },
  { head: ['wait, s', 'p99'], cell: ({ p99WaitS }) => p99WaitS.toFixed(2) },
  { head: ['cost', '%'], cell: ({ costPercent }) => costPercent?.toFixed(2) ?? '' },
  { head: ['circuits', 'opened'], cell: ({ openings }) => String(openings) },
];

const NAME_WIDTH = 27;
const MIN_CELL_WIDTH = 5;
const SPACES = 2;

const WIDTHS = COLUMNS.map(
  ({ head }) => SPACES + Math.max(MIN_CELL_WIDTH, ...head.map((text) => text.length)),
);

/** Formats the strategies as a table, one line each, in at most 100 columns. */
export function comparisonTable(compared: readonly Compared[]): string {
  const row = (name: string, textOf: (column: Column) => string) => {
    const cells = COLUMNS.map((column, i) => textOf(column).padStart(WIDTHS[i] ?? 0));
    return (name.padEnd(NAME_WIDTH) + cells.join('')).trimEnd();
  };
  return [
    row('', ({ head }) => head[0]),
    row('', ({ head }) => head[1]),
    ...compared.map(({ strategy, summary }) => row(nameOf(strategy), ({ cell }) => cell(summary))),
  ].join('\n');
}
