import { create, type DescMessage, fromJson, type JsonValue } from '@bufbuild/protobuf';
import {
  FieldMaskSchema,
  ListValueSchema,
  type Timestamp,
  TimestampSchema,
  ValueSchema,
} from '@bufbuild/protobuf/wkt';
import { DecimalSchema } from '#gen/google/type/decimal_pb.js';
import { whyNoDecimal } from '#src/money.ts';
import { canonicalDecimal } from './canonical-decimal.ts';
import { MAX_FREE_VALUES, TOO_MANY_FREE_VALUES, tooManyItems } from './list-limits.ts';
import { isJsonObject, NESTING_LIMIT, RawNumber } from './parse-json.ts';
import { type Faults, noteFault, type Read } from './wire-json-faults.ts';

/**
 * Returns a function that reads a message type with its own JSON form; undefined for any other type.
 *
 * @param protobufJson also accepts a google.type.Decimal in its ProtoJSON form, an object.
 * @throws Error for an unsupported type of google.protobuf.
 */
export function wellKnownReader(desc: DescMessage, protobufJson: boolean): Read | undefined {
  switch (desc.typeName) {
    case 'google.type.Decimal':
      return protobufJson ? readDecimalObject : readDecimal;
    case 'google.protobuf.Timestamp':
      return readTimestamp;
    case 'google.protobuf.FieldMask':
      return readFieldMask;
    case 'google.protobuf.Struct':
      return readStruct;
    case 'google.protobuf.Value':
      return (json, faults) => plainMessage(ValueSchema, json, faults);
    case 'google.protobuf.ListValue':
      return (json, faults) =>
        Array.isArray(json)
          ? plainMessage(ListValueSchema, json, faults)
          : noteFault(faults, 'INVALID_TYPE', 'must be an array');
    case 'google.protobuf.Empty':
      return undefined;
    default:
      if (desc.typeName.startsWith('google.protobuf.'))
        throw new Error(`${desc} is not supported in REST JSON`);
      return undefined;
  }
}

function readDecimal(json: unknown, faults: Faults): unknown {
  let text: string;
  if (typeof json === 'string') text = json;
  else if (typeof json === 'number') text = String(json);
  else if (json instanceof RawNumber) text = json.source;
  else return noteFault(faults, 'INVALID_TYPE', 'must be a number or a string of digits');
  const value = canonicalDecimal(text);
  if (value === undefined) return noteFault(faults, 'INVALID_FORMAT', whyNoDecimal(text));
  return create(DecimalSchema, { value });
}

function readDecimalObject(json: unknown, faults: Faults): unknown {
  if (!isJsonObject(json)) return readDecimal(json, faults);
  return readDecimal(typeof json.value === 'string' ? json.value : undefined, faults);
}

const RFC_3339 = /^(\d{4}-\d\d-(\d\d)T\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/;
/** Time as databases print it, read as UTC. */
const DATE_SPACE_TIME = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,9})?)$/;
// The bounds of google.protobuf.Timestamp.
const FIRST_MS = Date.parse('0001-01-01T00:00:00Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59Z');

/** Reads a time with an offset from UTC, also with a space between date and time. */
export function readTimestampWithOffset(json: unknown, faults: Faults): unknown {
  if (typeof json !== 'string') return readTimestamp(json, faults);
  if (!DATE_SPACE_TIME.test(json)) return readTimestamp(json.replace(/^(\S{10}) /, '$1T'), faults);
  return noteFault(
    faults,
    'INVALID_FORMAT',
    'must end with an offset from UTC, such as Z or -03:00 (RFC 3339)',
  );
}

function readTimestamp(json: unknown, faults: Faults): unknown {
  if (typeof json !== 'string') return noteFault(faults, 'INVALID_TYPE', 'must be a string');
  const timestamp = parseTimestamp(json);
  return (
    timestamp ??
    noteFault(faults, 'INVALID_FORMAT', 'must be a timestamp such as 2026-01-31T09:08:07Z (RFC 3339)')
  );
}

