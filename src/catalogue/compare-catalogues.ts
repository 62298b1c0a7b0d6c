import {
  create,
  type DescMessage,
  equals,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  toJson,
} from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import {
  AgreedFeeSchema,
  BinSchema,
  type Catalogue,
  ConnectionConfigSchema,
  PaymentMethodTypeSchema,
  RouteSchema,
} from '#gen/payments/v1/catalogue_pb.js';
import { type CatalogueChange, CatalogueChangeSchema } from '#gen/payments/v1/configuration_service_pb.js';
import { agreedFeeInWords } from '#src/connectors/port/agreed-fee.ts';

/** The lists of a catalogue: their members' names, and whether the order of members means something. */
const LISTS = [
  {
    list: 'payment_method_types',
    of: ({ paymentMethodTypes: all }: Catalogue) => all,
    schema: PaymentMethodTypeSchema,
    key: 'type',
    isOrdered: false,
  },
  {
    list: 'connections',
    of: ({ connections: all }: Catalogue) => all,
    schema: ConnectionConfigSchema,
    key: 'id',
    isOrdered: false,
  },
  {
    list: 'routes',
    of: ({ routes: all }: Catalogue) => all,
    schema: RouteSchema,
    key: 'id',
    isOrdered: true,
  },
  { list: 'bins', of: ({ bins: all }: Catalogue) => all, schema: BinSchema, key: 'prefix', isOrdered: false },
] as const;

/**
 * Lists the differences between two catalogues: members by their ids, not by their positions, and the fields of members
 * that both have. A route has MOVED if another route now stands before it that stood after it.
 */
export function compareCatalogues(before: Catalogue, after: Catalogue): CatalogueChange[] {
  return LISTS.flatMap(({ list, of, schema, key, isOrdered }) => {
    const [old, now] = [before, after].map((catalogue) => named(of(catalogue), schema, key));
    const moved = isOrdered
      ? movedBetween([...(old?.keys() ?? [])], [...(now?.keys() ?? [])])
      : new Set<string>();
    return compareMembers(list, old ?? new Map(), now ?? new Map(), moved);
  });
}

type Members = ReadonlyMap<string, JsonObject>;

/** Returns members as JSON with the names of the file, by their names. */
function named(all: readonly Message[], schema: DescMessage, key: string): Members {
  const members = all.map((one) => toJson(schema, one, { useProtoFieldName: true }) as JsonObject);
  return new Map(members.map((one) => [String(one[key]), one]));
}

function compareMembers(
  list: string,
  old: Members,
  now: Members,
  moved: ReadonlySet<string>,
): CatalogueChange[] {
  const names = new Set([...old.keys(), ...now.keys()]);
  return [...names].flatMap((name) => {
    const [before, after] = [old.get(name), now.get(name)];
    const path = `${list}[${name}]`;
    if (!before) return [change(path, 'ADDED', undefined, after)];
    if (!after) return [change(path, 'REMOVED', before, undefined)];
    const fields = new Set([...Object.keys(before), ...Object.keys(after)]);
    const changed = [...fields]
      .filter((field) => !isSame(before[field], after[field]))
      .map((field) => change(`${path}.${field}`, 'CHANGED', before[field], after[field]));
    return moved.has(name) ? [...changed, change(path, 'MOVED', undefined, undefined)] : changed;
  });
}

/** Returns the members that changed places among those that both lists have, as few as explain the new order. */
function movedBetween(old: readonly string[], now: readonly string[]): ReadonlySet<string> {
  const positions = new Map(old.map((name, at) => [name, at]));
  const common = now.filter((name) => positions.has(name));
  // The longest run of members in their old order stays; all others have moved.
  const best: number[] = [];
  const from: number[] = [];
  let end = -1;
  for (const [i, name] of common.entries()) {
    best[i] = 1;
    from[i] = -1;
    for (let j = 0; j < i; j++) {
      const isAfter = (positions.get(common[j] ?? '') ?? 0) < (positions.get(name) ?? 0);
      if (isAfter && (best[j] ?? 0) + 1 > (best[i] ?? 0)) {
        best[i] = (best[j] ?? 0) + 1;
        from[i] = j;
      }
    }
    if (end < 0 || (best[i] ?? 0) > (best[end] ?? 0)) end = i;
  }
  const stays = new Set<string>();
  for (let i = end; i >= 0; i = from[i] ?? -1) stays.add(common[i] ?? '');
  return new Set(common.filter((name) => !stays.has(name)));
}

type Json = JsonObject[string] | undefined;

function isSame(one: Json, other: Json): boolean {
  return equals(ValueSchema, jsonValue(one ?? null), jsonValue(other ?? null));
}

function change(
  path: string,
  kind: 'ADDED' | 'REMOVED' | 'CHANGED' | 'MOVED',
  before: Json,
  after: Json,
): CatalogueChange {
  return create(CatalogueChangeSchema, {
    ...{ path, kind },
    ...(before !== undefined && { before: jsonValue(before) }),
    ...(after !== undefined && { after: jsonValue(after) }),
  });
}

function jsonValue(json: JsonValue) {
  return fromJson(ValueSchema, json);
}

/** Describes the value of a change if it is a connection's agreed fees: one per line. */
export function changedFees(path: string, value: JsonValue): string | undefined {
  if (!/^connections\[.*\]\.agreed_fees$/s.test(path) || !Array.isArray(value)) return undefined;
  return value.map((fee) => agreedFeeInWords(fromJson(AgreedFeeSchema, fee))).join('\n');
}
