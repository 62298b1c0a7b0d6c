import { type DescField, type DescMessage, getOption, hasOption } from '@bufbuild/protobuf';
import { field as fieldRules } from '#gen/buf/validate/validate_pb.js';

/** How many elements a list of a request may have where its .proto does not say less. */
const MAX_ITEMS = 200;

/** How many values the free JSON of a request may hold in all (google.protobuf.Struct, Value and ListValue). */
export const MAX_FREE_VALUES = 10_000;

/** What the sender of more of them is told. */
export const TOO_MANY_FREE_VALUES = `must not hold more than ${MAX_FREE_VALUES} values, with all others of its kind`;

/** Whether a message is free JSON: what is in it is counted as a whole, since its lists are the sender's own. */
export function isFreeJson(desc: DescMessage): boolean {
  return ['google.protobuf.Value', 'google.protobuf.ListValue', 'google.protobuf.Struct'].includes(
    desc.typeName,
  );
}

/**
 * How many elements a list field, or entries a map field, may have (buf.validate's max_items). It is held while a body is
 * read: reading is what a long list costs.
 */
export function maxItems(field: DescField): number {
  if (!hasOption(field, fieldRules)) return MAX_ITEMS;
  const { type } = getOption(field, fieldRules);
  const limit = type.case === 'repeated' ? type.value.maxItems : 0n;
  return limit > 0n ? Number(limit) : MAX_ITEMS;
}

/** What the sender of a longer list is told. */
export function tooManyItems(limit: number): string {
  return `must have at most ${limit} elements`;
}
