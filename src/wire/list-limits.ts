import { type DescField, type DescMessage, getOption, hasOption } from '@bufbuild/protobuf';
import { field as fieldRules } from '#gen/buf/validate/validate_pb.js';
import { unknown_not_allowed } from '#gen/payments/v1/json_options_pb.js';

/** Limit on the elements of a list in a request, unless its .proto sets a lower one. */
const MAX_ITEMS = 200;

/** Limit on the number of values in a request's arbitrary JSON (google.protobuf.Struct, Value and ListValue). */
export const MAX_FREE_VALUES = 10_000;

/**
 * Reports whether the values of arbitrary JSON are counted for each message of this type alone: a catalogue has settings
 * for every connection, and limits the number of connections.
 */
export function countsFreeValues(desc: DescMessage): boolean {
  return counting.getOrInsertComputed(desc, () => getOption(desc, unknown_not_allowed));
}

const counting = new WeakMap<DescMessage, boolean>();

/** Message for a request that exceeds MAX_FREE_VALUES. */
export const TOO_MANY_FREE_VALUES = `must not contain more than ${MAX_FREE_VALUES} values, together with all other arbitrary JSON`;

/** Reports whether a message is arbitrary JSON, whose values are counted together instead of per list. */
export function isFreeJson(desc: DescMessage): boolean {
  return ['google.protobuf.Value', 'google.protobuf.ListValue', 'google.protobuf.Struct'].includes(
    desc.typeName,
  );
}

/**
 * Returns the limit on the elements of a list field, or on the entries of a map field (buf.validate's max_items). The
 * limit is enforced while a body is read, since reading a long list is what takes time.
 */
export function maxItems(field: DescField): number {
  return limits.getOrInsertComputed(field, readMaxItems);
}

/** Limits by field, cached because `getOption` parses a field's rules on every call. */
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
