import { SettlementFileError } from '../port/settlement-line.ts';

/** Limit on the characters of one object. */
export const MAX_DOCUMENT = 4 * 1024 * 1024;

/**
 * Reads JSON objects that follow one another, or that are the elements of a list, one at a time.
 *
 * @throws SettlementFileError if the text is something else, is truncated, or an object is larger than MAX_DOCUMENT.
 */
export async function* documentsOf(text: AsyncIterable<string>): AsyncGenerator<unknown, void> {
  let document = '';
  let number = 1;
  let depth = 0;
  let isText = false;
  let isEscaped = false;
  for await (const piece of text) {
    let from = 0;
    for (let at = 0; at < piece.length; at += 1) {
      const letter = piece[at];
      if (isEscaped) isEscaped = false;
      else if (isText) {
        if (letter === '\\') isEscaped = true;
        else if (letter === '"') isText = false;
      } else if (letter === '{') {
        if (depth === 0) from = at;
        depth += 1;
      } else if (letter === '}') {
        depth -= 1;
        if (depth < 0) throw noObject(number);
        if (depth > 0) continue;
        yield parse(document + piece.slice(from, at + 1), number);
        document = '';
        number += 1;
      } else if (depth > 0) isText = letter === '"';
      else if (!/[\s,[\]\u{feff}]/u.test(letter ?? '')) throw noObject(number);
    }
    if (depth > 0) document += piece.slice(from);
    if (document.length > MAX_DOCUMENT) {
      throw new SettlementFileError(`object ${number}: has more than ${MAX_DOCUMENT} characters`);
    }
  }
  if (depth > 0) throw new SettlementFileError(`object ${number}: does not end: the file is incomplete`);
}

function parse(text: string, number: number): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw noObject(number);
  }
}

function noObject(number: number): SettlementFileError {
  return new SettlementFileError(`object ${number}: is no JSON object`);
}
