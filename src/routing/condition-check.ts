import { celEnv, isCelError, type parse, plan } from '@bufbuild/cel';
import { RE2JS } from '@bufbuild/re2';
import {
  argumentsKey,
  didYouMean,
  FACT_TYPES,
  FUNCTIONS,
  TIME_METHODS,
  type Type,
  unknownName,
  VALUES,
  wrongTypes,
} from './condition-language.ts';

/** A parsed expression (cel.expr.Expr). */
export type Expr = ReturnType<typeof parse>['expr'];

/** Closed sets of values, by the name of the fact that has no others. */
export type Domains = ReadonlyMap<string, ReadonlySet<string>>;

/** What the check asks of the text. */
export type Source = {
  /** Throws what is wrong with an expression, with its place. */
  fail(at: Expr, message: string): never;
  /** The text from where an expression begins. */
  textFrom(at: Expr): string;
};

type Call = Extract<Expr['exprKind'], { case: 'callExpr' }>['value'];

type Scope = {
  readonly source: Source;
  readonly domains: Domains;
  readonly names: ReadonlyMap<string, Type>;
  /** The numbers that the amount is compared with, as far as they are found. */
  readonly amounts: Map<Expr, bigint>;
  readonly depth: number;
  readonly inLoop: boolean;
};

const TRUTH = new Set(['_&&_', '_||_', '!_']);
const EQUALITY = new Set(['_==_', '_!=_']);
/** Equality and order, by the names that the parser gives them. */
export const COMPARISONS: ReadonlySet<string> = new Set([...EQUALITY, '_<_', '_<=_', '_>_', '_>=_']);
const NO_AMOUNT =
  'amount can only be compared (== != < <= > >= in) with numbers as they are written, such as 100 or 99.90';

// Far more than anyone can read, and far less than the stack holds.
const MAX_DEPTH = 100;
// A repetition in a pattern is unrolled: long patterns of them would take memory without bound.
const MAX_PATTERN_LENGTH = 100;
const NO_VARIABLES = celEnv();

/**
 * Checks the names and types of a condition, and that it is true or false. What CEL allows and we do not (maps, fields,
 * doubles, lists of different types) is refused by name.
 *
 * @returns the literals that the amount is compared with, in ten-thousandths (scaleAmount).
 */
export function checkCondition(expr: Expr, source: Source, domains: Domains): ReadonlyMap<Expr, bigint> {
  const scope: Scope = { source, domains, names: FACT_TYPES, amounts: new Map(), depth: 0, inLoop: false };
  expectType(expr, 'bool', scope);
  return scope.amounts;
}

/**
 * A decimal in ten-thousandths, exactly: no currency of ISO 4217 has more than four decimals. Undefined when there are
 * more, or when it is no plain decimal.
 */
export function scaleAmount(text: string): bigint | undefined {
  const [found, sign, whole, decimals = ''] = /^(-?)(\d*)(?:\.(\d{0,4})0*)?$/.exec(text) ?? [];
  return found === undefined ? undefined : BigInt(`${sign}${whole || '0'}${decimals.padEnd(4, '0')}`);
}

/** The value of a literal; undefined of anything else. */
export function constantOf({ exprKind }: Expr) {
  return exprKind.case === 'constExpr' ? exprKind.value.constantKind : undefined;
}

/** The text of a literal string; undefined of anything else. */
export function textOf(expr: Expr | undefined): string | undefined {
  const constant = expr && constantOf(expr);
  return constant?.case === 'stringValue' ? constant.value : undefined;
}

