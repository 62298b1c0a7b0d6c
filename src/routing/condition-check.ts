import { RE2JS } from '@bufbuild/re2';
import type { ASTNode } from '@marcbachmann/cel-js';
import { ConditionError, didYouMean } from './condition-error.ts';
import { AMOUNT, FACTS, type Fact, scaleAmount, variableOf } from './condition-facts.ts';
import {
  asList,
  FUNCTIONS,
  functionName,
  LOOPS,
  literal,
  messageOf,
  replaceArguments,
  TIME_METHODS,
} from './condition-language.ts';
import { localTime } from './local-time.ts';

/** Closed sets of values, by the name of the fact that takes them. */
export type Domains = ReadonlyMap<string, ReadonlySet<string>>;

type Scope = {
  readonly text: string;
  readonly domains: Domains;
  /** The facts encountered so far. */
  readonly facts: Set<Fact>;
  readonly loopVariable?: string | undefined;
};

const COMPARISONS = ['==', '!=', '<', '<=', '>', '>=', 'in'];
const NO_AMOUNT =
  'amount can only be compared (== != < <= > >= in) with number literals such as 100 or 99.90';
// RE2 unrolls repetitions, so long patterns with repetitions would take unbounded memory.
const MAX_PATTERN_LENGTH = 100;

/**
 * Checks what the library does not (names, literals, loops), and rewrites the expression for the library: names,
 * patterns, time zones, and the numbers that the amount is compared with.
 *
 * @returns the facts that the expression uses, in order of first mention.
 * @throws ConditionError.
 */
export function checkExpression(root: ASTNode, text: string, domains: Domains): ReadonlySet<Fact> {
  const facts = new Set<Fact>();
  check(root, { text, domains, facts });
  return facts;
}

function check(node: ASTNode, scope: Scope): void {
  if (node.op === 'id') checkName(node, node.args, scope);
  else if (node.op === 'call') checkCall(node, node.args[0], undefined, node.args[1], scope);
  else if (node.op === 'rcall') checkCall(node, ...node.args, scope);
  else if (COMPARISONS.includes(node.op))
    checkComparison(node.op, ...(node.args as [ASTNode, ASTNode]), scope);
  else if (['.', '[]', 'map'].includes(node.op))
    fail(node, scope, 'fields, indexes and maps are not supported');
  else if (node.op !== 'value') checkOperator(node, [node.args].flat() as ASTNode[], scope);
}

function checkName(node: ASTNode, name: string, scope: Scope): void {
  if (name === scope.loopVariable) return;
  const fact = FACTS.get(name) ?? fail(node, scope, unknown('name', name, FACTS.keys()));
  if (fact.type === AMOUNT) fail(node, scope, NO_AMOUNT);
  scope.facts.add(fact);
  replaceArguments(node, variableOf(name));
}

function checkOperator(node: ASTNode, operands: readonly ASTNode[], scope: Scope): void {
  for (const operand of operands) check(operand, scope);
  tryLiterals(node, operands, scope);
}

function checkCall(
  node: ASTNode,
  name: string,
  receiver: ASTNode | undefined,
  args: ASTNode[],
  scope: Scope,
): void {
  if (!FUNCTIONS.has(name)) {
    const start = scope.text.indexOf(name, receiver?.end ?? node.start);
    fail({ start }, scope, unknown('function', name, FUNCTIONS));
  }
  if (receiver) check(receiver, scope);
  const loopVariable = LOOPS.has(name) ? loopVariableIn(args, scope) : scope.loopVariable;
  for (const arg of args) check(arg, { ...scope, loopVariable });
  if (name === 'matches') compileLiterals(args, 'pattern of RE2', compilePattern, scope);
  if (TIME_METHODS.has(name)) compileLiterals(args, 'time zone', checkZone, scope);
  if (TIME_METHODS.has(name) && args.length === 0) args.push(literal('UTC'));
  (node.args as unknown[])[0] = functionName(name);
  tryLiterals(node, receiver ? [receiver, ...args] : args, scope);
}

