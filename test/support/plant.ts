import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A change to a file of the service. */
export type Edit = {
  readonly file: string;
  /** The text to replace, which occurs once in the file. White space in it matches any white space. */
  readonly find: string;
  readonly replacement: string;
};

/**
 * Returns the files that edits change, by path, with their text after the edits.
 *
 * @throws Error if the text to replace does not occur exactly once in its file.
 */
export function planted(root: string, edits: readonly Edit[]): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const { file, find, replacement } of edits) {
    const text = files.get(file) ?? readFileSync(join(root, file), 'utf8');
    const words = find.trim().split(/\s+/);
    const parts = text.split(new RegExp(words.map(escaped).join('\\s+')));
    if (parts.length !== 2) {
      throw new Error(
        `${file} has the text that a plant replaces ${parts.length - 1} times, not once: ${words.join(' ')}\n` +
          'Let the plant replace the code that does the same now.',
      );
    }
    files.set(file, parts.join(replacement));
  }
  return files;
}

function escaped(word: string): string {
  return word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