function typeOf(expr: Expr, outer: Scope): Type {
  const { exprKind: kind } = expr;
  const { fail } = outer.source;
  const scope = { ...outer, depth: outer.depth + 1 };
  if (scope.depth > MAX_DEPTH) return fail(expr, `is nested more than ${MAX_DEPTH} deep`);
  switch (kind.case) {
    case 'constExpr':
      return constantType(expr, scope);
    case 'identExpr': {
      const { name } = kind.value;
      return scope.names.get(name) ?? fail(expr, unknownName('name', name, scope.names.keys()));
    }
    case 'callExpr':
      return callType(expr, kind.value, scope);
    case 'listExpr':
      return listType(expr, kind.value.elements, scope);
    case 'comprehensionExpr':
      return macroType(expr, scope);
    case 'selectExpr':
      return fail(expr, `there are no fields, such as .${kind.value.field}`);
    default:
      return fail(expr, 'maps and messages are not supported');
  }
}

function expectType(expr: Expr, wanted: Type, scope: Scope): void {
  const type = typeOf(expr, scope);
  if (type !== wanted)
    scope.source.fail(expr, type === 'decimal' ? NO_AMOUNT : `must be ${wanted}, and is ${type}`);
}

function constantType(expr: Expr, { source }: Scope): Type {
  const constant = constantOf(expr);
  switch (constant?.case) {
    case 'stringValue':
      return 'string';
    case 'boolValue':
      return 'bool';
    case 'doubleValue':
      return 'double';
    case 'int64Value':
      return isInt64(constant.value) ? 'int' : source.fail(expr, 'is more than 64 bits hold');
    default:
      return source.fail(expr, 'null, bytes and unsigned numbers are not supported');
  }
}

function listType(expr: Expr, elements: readonly Expr[], scope: Scope): Type {
  const [first, ...others] = elements;
  if (!first) return scope.source.fail(expr, 'a list needs a value');
  const type = typeOf(first, scope);
  if (type === 'decimal') return scope.source.fail(first, NO_AMOUNT);
  if (!VALUES.includes(type)) return scope.source.fail(first, `a list cannot hold ${type}`);
  for (const other of others) expectType(other, type, scope);
  return `list(${type})` as Type;
}

function callType(expr: Expr, call: Call, scope: Scope): Type {
  const { function: name, target, args } = call;
  const signatures = FUNCTIONS.get(name);
  if (!signatures) return scope.source.fail(expr, unknownName('function', name, FUNCTIONS.keys()));
  const operands = target ? [target, ...args] : args;
  if (TRUTH.has(name)) {
    for (const operand of operands) expectType(operand, 'bool', scope);
    return 'bool';
  }
  if (operands.some((operand) => isAmount(operand, scope))) return amountType(expr, call, scope);
  const own = target && typeOf(target, scope);
  const types = args.map((arg) => typeOf(arg, scope));
  const key = argumentsKey(own, types);
  const result = signatures[key];
  if (!result) return scope.source.fail(expr, wrongTypes(name, key));
  checkDomains(call, scope);
  checkLiterals(expr, call, scope);
  return result;
}

/** An amount is exact, so it is compared with what is written, and not with what is computed. */
function amountType(expr: Expr, { function: name, args }: Call, scope: Scope): Type {
  const [left, right] = args;
  if (left && right && COMPARISONS.has(name)) {
    const literal = isAmount(left, scope) ? right : left;
    scope.amounts.set(literal, scaledLiteral(literal, scope));
  } else if (name === '@in' && right?.exprKind.case === 'listExpr') {
    for (const element of right.exprKind.value.elements)
      scope.amounts.set(element, scaledLiteral(element, scope));
  } else {
    scope.source.fail(expr, NO_AMOUNT);
  }
  return 'bool';
}

function scaledLiteral(expr: Expr, { source }: Scope): bigint {
  const constant = constantOf(expr);
  let text: string | undefined;
  if (constant?.case === 'int64Value') text = String(constant.value);
  // As it is written, since two large decimals may have the same double. One with an exponent is not found.
  if (constant?.case === 'doubleValue') text = /^-?\d*\.\d+(?![\deE])/.exec(source.textFrom(expr))?.[0];
  if (text === undefined) return source.fail(expr, NO_AMOUNT);
  const scaled = scaleAmount(text) ?? source.fail(expr, 'no amount has more than 4 decimals');
  return isInt64(scaled) ? scaled : source.fail(expr, 'no amount is as large');
}

