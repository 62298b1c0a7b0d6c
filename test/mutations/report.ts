import type { Listed } from './listed.ts';
import { describeMutant, type Mutant } from './mutant.ts';
import type { Result } from './results.ts';

/** Contents of a report. */
export type Outcomes = {
  readonly asked: readonly Mutant[];
  /** The results that hold, by the mutants' ids. */
  readonly latest: ReadonlyMap<string, Result>;
  readonly listed: ReadonlyMap<string, Listed>;
  /** Ids in the list that no mutant has. */
  readonly stale: readonly string[];
};

const COLUMNS = ['mutants', 'killed', 'survived', 'equivalent', 'accepted', 'not run'] as const;
type Column = (typeof COLUMNS)[number];

/** A table of all files, and the survivors that are not listed. */
export function summary({ asked, latest, listed, stale }: Outcomes): string {
  const kindOf = ({ id }: Mutant): Column => {
    const verdict = latest.get(id)?.verdict;
    return (
      listed.get(id) ?? (verdict === undefined ? 'not run' : verdict === 'survived' ? 'survived' : 'killed')
    );
  };
  const countsOf = (mutants: readonly Mutant[]) =>
    COLUMNS.map((column) =>
      column === 'mutants' ? mutants.length : mutants.filter((mutant) => kindOf(mutant) === column).length,
    );
  const rows = [...Map.groupBy(asked, ({ file }) => file)].map(([file, mutants]) => [
    file,
    ...countsOf(mutants),
  ]);
  const survivors = asked.filter((mutant) => kindOf(mutant) === 'survived');
  const lines = [
    '',
    table([['', ...COLUMNS], ...rows, ['all', ...countsOf(asked)]]),
    ...(survivors.length > 0 ? ['', 'Survived:', ...survivors.map(row)] : []),
    ...(stale.length > 0
      ? ['', `Listed in docs/mutations.md, but there is no such mutant: ${stale.join(' ')}`]
      : []),
  ];
  return lines.join('\n');
}

/** As a row for docs/mutations.md, the reason to be added. */
function row(mutant: Mutant): string {
  return `| \`${mutant.id}\` | ${describeMutant(mutant)} | |`;
}

function table(rows: readonly (readonly (string | number)[])[]): string {
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((cells) => String(cells[i]).length))) ?? [];
  return rows
    .map((cells) =>
      cells
        .map((cell, i) =>
          i === 0 ? String(cell).padEnd(widths[i] ?? 0) : String(cell).padStart(widths[i] ?? 0),
        )
        .join('  '),
    )
    .join('\n');
}
