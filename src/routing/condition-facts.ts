import { isMessage, ScalarType, toJson } from '@bufbuild/protobuf';
import { TimestampSchema, timestampDate } from '@bufbuild/protobuf/wkt';
import { DecimalSchema } from '#gen/google/type/decimal_pb.js';
import { type RoutingFacts, RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';

/** A fact about a payment that conditions can use: a field of RoutingFacts, named as in the .proto. */
export type Fact = { readonly name: string; readonly type: string; readonly localName: keyof RoutingFacts };

/** A payment's facts in the CEL library's form, made once per payment for the conditions of all routes. */
export type FactValues = Readonly<Record<string, unknown>>;

/** Type of an amount, which the library sees as an integer number of ten-thousandths. */
export const AMOUNT = 'amount';

const TYPES = new Map<unknown, string>([
  [ScalarType.STRING, 'string'],
  [ScalarType.INT32, 'int'],
  [ScalarType.BOOL, 'bool'],
  [TimestampSchema.typeName, 'google.protobuf.Timestamp'],
  [DecimalSchema.typeName, AMOUNT],
]);

/** All facts, by name. */
export const FACTS: ReadonlyMap<string, Fact> = new Map(
  RoutingFactsSchema.fields.map(({ name, localName, message, scalar }) => {
    const type = TYPES.get(message?.typeName ?? scalar);
    if (!type) throw new Error(`conditions cannot use the fact ${name}: its type is unknown here`);
    return [name, { name, type, localName: localName as keyof RoutingFacts }];
  }),
);

/** Returns the library's variable for a fact. It differs for `type`, which is a constant in the library. */
export function variableOf(name: string): string {
  return name === 'type' ? 'type_' : name;
}

/**
 * Returns a payment's facts in the library's form. A missing time, or an amount that is not a decimal, is undefined.
 */
export function factValues(facts: RoutingFacts): FactValues {
  const values: Record<string, unknown> = {};
  for (const { name, localName } of FACTS.values()) values[variableOf(name)] = libraryValue(facts[localName]);
  return values;
}

/** Returns facts in the library's form, by their names, of which the others are unknown. */
export function knownFacts(facts: Readonly<Record<string, string>>): FactValues {
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [variableOf(name), value]));
}

/** Formats a fact for display. */
export function factText(facts: RoutingFacts, { localName }: Fact): string {
  const value: unknown = facts[localName];
  if (value === undefined) return 'unknown';
  if (isMessage(value, DecimalSchema)) return value.value;
  return isMessage(value, TimestampSchema) ? toJson(TimestampSchema, value) : JSON.stringify(value);
}

/**
 * Returns a decimal as an exact number of ten-thousandths, since no ISO 4217 currency has more than four decimal
 * places. undefined if it has more, or is not a plain decimal.
 */
export function scaleAmount(text: string): bigint | undefined {
  const [found, sign, whole, decimals = ''] = /^(-?)(\d+)(?:\.(\d{0,4})0*)?$/.exec(text) ?? [];
  return found === undefined ? undefined : BigInt(`${sign}${whole}${decimals.padEnd(4, '0')}`);
}

function libraryValue(value: unknown): unknown {
  if (typeof value === 'number') return BigInt(value);
  if (isMessage(value, DecimalSchema)) return scaleAmount(value.value);
  return isMessage(value, TimestampSchema) ? timestampDate(value) : value;
}