/** Parses a time in RFC 3339 format or as databases print it; undefined if it is neither. */
export function parseTimestamp(text: string): Timestamp | undefined {
  const [, local = '', day, fraction = '', sign, hours = '0', minutes = '0'] =
    RFC_3339.exec(text.replace(DATE_SPACE_TIME, '$1T$2Z')) ?? [];
  const localMs = Date.parse(`${local}Z`);
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
  const ms = sign === '-' ? localMs + offsetMs : localMs - offsetMs;
  // Date.parse reads February 30th as March 2nd. The comparison is negated because any comparison with NaN is false.
  if (!(ms >= FIRST_MS && ms <= LAST_MS) || new Date(localMs).getUTCDate() !== Number(day)) return undefined;
  return create(TimestampSchema, { seconds: BigInt(ms / 1000), nanos: Number(fraction.padEnd(9, '0')) });
}

/** Reads comma-separated paths, with names as in the .proto file or in lowerCamelCase. */
function readFieldMask(json: unknown, faults: Faults): unknown {
  if (typeof json !== 'string') return noteFault(faults, 'INVALID_TYPE', 'must be a string');
  const names = json === '' ? [] : json.split(',');
  if (names.length > MAX_PATHS) return noteFault(faults, 'TOO_MANY', tooManyItems(MAX_PATHS));
  const paths = names.map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  return create(FieldMaskSchema, { paths });
}

const MAX_PATHS = 100;

function readStruct(json: unknown, faults: Faults): unknown {
  return isJsonObject(json)
    ? plainJson(json, faults)
    : noteFault(faults, 'INVALID_TYPE', 'must be an object');
}

function plainMessage(desc: DescMessage, json: unknown, faults: Faults): unknown {
  const count = faults.length;
  const plain = plainJson(json, faults);
  return faults.length > count ? undefined : fromJson(desc, plain as JsonValue);
}

/**
 * Copies arbitrary JSON. Refuses a number that a double would change, since responses would return the changed number.
 */
function plainJson(json: unknown, faults: Faults, depth = 0): JsonValue | undefined {
  if (depth > NESTING_LIMIT) return noteFault(faults, 'INVALID_FORMAT', 'is nested too deeply');
  faults.freeValues = (faults.freeValues ?? 0) + 1;
  if (faults.freeValues > MAX_FREE_VALUES) return noteFault(faults, 'TOO_MANY', TOO_MANY_FREE_VALUES);
  if (json === null || typeof json === 'boolean' || typeof json === 'number') return json;
  if (typeof json === 'string') {
    return json.isWellFormed() ? json : noteFault(faults, 'INVALID_FORMAT', 'must be well-formed Unicode');
  }
  if (json instanceof RawNumber) {
    const number = Number(json.source);
    if (!Number.isFinite(number)) return noteFault(faults, 'OUT_OF_RANGE', 'is too large');
    return isKeptBy(number, json.source) ? number : noteFault(faults, 'OUT_OF_RANGE', INEXACT);
  }
  if (Array.isArray(json)) {
    if (json.length > MAX_FREE_VALUES) return noteFault(faults, 'TOO_MANY', TOO_MANY_FREE_VALUES);
    return json.map((item) => plainJson(item, faults, depth + 1) as JsonValue);
  }
  const entries = Object.entries(json as object).map(([key, value]) => {
    if (!key.isWellFormed()) noteFault(faults, 'INVALID_FORMAT', 'must be well-formed Unicode');
    return [key, plainJson(value, faults, depth + 1) as JsonValue] as const;
  });
  // Unlike assignment, this also works for a member named __proto__.
  return Object.fromEntries(entries);
}

const INEXACT = 'has more digits than a JSON number can represent exactly (IEEE 754); send it as a string';

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
/** No double needs a longer literal, and the time that the check takes is quadratic in the length. */
const MAX_LITERAL_LENGTH = 800;

/** Reports whether a double prints with exactly the digits of a literal. */
function isKeptBy(number: number, literal: string): boolean {
  if (literal.length > MAX_LITERAL_LENGTH) return false;
  return significantDigits(literal) === significantDigits(String(number));
}

/** Returns the canonical form of a number: the digits without surrounding zeros, and the last digit's power of ten. */
function significantDigits(literal: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = NUMBER.exec(literal) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return '0';
  const power = Number(exponent) - fraction.length + (digits.length - significant.length);
  return `${sign}${significant}e${power}`;
}
