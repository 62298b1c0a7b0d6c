import {
  create,
  type DescField,
  type DescMessage,
  getOption,
  type Message,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import {
  array_of,
  empty_is_refused,
  fraction_of,
  offset_required,
  or_boolean,
  unknown_not_allowed,
  unknown_not_supported,
} from '#gen/payments/v1/json_options_pb.js';
import {
  describeFields,
  type FieldError,
  invalidParameters,
  MAX_FIELD_ERRORS,
  ServiceError,
} from '#src/service-error.ts';
import { asksForNothing } from './canonical-message.ts';
import { maxItems, tooManyItems } from './list-limits.ts';
import { isJsonObject, RawNumber } from './parse-json.ts';
import { type Faults, isFull, locateFaults, noteFault, type Read } from './wire-json-faults.ts';
import { enumReader, readTextOrBoolean, scalarReader } from './wire-json-scalars.ts';
import { readTimestampWithOffset, wellKnownReader } from './wire-json-well-known.ts';

/** A dialect of JSON, with the readers compiled for it. */
type Dialect = {
  readonly rejectUnknown: boolean;
  readonly protobufJson: boolean;
  readonly readers: WeakMap<DescMessage, Read>;
};

const DIALECTS: readonly Dialect[] = [false, true].flatMap((rejectUnknown) =>
  [false, true].map((protobufJson) => ({ rejectUnknown, protobufJson, readers: new WeakMap() })),
);

/**
 * Builds a function that reads messages of a type from REST JSON. It is built once for each message type.
 *
 * Members have the names in the .proto file; a name in another spelling, such as `Capture`, is refused. `null` counts
 * as absent, and so does an empty string in a field that takes no text, unless its absence would move money
 * (`empty_is_refused`). Enums are value names, except the name of zero, which means unspecified. google.type.Decimal is
 * a number or a string of digits, and becomes canonical (see `canonicalDecimal`), so that `10`, `"10"` and `10.00` give
 * equal messages.
 *
 * @param options.unknownFields 'ignore' (default), or 'reject' to report each as a field error. With 'reject', the JSON
 * comes from the operator, so lists may have any length.
 * @param options.protobufJson also accepts ProtoJSON: lowerCamelCase names, enum numbers, integers as strings, and
 * `{"value": "10"}` for a decimal.
 * @param options.check finds faults in the readable fields, so that a refusal names them too. It is called only if some
 * fields are unreadable.
 * @returns a function that reads a value from `parseJson`. It throws ServiceError INVALID_REQUEST if that is not an
 * object, and INVALID_PARAMETERS with the paths of up to 20 faulty fields (`items[0].quantity`), never their values.
 */
export function jsonDecoder<Desc extends DescMessage>(
  schema: Desc,
  options: {
    readonly unknownFields?: 'ignore' | 'reject';
    readonly protobufJson?: boolean;
    readonly check?: (message: MessageShape<Desc>) => FieldError[];
  } = {},
): (json: unknown) => MessageShape<Desc> {
  const rejectUnknown = options.unknownFields === 'reject';
  const protobufJson = options.protobufJson === true;
  const dialect = DIALECTS.find((d) => d.rejectUnknown === rejectUnknown && d.protobufJson === protobufJson);
  const read = messageReader(schema, dialect as Dialect);
  return (json) => {
    if (!isJsonObject(json)) throw new ServiceError('INVALID_REQUEST', 'the body must be a JSON object');
    const faults: Faults = [];
    const message = read(json, faults) as MessageShape<Desc>;
    if (faults.length > 0) throw unreadable(faults, () => options.check?.(message) ?? []);
    return message;
  };
}

/** Returns the refusal for unreadable fields, together with the faults that a check finds in the others. */
function unreadable(faults: Faults, check: () => FieldError[]): ServiceError {
  // Once reading has stopped, the remaining fields look absent.
  const others = isFull(faults) ? [] : check();
  const fields = [...faults, ...others.filter(({ field }) => !faults.some((f) => overlap(f.field, field)))]
    .slice(0, MAX_FIELD_ERRORS)
    // The only fault without a path is that the body itself has two members of a oneof.
    .map((fault) => ({ ...fault, field: fault.field || '$' }));
  // An unsupported unknown member is not unreadable, so it is refused like any unsupported field.
  if (faults.every(({ code }) => code === 'NOT_SUPPORTED')) return invalidParameters(fields);
  return new ServiceError('INVALID_PARAMETERS', describeFields(fields), { fields });
}

/** Reports whether one path equals or contains the other. */
function overlap(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  return long.startsWith(short) && (short === '' || long === short || /[.[]/.test(long[short.length] ?? ''));
}

type FieldReader = {
  readonly field: DescField;
  /** Name of the JSON member that contains the value. */
  readonly name: string;
  /**
   * Reads the values of this member that belong to another field: fractions instead of integers, or arrays instead of
   * objects.
   */
  readonly other?: FieldReader;
  /** Reports whether a value belongs to the other field. */
  readonly isOther?: (json: unknown) => boolean;
  readonly read: Read;
  /** An empty string, which many forms and languages send for an absent value, counts as absent. */
  readonly emptyIsAbsent: boolean;
};

function messageReader(desc: DescMessage, dialect: Dialect): Read {
  const known = dialect.readers.get(desc) ?? wellKnownReader(desc, dialect.protobufJson);
  if (known) return known;
  const fields = new Map<string, FieldReader>();
  const spellings: Spellings = new Map();
  const rejectsUnknown = dialect.rejectUnknown || getOption(desc, unknown_not_allowed);
  const refusesUnknown = getOption(desc, unknown_not_supported);
  const read: Read = (json, faults) => {
    if (!isJsonObject(json)) return noteFault(faults, 'INVALID_TYPE', 'must be an object');
    const message = create(desc);
    if (rejectsUnknown) faults.freeValues = 0;
    for (const name of Object.keys(json)) {
      const field = fields.get(name);
      if (field !== undefined) readField(field, json[name], message, faults);
      else if (rejectsUnknown) noteUnknown(name, faults);
      else if (!refuseSpelling(name, json[name], spellings, faults) && refusesUnknown)
        refuseIfSet(name, json[name], faults);
      if (isFull(faults)) break;
    }
    return message;
  };
  // Registered before the fields are compiled, since a message type may contain itself.
  dialect.readers.set(desc, read);
  for (const field of desc.fields) {
    const emptyIsAbsent = !dialect.rejectUnknown && !takesText(field) && !getOption(field, empty_is_refused);
    const reader = { field, name: field.name, read: valueReader(field, dialect), emptyIsAbsent };
    const memberName = getOption(field, fraction_of) || getOption(field, array_of);
    const member = fields.get(memberName);
    if (member) {
      const isOther = getOption(field, array_of) ? Array.isArray : isFraction;
      const either = { ...member, other: { ...reader, name: memberName }, isOther };
      for (const [name, known] of fields) if (known === member) fields.set(name, either);
    }
    if (dialect.protobufJson) fields.set(field.jsonName, reader);
    if (dialect.protobufJson || !member) fields.set(field.name, reader);
    if (!member) spellings.set(lettersOf(field.name), field.name);
  }
  return read;
}

/** Reports whether an empty string may be the field's value. */
function takesText(field: DescField): boolean {
  if (field.message)
    return field.fieldKind === 'message' && field.message.typeName === 'google.protobuf.Value';
  return (
    field.fieldKind === 'scalar' && (field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES)
  );
}

function readField(reader: FieldReader, json: unknown, message: Message, faults: Faults): void {
  if (json === null || (json === '' && reader.emptyIsAbsent)) return;
  if (reader.emptyIsAbsent && reader.field.scalar === ScalarType.BOOL && isEmptyObject(json)) return;
  const { other = reader, isOther, name } = reader;
  const { field, read } = isOther?.(json) ? other : reader;
  const members = message as unknown as Record<string, unknown>;
  const { oneof, localName } = field;
  if (oneof && (members[oneof.localName] as { case?: string }).case !== undefined) {
    noteFault(
      faults,
      'NOT_ALLOWED',
      `must have only one of ${oneof.fields.map((member) => member.name).join(', ')}`,
    );
    return;
  }
  const count = faults.length;
  const value = read(json, faults) ?? standIn(field);
  if (faults.length > count) locateFaults(faults, count, name);
  if (value === undefined) return;
  if (oneof) members[oneof.localName] = { case: localName, value };
  else members[localName] = value;
}

/** Returns a substitute for an unreadable value, so that a check does not report the field as missing. */
function standIn(field: DescField): string | undefined {
  return field.fieldKind === 'scalar' && field.scalar === ScalarType.STRING ? '?' : undefined;
}

/** Reports whether a value is a fractional number or a string. */
function isFraction(json: unknown): boolean {
  if (typeof json === 'string') return true;
  if (json instanceof RawNumber) return !/^-?\d+(?:\.0*)?$/.test(json.source);
  return typeof json === 'number' && !Number.isInteger(json);
}

function valueReader(field: DescField, dialect: Dialect): Read {
  switch (field.fieldKind) {
    case 'list':
      return listReader(field, dialect);
    case 'map':
      return mapReader(field, dialect);
    default:
      return elementReader(field, dialect);
  }
}

/** Returns a function that reads a field's value, or an element of a list or map. */
function elementReader(field: DescField, dialect: Dialect): Read {
  if (getOption(field, offset_required)) return readTimestampWithOffset;
  if (field.message) return messageReader(field.message, dialect);
  if (field.enum) return enumReader(field.enum, dialect.protobufJson);
  if (getOption(field, or_boolean)) return readTextOrBoolean;
  const longAsString = field.fieldKind !== 'map' && field.longAsString;
  return scalarReader(field.scalar, { lenient: dialect.protobufJson, longAsString });
}

function listReader(field: DescField, dialect: Dialect): Read {
  const read = nonNull(field, elementReader(field, dialect));
  const limit = dialect.rejectUnknown ? Number.POSITIVE_INFINITY : maxItems(field);
  return (json, faults) => {
    if (!Array.isArray(json)) return noteFault(faults, 'INVALID_TYPE', 'must be an array');
    if (json.length > limit) return noteFault(faults, 'TOO_MANY', tooManyItems(limit));
    const items: unknown[] = [];
    const before = faults.length;
    for (let i = 0; i < json.length && !isFull(faults); i++) {
      const count = faults.length;
      items.push(read(json[i], faults));
      if (faults.length > count) locateFaults(faults, count, `[${i}]`);
    }
    return faults.length > before && items.includes(undefined) ? undefined : items;
  };
}

/** Returns a function that reads a map. A fault names only the map, since the keys come from the sender. */
function mapReader(field: DescField & { fieldKind: 'map' }, dialect: Dialect): Read {
  const readKey = scalarReader(field.mapKey, { lenient: true, longAsString: true });
  const read = nonNull(field, elementReader(field, dialect));
  const limit = dialect.rejectUnknown ? Number.POSITIVE_INFINITY : maxItems(field);
  return (json, faults) => {
    if (!isJsonObject(json)) return noteFault(faults, 'INVALID_TYPE', 'must be an object');
    const members = Object.entries(json);
    if (members.length > limit) return noteFault(faults, 'TOO_MANY', tooManyItems(limit));
    const entries: [PropertyKey, unknown][] = [];
    const before = faults.length;
    for (const [key, value] of members) {
      if (isFull(faults)) break;
      entries.push([readKey(key, faults) as PropertyKey, read(value, faults)]);
    }
    if (faults.length > before && entries.some((entry) => entry.includes(undefined))) return undefined;
    return Object.fromEntries(entries);
  };
}

/** Refuses null in a list or map, unless the elements are arbitrary JSON. */
function nonNull(field: DescField, read: Read): Read {
  if (field.message?.typeName === 'google.protobuf.Value') return read;
  return (json, faults) =>
    json === null ? noteFault(faults, 'INVALID_TYPE', 'must not be null') : read(json, faults);
}

/** Refuses an unknown member. */
function noteUnknown(name: string, faults: Faults): void {
  const count = faults.length;
  noteFault(faults, 'NOT_ALLOWED', 'is not a known field');
  locateFaults(faults, count, name);
}

/** The names of a message's fields, by what `lettersOf` returns for them. */
type Spellings = Map<string, string>;

/** Returns a name without what differs between spellings such as final_capture, finalCapture and FinalCapture. */
function lettersOf(name: string): string {
  return name.replaceAll(/[_-]/g, '').toLowerCase();
}

const LONGEST_NAME = 64;

/**
 * Refuses a member whose name is a field's in another spelling: if `Capture: false` were ignored like any unknown
 * member, the money would be taken.
 *
 * @returns false if the name is no field's in any spelling.
 */
function refuseSpelling(name: string, json: unknown, spellings: Spellings, faults: Faults): boolean {
  const field = name.length <= LONGEST_NAME ? spellings.get(lettersOf(name)) : undefined;
  if (field === undefined) return false;
  if (json === null || json === '') return true;
  const count = faults.length;
  noteFault(faults, 'NOT_ALLOWED', `must be spelled ${field}`);
  locateFaults(faults, count, name);
  return true;
}

const readValue = wellKnownReader(ValueSchema, false) as Read;
/** Reports whether a value is an object that asks for nothing, such as {"vault_on_success": false}. */
function isEmptyObject(json: unknown): boolean {
  return isJsonObject(json) && asksForNothing(readValue(json, []) as Value | undefined);
}

/** Names that a refusal may repeat. Others come from the sender, and might be a card number. */
const PLAIN_NAME = /^[A-Za-z_]{1,64}$/;

/** Refuses an unknown member, unless it sets nothing. */
function refuseIfSet(name: string, json: unknown, faults: Faults): void {
  const count = faults.length;
  const value = readValue(json, faults) as Value | undefined;
  if (faults.length === count && !asksForNothing(value)) {
    const message = PLAIN_NAME.test(name) ? 'is not supported' : 'has a member that is not supported';
    noteFault(faults, 'NOT_SUPPORTED', message);
  }
  if (faults.length > count && PLAIN_NAME.test(name)) locateFaults(faults, count, name);
}
