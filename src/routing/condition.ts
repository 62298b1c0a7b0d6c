import { parse, unparse } from '@bufbuild/cel';
import { toJson } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import type { Decimal } from '#gen/google/type/decimal_pb.js';
import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';
import { checkCondition, type Domains, type Expr } from './condition-check.ts';
import { evaluatorOf, type Fact, factsIn, joined, operandsOf } from './condition-evaluator.ts';
import { precheckOf } from './condition-precheck.ts';

/** A condition of a route, ready to be asked. */
export type Condition = {
  /**
   * Whether a payment's facts satisfy it. What cannot be evaluated is no match, and is given to `failed`. Facts that were
   * asked about must not change any more.
   */
  matches(facts: RoutingFacts): boolean;
  /**
   * Undefined when it holds; else the first of its parts (the operands of its outermost &&) that does not, with the
   * facts that it looks at: `country == "BR" does not hold (country is "US")`; or what kept it from being evaluated.
   */
  whyNot(facts: RoutingFacts): string | undefined;
};

/** A condition that cannot be used. Line and column count from 1, within the condition's text. */
export class ConditionError extends Error {
  override readonly name = 'ConditionError';
  readonly line: number;
  readonly column: number;

  constructor(message: string, line: number, column: number) {
    super(message);
    this.line = line;
    this.column = column;
  }
}

/**
 * Compiles a condition in CEL (https://cel.dev) over the fields of RoutingFacts.
 *
 * @param options.domains closed sets of values, by the name of the fact that has no others.
 * @param options.failed is told of facts that a condition could not be evaluated with.
 * @throws ConditionError with the place of the first thing wrong: syntax, a name, a type, a value.
 */
export function compileCondition(
  text: string,
  options: { domains?: Domains; failed?: (error: Error) => void } = {},
): Condition {
  const { expr, sourceInfo } = parsed(text);
  const placeOf = (at: Expr) => startOf(text, sourceInfo?.positions[String(at.id)] ?? 0);
  const source = {
    fail: (at: Expr, message: string) => fail(message, text, placeOf(at)),
    textFrom: (at: Expr) => text.slice(placeOf(at)),
  };
  const amounts = checkCondition(expr, source, options.domains ?? new Map());
  const operands = operandsOf(expr, '_&&_');
  const texts = operands.map((operand) =>
    unparse({ $typeName: 'cel.expr.ParsedExpr', sourceInfo, expr: operand }),
  );
  // Scaled only now, so that the parts are shown as they were written.
  for (const [literal, value] of amounts) {
    const constantKind = { case: 'int64Value', value } as const;
    literal.exprKind = { case: 'constExpr', value: { $typeName: 'cel.expr.Constant', constantKind } };
  }
  const mayHold = precheckOf(operands);
  const parts = operands.map((operand, i) => ({
    text: texts[i],
    facts: factsIn(operand),
    evaluate: evaluatorOf(operand),
  }));
  const evaluate = joined(
    parts.map((part) => part.evaluate),
    true,
  );
  return {
    matches(facts) {
      if (!mayHold(facts)) return false;
      const outcome = evaluate(facts);
      if (typeof outcome === 'boolean') return outcome;
      options.failed?.(outcome);
      return false;
    },
    whyNot(facts) {
      const outcome = evaluate(facts);
      if (outcome === true) return undefined;
      if (outcome !== false) return `cannot be evaluated: ${outcome.message}`;
      const part = parts.find((one) => one.evaluate(facts) === false);
      const seen = part?.facts.map((fact) => `${fact.name} is ${shown(fact, facts)}`).join(', ');
      return `${part?.text} does not hold${seen ? ` (${seen})` : ''}`;
    },
  };
}

function parsed(text: string): ReturnType<typeof parse> {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof RangeError) return fail('is nested too deeply', text, 0);
    const { location, rawMessage, message, expected } = error as Partial<ParseError> & Error;
    const offset = location?.start.offset ?? 0;
    if (!expected) return fail(rawMessage ?? message, text, offset);
    // What the parser would accept instead is a long list, and seldom what was meant.
    const rest = text.slice(offset).split('\n', 1)[0] as string;
    const hint = /^=(?!=)/.test(rest) ? ' (equality is written ==)' : '';
    return fail(rest ? `cannot be read from here: ${rest}${hint}` : 'ends too early', text, offset);
  }
}

/** What the parser throws, though it has no type for it: what it expected is told of syntax only. */
type ParseError = { location: { start: { offset: number } }; rawMessage: string; expected: unknown };

/** Where an expression begins: the parser counts what stands before an operator, or the dot of a method, as its own. */
function startOf(text: string, offset: number): number {
  const before = /(?:\s|\/\/.*|\.(?=\s*[a-z_]))*/iy;
  before.lastIndex = offset;
  return offset + (before.exec(text)?.[0].length ?? 0);
}

function fail(message: string, text: string, offset: number): never {
  const lines = text.slice(0, offset).split('\n');
  throw new ConditionError(message, lines.length, (lines.at(-1) as string).length + 1);
}

function shown({ type, localName }: Fact, facts: RoutingFacts): string {
  const value = facts[localName];
  if (value === undefined) return 'not known';
  if (type === 'decimal') return (value as Decimal).value;
  if (type === 'timestamp') return toJson(TimestampSchema, value as Timestamp);
  return JSON.stringify(value);
}
