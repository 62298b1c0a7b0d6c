import { isUtf8 } from 'node:buffer';
import { ServiceError } from '#src/service-error.ts';

/** Limit on the nesting of objects and arrays in a body or, for binary, in its JSON form. */
export const NESTING_LIMIT = 32;

/**
 * A number literal that a double might not represent exactly: it has an exponent or many digits, or is tiny. `source`
 * is the literal itself, so that a field's reader can handle it exactly.
 */
export class RawNumber {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/**
 * Matches any number that a double might not reproduce: a number with an exponent, with 16 or more characters, or so
 * small that JavaScript would print it with an exponent. Text in a string may match too, which only costs time. A
 * number without a separator before it is not valid JSON.
 */
const DOUBTFUL_NUMBER = /(?:^|[:,[\s])-?(?:\d[\d.]{15}|\d[\d.]*[eE]|0\.0{6})/;
const DOUBTFUL_LITERAL = /[eE]|^.{16}|^-?0\.0{6}/;

/**
 * Parses JSON (RFC 8259) from bytes. Numbers that a double might change become `RawNumber`. Among members with the same
 * name, the last one counts. Unlike the errors of JSON.parse, ours never quote the text.
 *
 * @throws ServiceError INVALID_REQUEST if the bytes are not UTF-8 or not JSON, or nested more than 32 levels deep.
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
    // Without a cause: V8's message quotes the text, which may contain a card number.
    throw new ServiceError('INVALID_REQUEST', 'the body is not valid JSON');
  }
}

/** Returns the refusal for a body that is nested too deeply. */
export function nestedTooDeeply(): ServiceError {
  return new ServiceError('INVALID_REQUEST', `the body is nested more than ${NESTING_LIMIT} levels deep`);
}

/** Reports whether a value from `parseJson` is an object, not an array, null or a `RawNumber`. */
export function isJsonObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json) && !(json instanceof RawNumber);
}

// TypeScript's types lack the third argument.
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
