import {
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  type Message,
  type MessageShape,
  ScalarType,
  toJson,
} from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence, type Timestamp } from '@bufbuild/protobuf/wkt';
import type { Decimal } from '#gen/google/type/decimal_pb.js';
import {
  array_of,
  fraction_of,
  null_when_empty,
  omit_when_empty,
  omit_when_unset,
} from '#gen/payments/v1/json_options_pb.js';

/**
 * Appends a value to the text. Everything is appended to a single string, from left to right, with constant pieces
 * joined beforehand: every piece costs time when the string is converted to bytes.
 */
type Append<T = unknown> = (text: string, value: T) => string;

/**
 * Builds a function that writes messages of a type as REST JSON.
 *
 * Members have the names and the order of the .proto file. Every field is written: an unset field is `null` if it has
 * presence, and its default otherwise. Enums are value names; google.type.Decimal is a JSON number with at least one
 * decimal place; google.protobuf.Timestamp has six fractional digits and `Z`; Struct, Value and ListValue are written
 * as JSON; an empty list is `null` if its field has the option `null_when_empty`. Left out, but never as the first
 * field, are an empty string or list whose field has the option `omit_when_empty`, and an unset message whose field has the
 * option `omit_when_unset`. The rest is as in ProtoJSON.
 *
 * @throws Error for an unsupported message type and, when writing, for an invalid decimal or timestamp (a bug of ours).
 */
export function jsonEncoder<Desc extends DescMessage>(schema: Desc): (message: MessageShape<Desc>) => string {
  const append = messageAppender(schema);
  return (message) => append('', message);
}

/**
 * Builds a function that writes one field's value as REST JSON, as `jsonEncoder` does, without the name.
 *
 * @param field must not belong to a oneof.
 * @throws Error for an unsupported field.
 */
export function jsonFieldEncoder(field: DescField): (message: Message) => string {
  const append = fieldAppender(field, '');
  const nameLength = JSON.stringify(field.name).length + 1;
  return (message) => append('', message as unknown as Members).slice(nameLength);
}

const appenders = new WeakMap<DescMessage, Append>();

function messageAppender(desc: DescMessage): Append {
  const known = appenders.get(desc) ?? wellKnownAppender(desc);
  if (known) return known;
  if (desc.file.proto.syntax !== 'proto3')
    throw new Error(`${desc} is not proto3; REST JSON is supported only for proto3 messages`);
  const fields: Append<Members>[] = [];
  const append = (text: string, message: unknown) => {
    let longer = text;
    for (let i = 0; i < fields.length; i++)
      longer = (fields[i] as Append<Members>)(longer, message as Members);
    return `${longer}}`;
  };
  // Registered before the fields are compiled, since a message type may contain itself.
  appenders.set(desc, append);
  const told = desc.fields.filter((field) => memberOf(field) === field.name);
  for (const [i, field] of told.entries()) fields.push(fieldAppender(field, i === 0 ? '{' : ','));
  if (fields.length === 0) fields.push((text) => `${text}{`);
  return append;
}

type Members = Readonly<Record<string, unknown>>;

/** Returns a function that appends a message's field, with its name and the separator before it. */
function fieldAppender(field: DescField, separator: string): Append<Members> {
  const { localName } = field;
  const prefix = `${separator}${JSON.stringify(field.name)}:`;
  const unset = prefix + unsetText(field);
  const append = valueAppender(field, prefix);
  if (field.oneof) {
    const oneofName = field.oneof.localName;
    const absent = getOption(field, omit_when_unset) ? '' : unset;
    return (text, message) => {
      const oneof = message[oneofName] as { case?: string; value?: unknown };
      return oneof.case === localName ? append(text, oneof.value) : text + absent;
    };
  }
  if (getOption(field, omit_when_unset)) {
    return (text, message) => (message[localName] === undefined ? text : append(text, message[localName]));
  }
  if (getOption(field, omit_when_empty)) {
    return (text, message) => {
      const value = message[localName] as string | readonly unknown[];
      return value.length === 0 ? text : append(text, value);
    };
  }
  const other = field.parent.fields.find((one) => one !== field && memberOf(one) === field.name);
  if (other) {
    const appendOther = valueAppender(other, prefix);
    return (text, message) => {
      const instead = message[other.localName];
      if (instead !== undefined) return appendOther(text, instead);
      const value = message[localName];
      return value === undefined ? text + unset : append(text, value);
    };
  }
  return (text, message) => {
    const value = message[localName];
    return value === undefined ? text + unset : append(text, value);
  };
}

/** Returns the name of the JSON member that contains a field. */
export function memberOf(field: DescField): string {
  return getOption(field, fraction_of) || getOption(field, array_of) || field.name;
}

function unsetText(field: DescField): string {
  if (field.fieldKind === 'list') return getOption(field, null_when_empty) ? 'null' : '[]';
  if (field.fieldKind === 'map') return '{}';
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) return 'null';
  if (field.fieldKind === 'enum') return JSON.stringify(field.enum.values[0]?.name);
  switch (field.scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return '""';
    case ScalarType.BOOL:
      return 'false';
    default:
      return field.scalar !== undefined && isLong(field.scalar) ? '"0"' : '0';
  }
}

