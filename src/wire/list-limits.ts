import { type DescField, type DescMessage, getOption, hasOption } from '@bufbuild/protobuf';
import { field as fieldRules } from '#gen/buf/validate/validate_pb.js';

/** Limit on the elements of a list in a request, unless its .proto sets a lower one. */
const MAX_ITEMS = 200;

/** Limit on the values in the free JSON of a request (google.protobuf.Struct, Value and ListValue). */
export const MAX_FREE_VALUES = 10_000;

/** Message for a request that exceeds it. */
export const TOO_MANY_FREE_VALUES = `must not contain more than ${MAX_FREE_VALUES} values, together with all other free JSON`;

/** Returns true if a message is free JSON: its values are counted together, since its lists are the sender's own. */
export function isFreeJson(desc: DescMessage): boolean {
  return ['google.protobuf.Value', 'google.protobuf.ListValue', 'google.protobuf.Struct'].includes(
    desc.typeName,
  );
}

/**
 * Returns the limit on the elements of a list field, or on the entries of a map field (buf.validate's max_items). It
 * is enforced while a body is read, since reading is the cost of a long list.
 */
export function maxItems(field: DescField): number {
  return limits.getOrInsertComputed(field, readMaxItems);
}

/** Limits by field, kept because `getOption` parses a field's rules on every call. */
const limits = new WeakMap<DescField, number>();

function readMaxItems(field: DescField): number {
  if (!hasOption(field, fieldRules)) return MAX_ITEMS;
  const { type } = getOption(field, fieldRules);
  const limit = type.case === 'repeated' ? type.value.maxItems : 0n;
  return limit > 0n ? Number(limit) : MAX_ITEMS;
}

/** Message for a longer list. */
export function tooManyItems(limit: number): string {
  return `must have at most ${limit} elements`;
}
