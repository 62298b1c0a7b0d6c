import {
  type CelInput,
  CelScalar,
  celEnv,
  celFunc,
  celMethod,
  isCelError,
  objectType,
  plan,
} from '@bufbuild/cel';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { RE2JS } from '@bufbuild/re2';
import type { Decimal } from '#gen/google/type/decimal_pb.js';
import { type RoutingFacts, RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';
import { COMPARISONS, constantOf, type Expr, scaleAmount, textOf } from './condition-check.ts';
import { FACT_TYPES, TIME_METHODS, type Type } from './condition-language.ts';
import { localTime } from './local-time.ts';

/** True or false, or what kept it from being either. */
export type Outcome = boolean | Error;

/** Evaluates an expression with a payment's facts. */
export type Evaluator = (facts: RoutingFacts) => Outcome;

/**
 * Makes a checked expression of type bool ready, in which the amount's literals are scaled as the amount is. What
 * routes are mostly made of becomes closures over the message, many times as fast as the library, which runs all else:
 * both agree, and a test holds it.
 */
export function evaluatorOf(expr: Expr): Evaluator {
  return closureOf(expr) ?? plannedOf(expr);
}

/**
 * All of them (undecided true) or any of them (undecided false), as CEL has && and ||: one that decides does so whatever
 * kept others from being evaluated.
 */
export function joined(evaluators: readonly Evaluator[], undecided: boolean): Evaluator {
  return (facts) => {
    let outcome: Outcome = undecided;
    for (const evaluate of evaluators) {
      const one = evaluate(facts);
      if (one === !undecided) return one;
      if (one !== undecided && outcome === undecided) outcome = one;
    }
    return outcome;
  };
}

/** The operands of an operator and of those it joins: of `a && (b && c)`, three. */
export function operandsOf(expr: Expr, operator: '_&&_' | '_||_'): Expr[] {
  const { exprKind: kind } = expr;
  if (kind.case !== 'callExpr' || kind.value.function !== operator) return [expr];
  return kind.value.args.flatMap((operand) => operandsOf(operand, operator));
}

/** The facts that an expression looks at, in the order of their first mention. */
export function factsIn(expr: Expr): readonly Fact[] {
  return [...new Set(identifiersIn(expr))].flatMap((name) => FACTS.get(name) ?? []);
}

/** What a fact, or a literal that it is compared with, is here. */
export type Value = string | number | bigint | boolean;
type Read = (facts: RoutingFacts) => Value;

/** A fact by its name in the .proto, and where the message holds it. */
export type Fact = { readonly name: string; readonly type: Type; readonly localName: keyof RoutingFacts };

/** Every fact, by its name. */
export const FACTS: ReadonlyMap<string, Fact> = new Map(
  RoutingFactsSchema.fields.map(({ name, localName }) => {
    return [name, { name, type: FACT_TYPES.get(name) as Type, localName: localName as keyof RoutingFacts }];
  }),
);

/** What a comparison is when its sides change places. */
export const MIRRORED: ReadonlyMap<string, string> = new Map(
  Object.entries({ '_<_': '_>_', '_<=_': '_>=_', '_>_': '_<_', '_>=_': '_<=_' }),
);

function closureOf(expr: Expr): Evaluator | undefined {
  const { exprKind: kind } = expr;
  if (kind.case === 'identExpr') return readerOf(expr) as Evaluator | undefined;
  if (kind.case !== 'callExpr') return undefined;
  const { function: name, target, args } = kind.value;
  const [left, right] = args;
  if (name === '_&&_' || name === '_||_')
    return joined(operandsOf(expr, name).map(evaluatorOf), name === '_&&_');
  if (left && name === '!_') return negated(evaluatorOf(left));
  if (left && target) return textTest(name, target, left);
  if (left && right && name === '@in') return membership(left, right);
  if (left && right)
    return comparison(name, left, right) ?? comparison(MIRRORED.get(name) ?? name, right, left);
  return undefined;
}

function negated(evaluate: Evaluator): Evaluator {
  return (facts) => {
    const outcome = evaluate(facts);
    return typeof outcome === 'boolean' ? !outcome : outcome;
  };
}

/** A fact with a literal, or with another fact: `issuer_country != country`. */
function comparison(operator: string, left: Expr, right: Expr): Evaluator | undefined {
  const read = readerOf(left);
  const literal = literalOf(right, left);
  const readOther = literal === undefined ? readerOf(right) : () => literal;
  if (!read || !readOther || !COMPARISONS.has(operator)) return undefined;
  return guarded((facts) => compare(operator, read(facts), readOther(facts)));
}

/** @param operator one of COMPARISONS. */
export function compare(operator: string, left: Value, right: Value): boolean {
  switch (operator) {
    case '_==_':
      return left === right;
    case '_!=_':
      return left !== right;
    case '_<_':
      return left < right;
    case '_<=_':
      return left <= right;
    case '_>_':
      return left > right;
    case '_>=_':
      return left >= right;
    default:
      throw new Error(`${operator} is no comparison`);
  }
}

function membership(left: Expr, right: Expr): Evaluator | undefined {
  const read = readerOf(left);
  if (!read || right.exprKind.case !== 'listExpr') return undefined;
  const literals = right.exprKind.value.elements.map((element) => literalOf(element, left));
  if (literals.includes(undefined)) return undefined;
  const values = new Set(literals);
  return guarded((facts) => values.has(read(facts)));
}

/** `iin.startsWith("4")` and the like. A pattern is compiled once, and by RE2, which takes linear time. */
function textTest(method: string, target: Expr, arg: Expr): Evaluator | undefined {
  const read = readerOf(target) as ((facts: RoutingFacts) => string) | undefined;
  const literal = textOf(arg);
  if (!read || literal === undefined) return undefined;
  switch (method) {
    case 'contains':
      return guarded((facts) => read(facts).includes(literal));
    case 'startsWith':
      return guarded((facts) => read(facts).startsWith(literal));
    case 'endsWith':
      return guarded((facts) => read(facts).endsWith(literal));
    case 'matches': {
      const pattern = RE2JS.compile(literal);
      return guarded((facts) => pattern.test(read(facts)));
    }
    default:
      return undefined;
  }
}

/** Reads a fact, or a part of a time, and throws where there is none; undefined of anything else. */
function readerOf(expr: Expr): Read | undefined {
  const fact = factOf(expr);
  if (fact?.type === 'decimal') return (facts) => unitsOf(facts[fact.localName] as Decimal | undefined);
  if (fact) return fact.type === 'timestamp' ? undefined : (facts) => facts[fact.localName] as Value;
  if (expr.exprKind.case !== 'callExpr') return undefined;
  const { function: name, target, args } = expr.exprKind.value;
  const part = TIME_METHODS.get(name);
  const time = target && factOf(target);
  const zone = args[0] && textOf(args[0]);
  return part && time && ((facts) => part(localTime(known(facts[time.localName] as Timestamp), zone)));
}

/** The fact that an expression is the name of. */
export function factOf({ exprKind: kind }: Expr): Fact | undefined {
  return kind.case === 'identExpr' ? FACTS.get(kind.value.name) : undefined;
}

/** A literal as it is compared with what is read of `other`. */
export function literalOf(expr: Expr, other: Expr): Value | undefined {
  const constant = constantOf(expr);
  if (constant?.case === 'stringValue' || constant?.case === 'boolValue') return constant.value;
  if (constant?.case !== 'int64Value') return undefined;
  // What else is read has 32 bits: a number that was rounded compares with it as the exact one does.
  return factOf(other)?.type === 'decimal' ? constant.value : Number(constant.value);
}

function guarded(evaluate: (facts: RoutingFacts) => boolean): Evaluator {
  return (facts) => {
    try {
      return evaluate(facts);
    } catch (error) {
      return error as Error;
    }
  };
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a fact that it looks at is not known');
  return value;
}

/** An amount in ten-thousandths. */
function unitsOf(amount: Decimal | undefined): bigint {
  const units = scaleAmount(known(amount).value);
  if (units === undefined) throw new Error('the amount cannot be read');
  return units;
}

const TIMESTAMP = objectType(TimestampSchema);
const { INT, STRING } = CelScalar;

// The library's own methods of times make a formatter whenever they are asked, and go by the machine's summer time.
const TIME_PARTS = [...TIME_METHODS].flatMap(([name, part]) => [
  celMethod(name, TIMESTAMP, [], INT, function () {
    return BigInt(part(localTime(this.message as Timestamp, undefined)));
  }),
  celMethod(name, TIMESTAMP, [STRING], INT, function (zone) {
    return BigInt(part(localTime(this.message as Timestamp, zone)));
  }),
]);

// The library's own takes "" for 0, and "0x10" for 16.
const WHOLE_NUMBER = celFunc('int', [STRING], INT, (text) => {
  if (!/^-?\d{1,18}$/.test(text)) throw new Error('what int() is given is no whole number');
  return BigInt(text);
});

const ENVIRONMENT = celEnv({ funcs: [...TIME_PARTS, WHOLE_NUMBER] });

/** The library's evaluation, with the facts that the expression looks at. */
function plannedOf(expr: Expr): Evaluator {
  const run = plan(ENVIRONMENT, expr);
  const looked = factsIn(expr);
  return (facts) => {
    try {
      const outcome = run(Object.fromEntries(looked.map((fact) => [fact.name, bindingOf(fact, facts)])));
      if (typeof outcome === 'boolean' || isCelError(outcome)) return outcome;
      return new Error('is neither true nor false');
    } catch (error) {
      return error as Error;
    }
  };
}

/** A fact as the library has it: whole numbers are bigints. */
function bindingOf({ type, localName }: Fact, facts: RoutingFacts): CelInput {
  const value = facts[localName] as string | boolean | number | Decimal | Timestamp | undefined;
  if (type === 'decimal') return unitsOf(value as Decimal | undefined);
  return typeof value === 'number' ? BigInt(value) : (known(value) as CelInput);
}

function identifiersIn({ exprKind: kind }: Expr): string[] {
  switch (kind.case) {
    case 'identExpr':
      return [kind.value.name];
    case 'callExpr':
      return [...(kind.value.target ? [kind.value.target] : []), ...kind.value.args].flatMap(identifiersIn);
    case 'listExpr':
      return kind.value.elements.flatMap(identifiersIn);
    case 'comprehensionExpr':
      return [kind.value.iterRange, kind.value.loopStep].flatMap((part) => (part ? identifiersIn(part) : []));
    default:
      return [];
  }
}
