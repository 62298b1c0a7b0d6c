import { type DescField, ScalarType } from '@bufbuild/protobuf';
import { RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';

// A decimal is the amount, a double a number with decimals as it is written: no other value is of these types.
type Scalar = 'bool' | 'int' | 'string' | 'timestamp' | 'duration' | 'decimal' | 'double';

/** A type of CEL, as conditions have them. */
export type Type = Scalar | `list(${Scalar})`;

/** The facts that a condition may look at, by their names in the .proto. */
export const FACT_TYPES: ReadonlyMap<string, Type> = new Map(
  RoutingFactsSchema.fields.map((field) => [field.name, factType(field)]),
);

/** The parts of a time, as CEL's methods name them, of a date whose UTC is the local time. CEL counts from 0. */
export const TIME_METHODS: ReadonlyMap<string, (local: Date) => number> = new Map([
  ['getFullYear', (local) => local.getUTCFullYear()],
  ['getMonth', (local) => local.getUTCMonth()],
  ['getDate', (local) => local.getUTCDate()],
  ['getDayOfMonth', (local) => local.getUTCDate() - 1],
  ['getDayOfWeek', (local) => local.getUTCDay()],
  [
    'getDayOfYear',
    (local) => Math.floor((local.getTime() - Date.UTC(local.getUTCFullYear(), 0)) / 86_400_000),
  ],
  ['getHours', (local) => local.getUTCHours()],
  ['getMinutes', (local) => local.getUTCMinutes()],
  ['getSeconds', (local) => local.getUTCSeconds()],
  ['getMilliseconds', (local) => local.getUTCMilliseconds()],
]);

/** The types that lists hold, and that == compares. */
export const VALUES: readonly Type[] = ['bool', 'int', 'string', 'timestamp', 'duration'];
const ORDERED: readonly Type[] = ['int', 'string', 'timestamp', 'duration'];

/** What a function takes, as argumentsKey has it, and what it gives. */
type Signatures = Readonly<Record<string, Type>>;

const TEST: Signatures = { 'string.(string)': 'bool' };
const TIME_PART: Signatures = { 'timestamp.()': 'int', 'timestamp.(string)': 'int' };

/** All that can be called, operators too, by the name that the parser gives it. */
export const FUNCTIONS: ReadonlyMap<string, Signatures> = new Map([
  ...named(['_&&_', '_||_'], pairs(['bool'])),
  ...named(['!_', '@not_strictly_false'], { bool: 'bool' }),
  ...named(['_==_', '_!=_'], pairs(VALUES)),
  ...named(['_<_', '_<=_', '_>_', '_>=_'], pairs(ORDERED)),
  ...named(
    ['@in'],
    each(VALUES, (type) => [`${type}, list(${type})`, 'bool']),
  ),
  ...named(
    ['_?_:_'],
    each(VALUES, (type) => [`bool, ${type}, ${type}`, type]),
  ),
  ...named(['_*_', '_/_', '_%_'], { 'int, int': 'int' }),
  ...named(['-_'], { int: 'int' }),
  ...named(['_+_'], {
    ...each(['int', 'string', 'duration'], (type) => [`${type}, ${type}`, type]),
    'timestamp, duration': 'timestamp',
  }),
  ...named(['_-_'], {
    ...each(['int', 'duration'], (type) => [`${type}, ${type}`, type]),
    'timestamp, timestamp': 'duration',
    'timestamp, duration': 'timestamp',
  }),
  ...named(['contains', 'startsWith', 'endsWith', 'matches'], TEST),
  ...named([...TIME_METHODS.keys()], TIME_PART),
  ...named(['size'], { string: 'int', 'string.()': 'int' }),
  ...named(['int'], { string: 'int' }),
  ...named(['string'], { int: 'string', bool: 'string' }),
  ...named(['timestamp'], { string: 'timestamp' }),
  ...named(['duration'], { string: 'duration' }),
]);

/** The types that something is called with, as one text: a method's own value stands before the dot. */
export function argumentsKey(target: Type | undefined, args: readonly Type[]): string {
  return target ? `${target}.(${args.join(', ')})` : args.join(', ');
}

/** What cannot be called so, and how it can be: `there is no string < int; there is int < int, …`. */
export function wrongTypes(name: string, key: string): string {
  const possible = Object.keys(FUNCTIONS.get(name) ?? {}).map((one) => display(name, one));
  return `there is no ${display(name, key)}; there is ${possible.join(', ')}`;
}

/** A name that means nothing, with the nearest that does, or all of them. */
export function unknownName(what: 'name' | 'function', name: string, known: Iterable<string>): string {
  if (/^_\W/.test(name)) return `${name.replaceAll('_', '')} is not supported`;
  // Operators are called by their signs, and loops have a variable that cannot be written.
  const names = [...known].filter((one) => /^[a-z]\w*$/i.test(one));
  return `unknown ${what} ${name}; ${didYouMean(name, names, String) ?? `there is ${names.join(', ')}`}`;
}

/** `did you mean country?` where a name is near enough; `show` writes it. */
export function didYouMean(
  name: string,
  known: Iterable<string>,
  show: (name: string) => string,
): string | undefined {
  // Any two codes of two letters are near.
  if (name.length < 4) return undefined;
  const [near] = [...known]
    .map((one) => ({ one, distance: distance(name, one) }))
    .filter((candidate) => candidate.distance <= 2)
    .sort((a, b) => a.distance - b.distance);
  return near && `did you mean ${show(near.one)}?`;
}

function named(names: readonly string[], signatures: Signatures) {
  return names.map((name): [string, Signatures] => [name, signatures]);
}

function each(types: readonly Type[], signature: (type: Type) => [string, Type]): Signatures {
  return Object.fromEntries(types.map(signature));
}

function pairs(types: readonly Type[]): Signatures {
  return each(types, (type) => [`${type}, ${type}`, 'bool']);
}

/** A call by its types, as one would write it: `string < int`, `string.contains(int)`. */
function display(name: string, key: string): string {
  if (/\w{2}/.test(name) && name !== '@in') {
    return key.includes('.(') ? key.replace('.(', `.${name}(`) : `${name}(${key})`;
  }
  const types = key.split(', ');
  const pattern = name === '@in' ? '_ in _' : name.replace(/(?<=_)[^_]+(?=_)/g, ' $& ');
  return pattern.replaceAll('_', () => types.shift() ?? '');
}

/** How many characters have to be added, taken away or changed to make one text of the other (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, char] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const changed = (row[j] as number) + (char === other ? 0 : 1);
      next.push(Math.min(changed, (row[j + 1] as number) + 1, (next[j] as number) + 1));
    }
    row = next;
  }
  return row.at(-1) as number;
}

function factType({ name, scalar, message }: DescField): Type {
  if (scalar === ScalarType.STRING) return 'string';
  if (scalar === ScalarType.INT32) return 'int';
  if (scalar === ScalarType.BOOL) return 'bool';
  if (message?.typeName === 'google.protobuf.Timestamp') return 'timestamp';
  if (message?.typeName === 'google.type.Decimal') return 'decimal';
  throw new Error(`a condition cannot look at the fact ${name}: its type is not known here`);
}
