import { type DescEnum, getOption, ScalarType } from '@bufbuild/protobuf';
import { base64Decode } from '@bufbuild/protobuf/wire';
import { also_named } from '#gen/payments/v1/json_options_pb.js';
import { RawNumber } from './parse-json.ts';
import { type Faults, noteFault, type Read } from './wire-json-faults.ts';

/**
 * Returns a function that reads a Protobuf scalar from JSON, and checks its type and range.
 *
 * @param options.lenient also accepts numbers as strings and the names of the special floats, as ProtoJSON does.
 * @param options.longAsString returns 64-bit integers as strings instead of bigint.
 */
export function scalarReader(
  scalar: ScalarType,
  options: { readonly lenient: boolean; readonly longAsString: boolean },
): Read {
  switch (scalar) {
    case ScalarType.STRING:
      return readString;
    case ScalarType.BOOL:
      return readBool;
    case ScalarType.BYTES:
      return readBytes;
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return floatReader(
        scalar === ScalarType.FLOAT ? 3.4028234663852886e38 : Number.MAX_VALUE,
        options.lenient,
      );
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return integerReader(-(2 ** 31), 2 ** 31 - 1, options.lenient);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return integerReader(0, 2 ** 32 - 1, options.lenient);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return longReader(0n, 2n ** 64n - 1n, options.longAsString);
    default:
      return longReader(-(2n ** 63n), 2n ** 63n - 1n, options.longAsString);
  }
}

/**
 * Returns a function that reads an enum. It accepts the name of any value but the first, which means "unspecified", and
 * the alternative names for requests (`also_named`).
 *
 * @param lenient accepts every name, and numbers, as ProtoJSON does.
 */
export function enumReader(desc: DescEnum, lenient: boolean): Read {
  const values = desc.values.filter((value) => lenient || value.number !== 0);
  const numbers = new Map(
    values.flatMap((value) =>
      [value.name, ...getOption(value, also_named)].map((name) => [name, value.number] as const),
    ),
  );
  const expected = `must be one of ${values.map(({ name }) => name).join(', ')}`;
  const readNumber = scalarReader(ScalarType.INT32, { lenient: false, longAsString: false });
  return (json, faults) => {
    if (typeof json === 'string') return numbers.get(json) ?? noteFault(faults, 'NOT_ALLOWED', expected);
    return lenient ? readNumber(json, faults) : noteFault(faults, 'INVALID_TYPE', 'must be a string');
  };
}

/** Reads a string that may also be sent as true or false. */
export function readTextOrBoolean(json: unknown, faults: Faults): string | undefined {
  return readString(typeof json === 'boolean' ? String(json) : json, faults);
}

function readString(json: unknown, faults: Faults): string | undefined {
  if (typeof json !== 'string') return noteFault(faults, 'INVALID_TYPE', 'must be a string');
  return json.isWellFormed() ? json : noteFault(faults, 'INVALID_FORMAT', 'must be well-formed Unicode');
}

function readBool(json: unknown, faults: Faults): boolean | undefined {
  return typeof json === 'boolean' ? json : noteFault(faults, 'INVALID_TYPE', 'must be true or false');
}

function readBytes(json: unknown, faults: Faults): Uint8Array | undefined {
  if (typeof json !== 'string') return noteFault(faults, 'INVALID_TYPE', 'must be a string');
  try {
    return base64Decode(json);
  } catch {
    return noteFault(faults, 'INVALID_FORMAT', 'must be base64');
  }
}

const SPECIAL_FLOATS = new Map([
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
]);
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function floatReader(max: number, lenient: boolean): Read {
  return (json, faults) => {
    if (lenient && typeof json === 'string' && SPECIAL_FLOATS.has(json)) return SPECIAL_FLOATS.get(json);
    let number = json;
    if (json instanceof RawNumber) number = Number(json.source);
    else if (lenient && typeof json === 'string' && NUMBER.test(json)) number = Number(json);
    if (typeof number !== 'number') return noteFault(faults, 'INVALID_TYPE', 'must be a number');
    return Math.abs(number) <= max ? number : noteFault(faults, 'OUT_OF_RANGE', 'is too large');
  };
}

function integerReader(min: number, max: number, lenient: boolean): Read {
  const range = `must be from ${min} to ${max}`;
  return (json, faults) => {
    const number = typeof json === 'number' ? json : Number(wholeNumber(json, lenient) ?? Number.NaN);
    if (!Number.isInteger(number)) return noteFault(faults, 'INVALID_TYPE', 'must be an integer');
    // Minus zero becomes zero.
    return number >= min && number <= max ? number || 0 : noteFault(faults, 'OUT_OF_RANGE', range);
  };
}

/** Returns a function that reads a 64-bit integer: a string in ProtoJSON, or a number if it is exact. */
function longReader(min: bigint, max: bigint, longAsString: boolean): Read {
  const range = `must be from ${min} to ${max}`;
  return (json, faults) => {
    const digits = Number.isSafeInteger(json) ? String(json || 0) : wholeNumber(json, true);
    if (digits === undefined) return noteFault(faults, 'INVALID_TYPE', 'must be an integer');
    // A longer number is out of range anyway, and slow to convert.
    const value = digits.length <= 64 ? BigInt(digits) : max + 1n;
    if (value < min || value > max) return noteFault(faults, 'OUT_OF_RANGE', range);
    return longAsString ? String(value) : value;
  };
}

const WHOLE_NUMBER = /^(-?\d+)(?:\.0+)?$/;

/** Returns the digits of a whole-number literal or, if `text` is true, of a whole number in a string: "6.000" is 6. */
function wholeNumber(json: unknown, text: boolean): string | undefined {
  const source = json instanceof RawNumber ? json.source : text && typeof json === 'string' ? json : '';
  return WHOLE_NUMBER.exec(source)?.[1];
}
