/** A condition that cannot be used. Line and column count from 1, within the condition's text. */
export class ConditionError extends Error {
  override readonly name = 'ConditionError';
  readonly line: number;
  readonly column: number;

  constructor(message: string, text: string, offset: number) {
    super(message);
    const lines = text.slice(0, offset).split('\n');
    this.line = lines.length;
    this.column = (lines.at(-1) as string).length + 1;
  }
}

/** Returns `; did you mean country?` when a known name is close to this one, otherwise an empty text. */
export function didYouMean(name: string, known: Iterable<string>): string {
  // Any two codes of two or three letters are close to each other.
  if (name.length < 4) return '';
  const [nearest] = [...known]
    .map((other) => ({ other, edits: editDistance(name, other) }))
    .filter(({ edits }) => edits <= 2)
    .sort((a, b) => a.edits - b.edits);
  return nearest ? `; did you mean ${nearest.other}?` : '';
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, char] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] as number) + (char === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] as number) + 1, (next[j] as number) + 1));
    }
    row = next;
  }
  return row.at(-1) as number;
}
