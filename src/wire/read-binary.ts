import {
  type DescField,
  type DescMessage,
  fromBinary,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { invalidField, ServiceError } from '#src/service-error.ts';
import {
  countsFreeValues,
  isFreeJson,
  MAX_FREE_VALUES,
  maxItems,
  TOO_MANY_FREE_VALUES,
  tooManyItems,
} from './list-limits.ts';
import { NESTING_LIMIT, nestedTooDeeply } from './parse-json.ts';

/**
 * Reads a request message from its binary form. It first counts lists and levels by skipping through the bytes: an
 * empty element takes two bytes, but far more memory and time as an object.
 *
 * @throws ServiceError INVALID_PARAMETERS with the path of a list, or of arbitrary JSON, that is too long;
 * INVALID_REQUEST, without quoting the bytes, if they are not a valid message.
 */
export function readBinary<Desc extends DescMessage>(desc: Desc, bytes: Uint8Array): MessageShape<Desc> {
  try {
    count(desc, new BinaryReader(bytes), bytes.length, 0, { freeValues: 0, path: '' });
    return fromBinary(desc, bytes, { recursionLimit: MESSAGES_LIMIT, readUnknownFields: false });
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    // Without a cause: the library's message may quote the bytes.
    throw new ServiceError('INVALID_REQUEST', 'the message cannot be read');
  }
}

/** Limit on the nesting of messages: in arbitrary JSON, each object or array is in a Value. */
const MESSAGES_LIMIT = 2 * NESTING_LIMIT;

type Count = { freeValues: number; path: string };

/** Counts a message's lists and levels. @param level number of objects and arrays that enclose it in the JSON form. */
function count(desc: DescMessage, reader: BinaryReader, end: number, level: number, so: Count): void {
  // A Value adds no level to the value that it contains.
  const depth = desc.typeName === 'google.protobuf.Value' ? level : level + 1;
  if (depth > NESTING_LIMIT) throw nestedTooDeeply();
  const isFree = isFreeJson(desc);
  if (countsFreeValues(desc)) so.freeValues = 0;
  if (isFree && ++so.freeValues > MAX_FREE_VALUES)
    throw invalidField(so.path, 'TOO_MANY', TOO_MANY_FREE_VALUES);
  const { path } = so;
  const lengths = new Map<DescField, number>();
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const field = fieldsOf(desc).get(number);
    if (field === undefined) {
      reader.skip(wireType, number, NESTING_LIMIT - depth);
      continue;
    }
    const packed = field.fieldKind === 'list' && isPacked(field, wireType);
    if (!packed && wireType !== wireTypeOf(field)) throw new Error(`${field} has the wrong wire type`);
    // An error within arbitrary JSON names only the field that contains the JSON: the names inside come from the
    // sender.
    if (!isFree) so.path = path === '' ? field.name : `${path}.${field.name}`;
    const isMany = !isFree && (field.fieldKind === 'list' || field.fieldKind === 'map');
    if (isMany) {
      const before = lengths.get(field) ?? 0;
      const length = before + (packed ? packedLength(field, reader) : 1);
      const limit = maxItems(field);
      if (length > limit) throw invalidField(so.path, 'TOO_MANY', tooManyItems(limit));
      lengths.set(field, length);
      so.path += `[${before}]`;
    }
    if (packed) continue;
    const within = isMany ? depth + 1 : depth;
    if (field.fieldKind === 'map') countEntry(field, reader, within, so);
    else if (field.message) countMessage(field.message, reader, within, so);
    else reader.skip(wireType, number);
  }
  so.path = path;
}

function countMessage(desc: DescMessage, reader: BinaryReader, level: number, so: Count): void {
  const length = reader.uint32();
  count(desc, reader, reader.pos + length, level, so);
}

/** Counts a map's entry, which is a message with the key as field 1 and the value as field 2. */
function countEntry(
  field: DescField & { fieldKind: 'map' },
  reader: BinaryReader,
  level: number,
  so: Count,
): void {
  const length = reader.uint32();
  const end = reader.pos + length;
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    if (number === 2 && field.message && wireType === WireType.LengthDelimited) {
      countMessage(field.message, reader, level, so);
    } else {
      reader.skip(wireType, number, NESTING_LIMIT - level);
    }
  }
}

const numbered = new WeakMap<DescMessage, ReadonlyMap<number, DescField>>();

function fieldsOf(desc: DescMessage): ReadonlyMap<number, DescField> {
  return numbered.getOrInsertComputed(
    desc,
    ({ fields }) => new Map(fields.map((field) => [field.number, field])),
  );
}

function isPacked(field: DescField & { fieldKind: 'list' }, wireType: WireType): boolean {
  return wireType === WireType.LengthDelimited && wireTypeOf(field) !== WireType.LengthDelimited;
}

/** Counts the elements of a packed list, and skips it. */
function packedLength(field: DescField, reader: BinaryReader): number {
  const bytes = reader.bytes();
  if (wireTypeOf(field) === WireType.Bit32) return bytes.length / 4;
  if (wireTypeOf(field) === WireType.Bit64) return bytes.length / 8;
  // The last byte of a varint has its high bit clear.
  return bytes.reduce((length, byte) => length + (byte < 0x80 ? 1 : 0), 0);
}

/** Returns the wire type of a field, or of a list's elements. */
function wireTypeOf(field: DescField): WireType {
  if (field.fieldKind === 'map' || field.message) return WireType.LengthDelimited;
  if (field.enum) return WireType.Varint;
  switch (field.scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}