function loopVariableIn([variable, body]: readonly ASTNode[], scope: Scope): string | undefined {
  if (variable?.op !== 'id' || !body) return scope.loopVariable;
  // The costs of nested loops would multiply.
  if (scope.loopVariable) fail(variable, scope, 'nested loops are not supported');
  if (FACTS.has(variable.args))
    fail(variable, scope, `${variable.args} is the name of a fact; use another name`);
  return variable.args;
}

function checkComparison(operator: string, left: ASTNode, right: ASTNode, scope: Scope): void {
  const others = operator === 'in' && right.op === 'list' ? right.args : [right];
  if (isAmount(left)) {
    scaleLiterals(left, others, scope);
  } else if (isAmount(right)) {
    scaleLiterals(right, [left], scope);
  } else {
    checkDomain(left, others, scope);
    checkDomain(right, [left], scope);
    check(left, scope);
    check(right, scope);
  }
}

function isAmount(node: ASTNode): boolean {
  return node.op === 'id' && FACTS.get(node.args)?.type === AMOUNT;
}

/**
 * Scales the numbers that an amount is compared with. The amount is exact, so the digits are taken as written: two
 * different large decimals may have the same double.
 */
function scaleLiterals(amount: ASTNode, others: readonly ASTNode[], scope: Scope): void {
  scope.facts.add(FACTS.get(amount.args as string) as Fact);
  for (const other of others) {
    const number = other.op === '-_' ? other.args : other;
    const written =
      typeof number.args === 'bigint' ? String(number.args) : scope.text.slice(number.start, number.end);
    if (!/^\d+(\.\d+)?$/.test(written)) fail(other, scope, NO_AMOUNT);
    const scaled = scaleAmount(written) ?? fail(other, scope, 'an amount has at most 4 decimal places');
    replaceArguments(number, scaled);
  }
}

/** Rejects comparing a fact with a value outside its closed set, which is never equal and so probably misspelled. */
function checkDomain(fact: ASTNode, others: readonly ASTNode[], scope: Scope): void {
  const domain = fact.op === 'id' ? scope.domains.get(fact.args) : undefined;
  for (const { op, args: value, start } of domain ? others : []) {
    if (op !== 'value' || typeof value !== 'string' || domain?.has(value)) continue;
    fail(
      { start },
      scope,
      `${fact.args} is never ${JSON.stringify(value)}${didYouMean(value, domain ?? [])}`,
    );
  }
}

/** Replaces string literals with their compiled form, once for all payments. */
function compileLiterals(
  nodes: readonly ASTNode[],
  what: string,
  make: (text: string) => unknown,
  scope: Scope,
): void {
  for (const node of nodes) {
    const text = node.op === 'value' ? node.args : undefined;
    if (typeof text !== 'string') fail(node, scope, `the ${what} must be a string literal`);
    try {
      replaceArguments(node, make(text));
    } catch (error) {
      fail(node, scope, `is not a valid ${what}: ${messageOf(error)}`);
    }
  }
}

function compilePattern(text: string): RE2JS {
  if (text.length > MAX_PATTERN_LENGTH) throw new Error(`longer than ${MAX_PATTERN_LENGTH} characters`);
  return RE2JS.compile(text);
}

function checkZone(name: string): string {
  try {
    localTime(new Date(0), name);
  } catch {
    throw new Error('must be an IANA name such as America/Bogota, or an offset such as -05:00');
  }
  return name;
}

/** Evaluates a part that depends only on literals. Otherwise, only the first payment would reveal `1 / 0`. */
function tryLiterals(node: ASTNode, operands: readonly ASTNode[], scope: Scope): void {
  if (operands.some(({ op }) => op !== 'value')) return;
  const list = asList(node);
  if (!list.check().valid) return;
  try {
    list();
  } catch (error) {
    fail(node, scope, messageOf(error));
  }
}

function unknown(what: string, name: string, known: Iterable<string>): string {
  const names = [...known];
  return `unknown ${what} ${name}${didYouMean(name, names) || `; known ${what}s: ${names.join(', ')}`}`;
}

function fail(at: Pick<ASTNode, 'start'>, { text }: Scope, message: string): never {
  throw new ConditionError(message, text, at.start);
}
