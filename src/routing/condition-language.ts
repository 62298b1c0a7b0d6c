import { RE2JS } from '@bufbuild/re2';
import { type ASTNode, Environment, type ParseResult } from '@marcbachmann/cel-js';
import { AMOUNT, FACTS, variableOf } from './condition-facts.ts';
import { localTime } from './local-time.ts';

/** The parts of a local time, by their names in CEL. CEL counts months and days from 0, except in getDate. */
const TIME_PARTS: Readonly<Record<string, (local: Temporal.PlainDateTime) => number>> = {
  getFullYear: ({ year }) => year,
  getMonth: ({ month }) => month - 1,
  getDate: ({ day }) => day,
  getDayOfMonth: ({ day }) => day - 1,
  getDayOfWeek: ({ dayOfWeek }) => dayOfWeek % 7,
  getDayOfYear: ({ dayOfYear }) => dayOfYear - 1,
  getHours: ({ hour }) => hour,
  getMinutes: ({ minute }) => minute,
  getSeconds: ({ second }) => second,
  getMilliseconds: ({ millisecond }) => millisecond,
};

/** Methods of a time that accept a time zone. */
export const TIME_METHODS: ReadonlySet<string> = new Set(Object.keys(TIME_PARTS));

/** Loops, such as `["a", "b"].exists(x, x == country)`. */
export const LOOPS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one']);

/** All functions that conditions can call. The library has more, but with unbounded types or costs. */
export const FUNCTIONS: ReadonlySet<string> = new Set([
  ...['contains', 'startsWith', 'endsWith', 'matches', 'size', 'int', 'string', 'timestamp', 'duration'],
  ...LOOPS,
  ...TIME_METHODS,
]);

/**
 * Functions that we replace: the library's int() reads "" as 0, its timestamp() accepts times without a zone, and its
 * parts of local times are slow. Ours have other names, since the library's functions cannot be overridden.
 */
const REPLACED: ReadonlySet<string> = new Set(['int', 'timestamp', ...TIME_METHODS]);

/** CEL with the facts as variables. Patterns have their own type, since checking a condition compiles them. */
const ENVIRONMENT = new Environment({ limits: { maxAstNodes: 10_000 } }).registerType('Pattern', RE2JS);

for (const { name, type } of FACTS.values()) {
  ENVIRONMENT.registerVariable(variableOf(name), type === AMOUNT ? 'int' : type);
}
for (const [name, part] of Object.entries(TIME_PARTS)) {
  register(`google.protobuf.Timestamp.${name}_(string): int`, (time: Date, zone: string) =>
    BigInt(part(localTime(time, zone))),
  );
}
register('string.matches(Pattern): bool', (text: string, pattern: RE2JS) => pattern.test(text));
register('int_(string): int', (text: string) => {
  if (!/^-?\d{1,18}$/.test(text)) throw new Error('int() needs a whole number');
  return BigInt(text);
});
register('timestamp_(string): google.protobuf.Timestamp', (text: string) => {
  const isComplete = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text);
  const time = new Date(isComplete ? text : Number.NaN);
  if (Number.isNaN(time.getTime())) throw new Error('timestamp() needs an RFC 3339 time');
  return time;
});

/** Returns the library's name of a function. */
export function functionName(name: string): string {
  return REPLACED.has(name) ? `${name}_` : name;
}

/** Parses a condition. @throws the library's ParseError. */
export function parseExpression(text: string): ParseResult {
  return ENVIRONMENT.parse(text);
}

/** Turns part of an expression into a separate expression that evaluates to a list of the part's value. */
export function asList(part: ASTNode): ParseResult {
  const list = parseExpression('[0]');
  replaceArguments(list.ast, [part]);
  return list;
}

/** Returns a literal for a string. */
export function literal(text: string): ASTNode {
  return parseExpression(JSON.stringify(text)).ast;
}

/** Modifies a parsed expression before the library checks its types. */
export function replaceArguments(node: ASTNode, args: unknown): void {
  (node as { args: unknown }).args = args;
}

/** Returns the message of a library error in our words and with our names. */
export function messageOf(error: unknown): string {
  const { summary, message, code } = error as Error & { summary?: string; code?: string };
  if (code === 'unknown_variable') return 'uses an unknown fact';
  if (code === 'limit_exceeded') return 'is too long or nested too deeply';
  return (summary ?? message)
    .replace(
      /^no such overload: (.*)$|^found no matching overload for '(.*)'$/,
      'uses an unsupported operation: $1$2',
    )
    .replaceAll(/(?<=\w)_(?!\w)|google\.protobuf\./g, '');
}

function register(signature: string, handler: (...args: never[]) => unknown): void {
  ENVIRONMENT.registerFunction(signature, handler, { async: false });
}
