/** Result of one run of one subject. */
export type Measure = {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time per payment: of the server, of PostgreSQL and of the load generator. */
  readonly serverCpuMs: number;
  readonly postgresCpuMs: number;
  readonly loadCpuMs: number;
  /** Kilobytes (10^3) per payment: of the write-ahead log, and growth of tables and indexes. */
  readonly walKb: number;
  readonly diskKb: number;
  /** Share of the machine's CPU time that unrelated processes used. */
  readonly othersPercent: number;
};

/** A subject with its label in the report, and its letter in the ratios. */
export type Named = { readonly letter: string; readonly label: string };

/** The measurements of each round, keyed by subject letter, in the order of the rounds. */
export type Measures = ReadonlyMap<string, readonly Measure[]>;

/** The letters of two subjects: the ratio divides the first by the second. */
export type Ratio = readonly [of: string, to: string];

/** Makes the table: the medians of all rounds, and the medians of the ratios within each round. */
export function report(
  subjects: readonly (Named & { readonly peakMb: number })[],
  ratios: readonly Ratio[],
  byConcurrency: ReadonlyMap<number, Measures>,
): string {
  const lines: string[] = [];
  for (const [concurrency, measures] of byConcurrency) {
    lines.push(
      '',
      row([`${concurrency} at a time`, 'payments/s', 'p50 ms', 'p99 ms', ...CPU_COLUMNS, 'peak MB']),
    );
    for (const { letter, label, peakMb } of subjects) {
      const median = (name: keyof Measure) => medianAt(measures, letter, name);
      lines.push(
        row([
          `${letter}  ${label}`,
          median('perSecond').toFixed(0),
          median('p50Ms').toFixed(2),
          median('p99Ms').toFixed(2),
          median('serverCpuMs').toFixed(3),
          median('postgresCpuMs').toFixed(3),
          median('loadCpuMs').toFixed(3),
          median('walKb').toFixed(1),
          median('diskKb').toFixed(1),
          median('othersPercent').toFixed(0),
          peakMb.toFixed(0),
        ]),
      );
    }
    for (const [name, title] of RATIO_LINES) {
      const texts = ratios.map(
        ([of, to]) => `${of}/${to} ${medianOf(ratiosOf(measures, name, of, to)).toFixed(2)}`,
      );
      lines.push(`${title}: ${texts.join('   ')}`);
    }
  }
  return lines.join('\n');
}

/** Returns the median of a subject's rounds. */
export function medianAt(measures: Measures | undefined, letter: string, name: keyof Measure): number {
  return medianOf((measures?.get(letter) ?? []).map((measure) => measure[name]));
}

const RATIO_LINES: readonly (readonly [keyof Measure, string])[] = [
  ['perSecond', 'payments/s'],
  ['serverCpuMs', 'server CPU'],
  ['postgresCpuMs', 'PostgreSQL CPU'],
  ['walKb', 'write-ahead log'],
  ['diskKb', 'disk'],
];
const CPU_COLUMNS = ['CPU: server', 'PostgreSQL', 'load', 'WAL KB', 'disk KB', 'others %'];
const WIDTHS = [30, 11, 9, 9, 13, 12, 8, 9, 9, 10, 9];

function row(cells: readonly string[]): string {
  return cells.map((cell, i) => (i === 0 ? cell.padEnd(30) : cell.padStart(WIDTHS[i] ?? 10))).join('');
}

function ratiosOf(measures: Measures, name: keyof Measure, of: string, to: string): number[] {
  const [above = [], below = []] = [measures.get(of), measures.get(to)];
  return above.map((measure, round) => measure[name] / (below[round]?.[name] ?? Number.NaN));
}

/** Returns the median; NaN for an empty list. */
export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
