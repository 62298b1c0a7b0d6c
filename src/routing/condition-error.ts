import leven from 'leven';

/** Error in a condition, with a line and column within its text, both counted from 1. */
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

/** Returns `; did you mean country?` if a known name is similar to this one, otherwise an empty string. */
export function didYouMean(name: string, known: Iterable<string>): string {
  // Any two codes of two or three letters would count as similar.
  if (name.length < 4) return '';
  const [nearest] = [...known]
    .map((other) => ({ other, edits: leven(name, other) }))
    .filter(({ edits }) => edits <= 2)
    .sort((a, b) => a.edits - b.edits);
  return nearest ? `; did you mean ${nearest.other}?` : '';
}