/** The loop that the parser makes of all, exists and exists_one. */
function macroType(expr: Expr, scope: Scope): Type {
  const { fail } = scope.source;
  if (expr.exprKind.case !== 'comprehensionExpr') return fail(expr, 'is no loop');
  const { iterRange, iterVar, accuVar, accuInit, loopStep, result } = expr.exprKind.value;
  if (!iterRange || !accuInit || !loopStep || !result) return fail(expr, 'is no loop');
  // Its cost would be that of the one times that of the other.
  if (scope.inLoop) return fail(expr, 'a loop within a loop is not supported');
  if (accuInit.exprKind.case === 'listExpr') return fail(expr, 'map and filter are not supported');
  const range = typeOf(iterRange, scope);
  const element = VALUES.find((type) => range === `list(${type})`);
  if (!element) return fail(iterRange, `must be a list, and is ${range}`);
  if (FACT_TYPES.has(iterVar)) return fail(expr, `${iterVar} is a fact: take another name`);
  const names = new Map(scope.names).set(iterVar, element).set(accuVar, typeOf(accuInit, scope));
  typeOf(loopStep, { ...scope, names, inLoop: true });
  return typeOf(result, { ...scope, names, inLoop: true });
}

/** A fact of a closed set never equals what is not in it: most likely that is misspelt. */
function checkDomains({ function: name, args: [left, right] }: Call, scope: Scope): void {
  if (!left || !right) return;
  if (EQUALITY.has(name)) {
    checkDomain(left, [right], scope);
    checkDomain(right, [left], scope);
  }
  if (name === '@in' && right.exprKind.case === 'listExpr')
    checkDomain(left, right.exprKind.value.elements, scope);
}

function checkDomain({ exprKind: fact }: Expr, values: readonly Expr[], { source, domains }: Scope): void {
  const name = fact.case === 'identExpr' ? fact.value.name : '';
  const domain = domains.get(name);
  if (!domain) return;
  for (const value of values) {
    const text = textOf(value);
    if (text === undefined || domain.has(text)) continue;
    const hint = didYouMean(text, domain, JSON.stringify);
    source.fail(value, `${name} is never ${JSON.stringify(text)}${hint ? `; ${hint}` : ''}`);
  }
}

/** What is written wrong in literals would only be found with a payment, were it not tried now. */
function checkLiterals(expr: Expr, { function: name, target, args }: Call, { source }: Scope): void {
  const [first] = args;
  const text = textOf(first);
  if (first && name === 'matches') {
    if (text === undefined) source.fail(first, 'the pattern must be written here');
    if ((text as string).length > MAX_PATTERN_LENGTH) {
      source.fail(first, `is longer than the ${MAX_PATTERN_LENGTH} characters that a pattern may have`);
    }
    const fault = faultOf(() => RE2JS.compile(text as string));
    if (fault) source.fail(first, `is no pattern of RE2: ${fault}`);
  } else if (first && TIME_METHODS.has(name)) {
    if (text === undefined) source.fail(first, 'the time zone must be written here');
    if (faultOf(() => new Intl.DateTimeFormat('en', { timeZone: text as string }))) {
      source.fail(first, `there is no time zone ${JSON.stringify(text)}`);
    }
  } else if ((target ? [target, ...args] : args).every(constantOf)) {
    const value = plan(NO_VARIABLES, expr)();
    if (isCelError(value)) source.fail(expr, value.message);
  }
}

function isAmount({ exprKind }: Expr, { names }: Scope): boolean {
  return exprKind.case === 'identExpr' && names.get(exprKind.value.name) === 'decimal';
}

function isInt64(value: bigint): boolean {
  return BigInt.asIntN(64, value) === value;
}

function faultOf(attempt: () => unknown): string | undefined {
  try {
    attempt();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
