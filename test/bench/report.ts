/** Result of one run of one subject. */
export type Measure = {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time a payment: of the server, of PostgreSQL, and of the load generator. */
  readonly serverCpuMs: number;
  readonly postgresCpuMs: number;
  readonly loadCpuMs: number;
  /** Processor time that went to processes that are no part of this, of all that the machine has. */
  readonly othersPercent: number;
};

/** The subjects that are compared. The letters are those of the ratios. */
export const SUBJECTS = {
  a: 'a  service, REST',
  b: 'b  service, gRPC',
  c: 'c  floor: bare Fastify',
  d: 'd  two commits alone',
} as const;

export type Subject = keyof typeof SUBJECTS;

/** The measures of each round, in the order of the rounds. */
export type Measures = Readonly<Record<Subject, readonly Measure[]>>;

const RATIOS: readonly [Subject, Subject][] = [
  ['a', 'c'],
  ['b', 'c'],
  ['b', 'a'],
  ['a', 'd'],
];

/** The table: medians of the rounds, and of the ratios within each round. */
export function report(
  byConcurrency: ReadonlyMap<number, Measures>,
  peakMb: Readonly<Record<Subject, number>>,
): string {
  const lines: string[] = [];
  for (const [concurrency, measures] of byConcurrency) {
    lines.push(
      '',
      row([`${concurrency} at a time`, 'payments/s', 'p50 ms', 'p99 ms', ...CPU_COLUMNS, 'peak MB']),
    );
    for (const subject of Object.keys(SUBJECTS) as Subject[]) {
      const median = (name: keyof Measure) => medianOf(measures[subject].map((measure) => measure[name]));
      lines.push(
        row([
          SUBJECTS[subject],
          median('perSecond').toFixed(0),
          median('p50Ms').toFixed(2),
          median('p99Ms').toFixed(2),
          median('serverCpuMs').toFixed(3),
          median('postgresCpuMs').toFixed(3),
          subject === 'd' ? '' : median('loadCpuMs').toFixed(3),
          median('othersPercent').toFixed(0),
          peakMb[subject].toFixed(0),
        ]),
      );
    }
    const ratios = RATIOS.map(([of, to]) => `${of}/${to} ${medianOf(ratiosOf(measures, of, to)).toFixed(2)}`);
    lines.push(`payments/s: ${ratios.join('   ')}`);
  }
  return lines.join('\n');
}

const CPU_COLUMNS = ['CPU: server', 'PostgreSQL', 'load', 'others %'];
const WIDTHS = [24, 11, 9, 9, 13, 12, 8, 10, 9];

function row(cells: readonly string[]): string {
  return cells.map((cell, i) => (i === 0 ? cell.padEnd(24) : cell.padStart(WIDTHS[i] ?? 10))).join('');
}

function ratiosOf(measures: Measures, of: Subject, to: Subject): number[] {
  return measures[of].map(
    (measure, round) => measure.perSecond / (measures[to][round]?.perSecond ?? Number.NaN),
  );
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