function valueAppender(field: DescField, prefix: string): Append {
  switch (field.fieldKind) {
    case 'list':
      return listAppender(field, prefix) as Append;
    case 'map':
      return mapAppender(field, prefix) as Append;
    default:
      return elementAppender(field, prefix);
  }
}

/** Returns a function that appends a field's value, or an element of a list or map. */
function elementAppender(field: DescField, prefix: string): Append {
  if (field.message) {
    const append = messageAppender(field.message);
    return (text, message) => append(text + prefix, message);
  }
  return field.enum ? (enumAppender(field.enum, prefix) as Append) : scalarAppender(field.scalar, prefix);
}

function listAppender(field: DescField, prefix: string): Append<readonly unknown[]> {
  const empty = prefix + unsetText(field);
  const appendFirst = elementAppender(field, `${prefix}[`);
  const appendNext = elementAppender(field, ',');
  return (text, items) => {
    if (items.length === 0) return text + empty;
    let longer = appendFirst(text, items[0]);
    for (let i = 1; i < items.length; i++) longer = appendNext(longer, items[i]);
    return `${longer}]`;
  };
}

function mapAppender(field: DescField, prefix: string): Append<Record<string, unknown>> {
  const append = elementAppender(field, '');
  return (text, map) => {
    const members = Object.entries(map).map(([key, value]) => append(`${JSON.stringify(key)}:`, value));
    return `${text}${prefix}{${members.join()}}`;
  };
}

function enumAppender(desc: DescEnum, prefix: string): Append<number> {
  const names = new Map(desc.values.map((value) => [value.number, prefix + JSON.stringify(value.name)]));
  // A value from a newer version of the enum is written as a number, as in ProtoJSON.
  return (text, number) => text + (names.get(number) ?? prefix + number);
}

function scalarAppender(scalar: ScalarType, prefix: string): Append {
  switch (scalar) {
    case ScalarType.STRING:
      return stringAppender(prefix) as Append;
    case ScalarType.BYTES:
      return (text, bytes) => `${text}${prefix}"${Buffer.from(bytes as Uint8Array).toString('base64')}"`;
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return (text, number) => text + prefix + (Number.isFinite(number) ? String(number) : `"${number}"`);
    default:
      return isLong(scalar)
        ? (text, long) => `${text}${prefix}"${long}"`
        : (text, value) => text + prefix + String(value);
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON must escape these.
const NEEDS_ESCAPE = /["\\\u0000-\u001f\ud800-\udfff]/;

/**
 * Returns a function that appends a string. Most strings need no escaping, and checking that is faster than
 * JSON.stringify, which also escapes lone surrogates.
 */
function stringAppender(prefix: string): Append<string> {
  const opened = `${prefix}"`;
  const empty = `${prefix}""`;
  return (text, value) => {
    if (value === '') return text + empty;
    return NEEDS_ESCAPE.test(value) ? text + prefix + JSON.stringify(value) : `${text + opened + value}"`;
  };
}

function isLong(scalar: ScalarType): boolean {
  return (
    scalar === ScalarType.INT64 ||
    scalar === ScalarType.SINT64 ||
    scalar === ScalarType.UINT64 ||
    scalar === ScalarType.FIXED64 ||
    scalar === ScalarType.SFIXED64
  );
}

function wellKnownAppender(desc: DescMessage): Append | undefined {
  switch (desc.typeName) {
    case 'google.type.Decimal':
      return (text, decimal) => text + writeDecimal(decimal as Decimal);
    case 'google.protobuf.Timestamp':
      return (text, timestamp) => `${text}"${timestampText(timestamp as Timestamp)}"`;
    case 'google.protobuf.Struct':
      return (text, object) => text + JSON.stringify(object);
    case 'google.protobuf.Value':
    case 'google.protobuf.ListValue':
      return (text, message) => text + JSON.stringify(toJson(desc, message as Message));
    case 'google.protobuf.Empty':
      return undefined;
    default:
      if (desc.typeName.startsWith('google.protobuf.'))
        throw new Error(`${desc} is not supported in REST JSON`);
      return undefined;
  }
}

const DECIMAL = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/;

/** Writes a decimal's digits as a number literal, so that no digit is lost. */
function writeDecimal({ value }: Decimal): string {
  if (!DECIMAL.test(value)) throw new Error('google.type.Decimal does not contain a canonical decimal');
  return value.includes('.') ? value : `${value}.0`;
}

// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, the bounds of google.protobuf.Timestamp.
const FIRST_SECOND = -62_135_596_800;
const LAST_SECOND = 253_402_300_799;
// Most timestamps in a record, and in records from about the same time, are in the same second.
let lastSecond = 0;
let lastText = '1970-01-01T00:00:00';

/** Formats a timestamp with six fractional digits and `Z`. @throws Error if it is out of range (a bug of ours). */
export function timestampText(timestamp: Timestamp): string {
  const second = Number(timestamp.seconds);
  if (second !== lastSecond) {
    if (second < FIRST_SECOND || second > LAST_SECOND)
      throw new Error('google.protobuf.Timestamp out of range');
    lastText = new Date(second * 1000).toISOString().slice(0, 19);
    lastSecond = second;
  }
  const micros = Math.trunc(timestamp.nanos / 1000);
  return `${lastText}.${String(micros).padStart(6, '0')}Z`;
}
