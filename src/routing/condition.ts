import { type ASTNode, TypeError as CelTypeError, ParseError, serialize } from '@marcbachmann/cel-js';
import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';
import { checkExpression, type Domains } from './condition-check.ts';
import { ConditionError } from './condition-error.ts';
import { type FactValues, factText, factValues } from './condition-facts.ts';
import { asList, messageOf, parseExpression } from './condition-language.ts';

/** A condition of a route, compiled. */
export type Condition = {
  /** Names of the facts that it uses. */
  readonly facts: ReadonlySet<string>;
  /**
   * Evaluates the condition for a payment's facts. Returns an Error if it cannot be evaluated. Of facts that are absent,
   * the outcome does not depend, or it is an Error: `&&` and `||` need only one operand that decides.
   */
  evaluate(values: FactValues): boolean | Error;
  /**
   * Returns undefined if the condition holds. Otherwise returns the first false operand of its outermost &&, with the
   * facts that the operand uses, such as `country == "BR" does not hold (country is "US")`; or the reason why the
   * condition could not be evaluated.
   */
  whyNot(facts: RoutingFacts): string | undefined;
};

/**
 * Compiles a condition in CEL (https://cel.dev) over the fields of RoutingFacts.
 *
 * @throws ConditionError with the position of the first error in syntax, names, types or values.
 */
export function compileCondition(text: string, domains: Domains = new Map()): Condition {
  try {
    return compile(text, domains);
  } catch (error) {
    throw conditionError(error, text);
  }
}

function compile(text: string, domains: Domains): Condition {
  const expression = parseExpression(text);
  const operands = operandsOf(expression.ast).map((operand) => {
    const facts = [...checkExpression(operand, text, domains)];
    const list = typed(operand, text);
    return { facts, evaluate: (values: FactValues) => outcomeOf(() => list(values)[0]) };
  });
  typed(expression.ast, text);
  const evaluate = (values: FactValues) => outcomeOf(() => expression(values));
  return {
    facts: new Set(operands.flatMap(({ facts }) => facts.map(({ name }) => name))),
    evaluate,
    whyNot(facts) {
      const values = factValues(facts);
      const outcome = evaluate(values);
      if (outcome === true) return undefined;
      if (outcome !== false) return `cannot be evaluated: ${outcome.message}`;
      const i = operands.findIndex((operand) => operand.evaluate(values) === false);
      const seen = operands[i]?.facts.map((fact) => `${fact.name} is ${factText(facts, fact)}`).join(', ');
      // Parsed again, since the check has rewritten the first parse.
      const operand = serialize(operandsOf(parseExpression(text).ast)[i] as ASTNode);
      return `${operand} does not hold${seen ? ` (${seen})` : ''}`;
    },
  };
}

/** Type-checks an expression with the library, and requires it to be a bool. */
function typed(node: ASTNode, text: string) {
  const list = asList(node);
  const { type, error } = list.check();
  if (error) throw error;
  if (type === 'list<bool>') return list;
  throw new ConditionError(`must be bool, but is ${type?.replace(/^list<(.*)>$/, '$1')}`, text, node.start);
}

function outcomeOf(evaluate: () => boolean): boolean | Error {
  try {
    return evaluate();
  } catch (error) {
    return new Error(messageOf(error));
  }
}

/** Returns the operands of the outermost &&, for example three for `a && (b && c)`. */
function operandsOf(node: ASTNode): ASTNode[] {
  return node.op === '&&' ? node.args.flatMap(operandsOf) : [node];
}

function conditionError(error: unknown, text: string): unknown {
  // Thrown on stack overflow.
  if (error instanceof RangeError) return new ConditionError('is nested too deeply', text, 0);
  if (!(error instanceof ParseError || error instanceof CelTypeError)) return error;
  const offset = error.range?.start ?? 0;
  if (!/^(un)?expected_/.test(error.code)) return new ConditionError(messageOf(error), text, offset);
  // The library reports its token names, which mean little to merchants.
  const rest = text.slice(offset).split('\n', 1)[0];
  const hint = rest?.startsWith('=') ? ' (equality is written ==)' : '';
  return new ConditionError(
    rest ? `has a syntax error at: ${rest}${hint}` : 'ends unexpectedly',
    text,
    offset,
  );
}
