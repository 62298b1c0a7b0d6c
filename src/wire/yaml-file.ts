import { readFileSync } from 'node:fs';
import { type Document, LineCounter, parseDocument } from 'yaml';

/** Creates the error that reports a fault in a file. */
export type Refuse = (message: string) => Error;

/** A YAML document (JSON is YAML too), with a counter that maps positions to lines. */
export type YamlFile = { readonly document: Document; readonly lineCounter: LineCounter };

/** Reads an operator's file. @throws the error from `refuse` if it cannot be read. */
export function readTextFile(file: string, refuse: Refuse): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw refuse(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/**
 * Parses a file's text. `file` is used only in messages.
 *
 * @throws the error from `refuse`, with the line, if the text is not YAML.
 */
export function parseYaml(text: string, file: string, refuse: Refuse): YamlFile {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { prettyErrors: true, lineCounter });
  const [syntaxError] = document.errors;
  if (syntaxError) throw refuse(`${file}: ${syntaxError.message}`);
  return { document, lineCounter };
}
