import { parseAst } from 'vitest/node';
import type { Edit } from './edit.ts';
import { isSql, sqlEdits } from './sql-edits.ts';

type Node = { readonly type: string; readonly start: number; readonly end: number } & {
  readonly [key: string]: unknown;
};
type Way = { readonly text: string; readonly parents: readonly Node[] };

const OPERATORS = new Map(
  Object.entries({
    '<': '<=',
    '<=': '<',
    '>': '>=',
    '>=': '>',
    '===': '!==',
    '!==': '===',
    '&&': '||',
    '||': '&&',
    '+': '-',
    '-': '+',
    '*': '/',
    '/': '*',
    '%': '*',
    '+=': '-=',
    '-=': '+=',
  }),
);

const MEMBERS = new Map(Object.entries({ min: 'max', max: 'min', some: 'every', every: 'some' }));

/**
 * Finds what can be changed in TypeScript: comparisons and connectives, conditions that always or never hold, negations,
 * literals, defaults, calls that are left out, and the SQL in strings. Types, imports, names of properties and prose (a
 * string with a space in it: the wording of a message) stay as they are.
 */
export function codeEdits(text: string): Edit[] {
  return editsBelow(parseAst(text, { lang: 'ts' }) as unknown as Node, { text, parents: [] });
}

function editsBelow(node: Node, way: Way): Edit[] {
  if (isLeftAlone(node)) return [];
  const inner: Way = { text: way.text, parents: [...way.parents, node] };
  const found = editsOf(node, way);
  for (const [name, value] of Object.entries(node)) {
    if (name === 'key' && !node.computed) continue;
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) found.push(...editsBelow(child, inner));
    }
  }
  return found;
}

const TRANSPARENT = new Set(['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression']);

function isLeftAlone({ type, declare }: Node): boolean {
  if (declare === true || (type.startsWith('TS') && !TRANSPARENT.has(type))) return true;
  return type === 'ImportDeclaration' || type === 'ExportAllDeclaration';
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}

function editsOf(node: Node, way: Way): Edit[] {
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression':
    case 'AssignmentExpression':
      return operatorEdits(node, way);
    case 'UnaryExpression':
      return node.operator === '!' ? [replace(node, sliceOf(node.argument, way))] : [];
    case 'IfStatement':
    case 'ConditionalExpression':
      return conditionEdits(node.test);
    case 'MemberExpression':
      return memberEdits(node);
    case 'ExpressionStatement':
      return statementEdits(node, way);
    case 'Literal':
      return literalEdits(node, way);
    case 'TemplateLiteral':
      return templateEdits(node, way);
    default:
      return [];
  }
}

function operatorEdits(node: Node, { text }: Way): Edit[] {
  const { left, right, operator } = node;
  if (!isNode(left) || !isNode(right) || typeof operator !== 'string') return [];
  // A default is left out.
  if (operator === '??') return [replace(node, text.slice(left.start, left.end))];
  const other = OPERATORS.get(operator);
  const isText = [left, right].some((side) => isString(side) || side.type === 'TemplateLiteral');
  if (other === undefined || (isText && operator === '+')) return [];
  const start = text.indexOf(operator, left.end);
  return [{ start, end: start + operator.length, replacement: other }];
}

function conditionEdits(test: unknown): Edit[] {
  return isNode(test) ? [replace(test, 'true'), replace(test, 'false')] : [];
}

function memberEdits({ property, computed }: Node): Edit[] {
  if (!isNode(property) || computed || typeof property.name !== 'string') return [];
  const other = MEMBERS.get(property.name);
  return other === undefined ? [] : [replace(property, other)];
}

/** A call or an assignment is left out; not where it is all that an `if` does, which never holding covers. */
function statementEdits(node: Node, { parents }: Way): Edit[] {
  const [outer, parent] = parents.slice(-2);
  const isAll =
    parent?.type === 'IfStatement' ||
    (outer?.type === 'IfStatement' && Array.isArray(parent?.body) && parent.body.length === 1);
  return isAll || node.directive ? [] : [replace(node, ';')];
}

function literalEdits(node: Node, way: Way): Edit[] {
  const { value } = node;
  if (typeof value === 'boolean') return [replace(node, String(!value))];
  if (typeof value === 'bigint') {
    return value > 0n
      ? [replace(node, `${value + 1n}n`), replace(node, `${value - 1n}n`)]
      : [replace(node, '1n')];
  }
  if (typeof value === 'number') {
    return value > 0 ? [replace(node, `${value + 1}`), replace(node, `${value - 1}`)] : [replace(node, '1')];
  }
  if (typeof value !== 'string' || isStatementName(way)) return [];
  if (isSql(value)) return sqlIn(node, way);
  if (value.includes(' ')) return [];
  return [replace(node, value === '' ? "'mutant'" : "''")];
}

function templateEdits(node: Node, way: Way): Edit[] {
  const source = sliceOf(node, way);
  if (isSql(source)) return sqlIn(node, way);
  return source.includes(' ') && !source.includes('${') ? [] : proseOrText(node, source);
}

function proseOrText(node: Node, source: string): Edit[] {
  const fixed = source.replace(/\$\{[^}]*\}/g, '');
  return fixed.includes(' ') || source === '``' ? [] : [replace(node, '``')];
}

/** The SQL between the quotes. */
function sqlIn(node: Node, way: Way): Edit[] {
  const offset = node.start + 1;
  return sqlEdits(way.text.slice(offset, node.end - 1)).map(({ start, end, replacement }) => ({
    start: start + offset,
    end: end + offset,
    replacement,
  }));
}

/** `{ name: 'claim', text: 'INSERT …' }`: under which name a prepared statement is known makes no difference. */
function isStatementName({ parents }: Way): boolean {
  const [object, property] = parents.slice(-2);
  if (property?.type !== 'Property' || nameOf(property.key) !== 'name') return false;
  const siblings = Array.isArray(object?.properties) ? object.properties : [];
  return siblings.some((sibling) => isNode(sibling) && nameOf(sibling.key) === 'text');
}

function nameOf(key: unknown): unknown {
  return isNode(key) ? key.name : undefined;
}

function isString({ type, value }: Node): boolean {
  return type === 'Literal' && typeof value === 'string';
}

function sliceOf(node: unknown, { text }: Way): string {
  return isNode(node) ? text.slice(node.start, node.end) : '';
}

function replace({ start, end }: Node, replacement: string): Edit {
  return { start, end, replacement };
}
