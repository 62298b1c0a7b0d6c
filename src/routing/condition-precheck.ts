import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';
import { COMPARISONS, type Expr, scaleAmount, textOf } from './condition-check.ts';
import { compare, FACTS, type Fact, factOf, literalOf, MIRRORED, type Value } from './condition-evaluator.ts';

/** Whether a condition may hold of a payment: false is certain, true is not. */
export type Precheck = (facts: RoutingFacts) => boolean;

/** What one operand of a condition asks of one fact. */
type Test = {
  /** The place of the fact among a payment's values. */
  readonly at: number;
  readonly operator: string;
  /** The place of another fact that it is compared with; -1 for none. */
  readonly other: number;
  readonly literal: Value;
  /** For `in`. */
  readonly among: readonly Value[];
};

/**
 * A check of those operands of an && that ask one fact one thing. Between two payments everything else has passed
 * through the processor's caches, so what counts is how much memory a condition touches: these are a few plain records
 * that one function goes through, where closures would be a dozen objects each.
 */
export function precheckOf(operands: readonly Expr[]): Precheck {
  const tests = operands.flatMap((operand) => testOf(operand) ?? []);
  return (facts) => {
    const values = valuesOf(facts);
    for (let i = 0; i < tests.length; i++) {
      const test = tests[i] as Test;
      const value = values[test.at];
      const other = test.other < 0 ? test.literal : values[test.other];
      // What is not known is for the condition itself to fail of.
      if (value !== undefined && other !== undefined && !passes(test, value, other)) return false;
    }
    return true;
  };
}

function passes({ operator, among }: Test, value: Value, other: Value): boolean {
  if (operator === '@in') return among.includes(value);
  if (operator === 'startsWith') return (value as string).startsWith(other as string);
  return compare(operator, value, other);
}

const ORDER: readonly Fact[] = [...FACTS.values()].filter(({ type }) => type !== 'timestamp');

function testOf(expr: Expr): Test | undefined {
  const { exprKind: kind } = expr;
  if (kind.case === 'identExpr') return testOn(expr, '_==_', true);
  if (kind.case !== 'callExpr') return undefined;
  const { function: name, target, args } = kind.value;
  const [left, right] = args;
  if (!left) return undefined;
  if (name === '!_') return testOn(left, '_==_', false);
  if (target) return name === 'startsWith' ? testOn(target, name, textOf(left)) : undefined;
  if (!right) return undefined;
  if (name === '@in' && right.exprKind.case === 'listExpr') {
    const among = right.exprKind.value.elements.map((element) => literalOf(element, left));
    return among.includes(undefined) ? undefined : testOn(left, name, '', among as Value[]);
  }
  if (!COMPARISONS.has(name)) return undefined;
  const mirrored = MIRRORED.get(name) ?? name;
  return (
    testOn(left, name, literalOf(right, left)) ??
    testOn(right, mirrored, literalOf(left, right)) ??
    testOfTwo(left, name, right)
  );
}

/** `issuer_country != country`. */
function testOfTwo(left: Expr, operator: string, right: Expr): Test | undefined {
  const [at, other] = [placeOf(left), placeOf(right)];
  return at < 0 || other < 0 ? undefined : { at, operator, other, literal: '', among: [] };
}

function testOn(
  expr: Expr,
  operator: string,
  literal: Value | undefined,
  among: readonly Value[] = [],
): Test | undefined {
  const at = placeOf(expr);
  return at < 0 || literal === undefined ? undefined : { at, operator, other: -1, literal, among };
}

function placeOf(expr: Expr): number {
  const fact = factOf(expr);
  return fact ? ORDER.indexOf(fact) : -1;
}

// Those of the payment last asked about, since it asks the conditions of all routes, one after the other.
let lastFacts: RoutingFacts | undefined;
let lastValues: readonly (Value | undefined)[] = [];

function valuesOf(facts: RoutingFacts): readonly (Value | undefined)[] {
  if (facts === lastFacts) return lastValues;
  lastValues = ORDER.map(({ type, localName }) => {
    if (type !== 'decimal') return facts[localName] as Value;
    return facts.amount && scaleAmount(facts.amount.value);
  });
  lastFacts = facts;
  return lastValues;
}
