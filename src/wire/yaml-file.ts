import { readFileSync } from 'node:fs';
import { type Document, LineCounter, parseDocument } from 'yaml';

/** Makes the error that reports a fault in a file. */
export type Refuse = (message: string) => Error;

/** A YAML document (or JSON, which is YAML), with a counter that finds the lines of its positions. */
export type YamlFile = { readonly document: Document; readonly lineCounter: LineCounter };

/** Reads the text of an operator's file. @throws the error that `refuse` makes if it cannot be read. */
export function readTextFile(file: string, refuse: Refuse): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw refuse(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/**
 * Parses a file's text; `file` is for messages.
 *
 * @throws the error that `refuse` makes, with the line, if it is not YAML.
 */
export function parseYaml(text: string, file: string, refuse: Refuse): YamlFile {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { prettyErrors: true, lineCounter });
  const [syntaxError] = document.errors;
  if (syntaxError) throw refuse(`${file}: ${syntaxError.message}`);
  return { document, lineCounter };
}
