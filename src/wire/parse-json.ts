import { isUtf8 } from 'node:buffer';
import { ServiceError } from '#src/service-error.ts';

/** Limit on the nesting of objects and arrays in a body; in binary, of their JSON form. */
export const NESTING_LIMIT = 32;

/**
 * A number literal that a double might not represent exactly: it has an exponent or many digits, or is tiny. Its
 * `source` is the literal itself, so that the reader of a field can judge it exactly.
 */
export class RawNumber {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/**
 * Matches wherever a number that a double might not reproduce could be: a number with an exponent, one of 16 or more
 * characters, or one so small that JavaScript would print it with an exponent. Text in a string may match too, which
 * costs only time; a number that follows no separator is not valid JSON.
 */
const DOUBTFUL_NUMBER = /(?:^|[:,[\s])-?(?:\d[\d.]{15}|\d[\d.]*[eE]|0\.0{6})/;
const DOUBTFUL_LITERAL = /[eE]|^.{16}|^-?0\.0{6}/;

/**
 * Parses JSON (RFC 8259) from bytes. Numbers that a double might change become `RawNumber`; of members with the same
 * name, the last one counts. Unlike JSON.parse's errors, ours never quote the text.
 *
 * @throws ServiceError INVALID_REQUEST if it is not UTF-8, nested more than 32 deep, or not JSON.
 */
export function parseJson(bytes: Uint8Array): unknown {
  if (!isUtf8(bytes)) throw new ServiceError('INVALID_REQUEST', 'the body is not valid UTF-8');
  if (isNestedTooDeeply(bytes)) throw nestedTooDeeply();
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  try {
    return DOUBTFUL_NUMBER.test(text)
      ? JSON.parse(text, keepNumberSource as (key: string, value: unknown) => unknown)
      : JSON.parse(text);
  } catch {
    // Without the cause: V8's message quotes the text, which may contain a card number.
    throw new ServiceError('INVALID_REQUEST', 'the body is not valid JSON');
  }
}

/** Refuses a body that is nested too deeply. */
export function nestedTooDeeply(): ServiceError {
  return new ServiceError('INVALID_REQUEST', `the body is nested more than ${NESTING_LIMIT} deep`);
}

/** Returns true if a value from `parseJson` is an object, rather than an array, null, or a `RawNumber`. */
export function isJsonObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json) && !(json instanceof RawNumber);
}

// The types lack the third argument.
function keepNumberSource(_key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== 'number' || context.source === undefined) return value;
  return DOUBTFUL_LITERAL.test(context.source) ? new RawNumber(context.source) : value;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
// "[" and "{", and "]" and "}", differ only in this bit.
const BRACE_BIT = 0x20;
const OPENING = 0x7b;
const CLOSING = 0x7d;

/** Checks the bytes before any parser recurses over them. In UTF-8, no byte of a multi-byte character is ASCII. */
function isNestedTooDeeply(bytes: Uint8Array): boolean {
  let depth = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (byte === QUOTE) {
      i++;
      while (i < bytes.length && bytes[i] !== QUOTE) i += bytes[i] === BACKSLASH ? 2 : 1;
    } else if (byte >= 0x5b) {
      const bracket = byte | BRACE_BIT;
      if (bracket === OPENING && ++depth > NESTING_LIMIT) return true;
      if (bracket === CLOSING) depth--;
    }
  }
  return false;
}
