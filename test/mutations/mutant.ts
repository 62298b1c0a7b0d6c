import { createHash } from 'node:crypto';
import { codeEdits } from './code-edits.ts';
import type { Edit } from './edit.ts';

/** One small fault in one source file, which some test should notice. */
export type Mutant = Edit & {
  /** Stays the same while the line and the fault do, wherever the line moves to in its file. */
  readonly id: string;
  /** From the root of the checkout, such as src/store/engine/payments.ts. */
  readonly file: string;
  readonly line: number;
  readonly original: string;
};

/** Returns every mutant of a source file, in the order of the text. */
export function mutantsOf(file: string, text: string): Mutant[] {
  const seen = new Map<string, number>();
  return codeEdits(text)
    .filter(({ start, end, replacement }) => text.slice(start, end) !== replacement)
    .sort((a, b) => a.start - b.start || a.end - b.end)
    .map((edit) => {
      const original = text.slice(edit.start, edit.end);
      const lineStart = text.lastIndexOf('\n', edit.start - 1) + 1;
      const lineEnd = text.indexOf('\n', edit.start);
      const line = text.slice(lineStart, lineEnd < 0 ? text.length : lineEnd).trim();
      const key = [file, line, original, edit.replacement].join('\0');
      const nth = seen.get(key) ?? 0;
      seen.set(key, nth + 1);
      const id = createHash('sha256').update(`${key}\0${nth}`).digest('hex').slice(0, 8);
      return { ...edit, id, file, original, line: text.slice(0, edit.start).split('\n').length };
    });
}

/** The text with the mutant in it. */
export function mutated(text: string, { start, end, replacement }: Edit): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

const SHOWN_LENGTH = 60;

/** One line that tells a reader which mutant it is. */
export function describeMutant({ file, line, original, replacement }: Mutant): string {
  return `${file}:${line} ${brief(original)} → ${brief(replacement)}`;
}

function brief(text: string): string {
  const oneLine = text.replace(/\s+/g, ' ').trim();
  if (oneLine === '') return '(nothing)';
  return oneLine.length <= SHOWN_LENGTH ? oneLine : `${oneLine.slice(0, SHOWN_LENGTH - 1)}…`;
}
