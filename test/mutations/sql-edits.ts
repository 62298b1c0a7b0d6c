import type { Edit } from './edit.ts';

/** Returns true if a text is SQL, or a piece of a statement. */
export function isSql(text: string): boolean {
  return /\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE|RETURNING)\s/.test(text);
}

/** Words, with what takes their place. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/(?<![<>=-])<(?![=>])/g, '<='],
  [/<=/g, '<'],
  [/(?<![<>=-])>(?![>=])/g, '>='],
  [/(?<!=)>=/g, '>'],
  [/ SKIP LOCKED\b/g, ''],
  [/\s+FOR UPDATE(?: OF \w+)?(?: SKIP LOCKED)?/g, ''],
  [/\bIS NOT NULL\b/g, 'IS NULL'],
  [/\bIS NULL\b/g, 'IS NOT NULL'],
  [/(?<!IS )\bNOT (?!NULL\b|IN\b|LIKE\b|DISTINCT\b)/g, ''],
  [/(?<=\bnow\(\)) \+/g, ' -'],
  [/(?<=\bnow\(\)) -/g, ' +'],
  [/(?<=\w) \+ 1\b/g, ''],
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
];

/**
 * Finds what can be changed in SQL: a condition that always holds (or, after OR, never), a column that is not set, the
 * order of coalesce's arguments, rows that are not ordered, comparisons, and the words above. What has parameters keeps
 * them, so that PostgreSQL still takes the statement.
 */
export function sqlEdits(sql: string): Edit[] {
  const found: Edit[] = WORDS.flatMap(([pattern, replacement]) =>
    [...sql.matchAll(pattern)].map(({ index, 0: word }) => ({
      start: index,
      end: index + word.length,
      replacement,
    })),
  );
  const atoms = atomsOf(sql);
  return [
    ...found,
    ...conditions(sql, atoms),
    ...assignments(sql, atoms),
    ...orders(sql, atoms),
    ...coalesces(sql, atoms),
  ];
}

/** A word, bracket or other sign of a statement; a quoted text and `${…}` are one each. `depth` counts brackets and CASE. */
type Atom = { readonly text: string; readonly start: number; readonly end: number; readonly depth: number };

function atomsOf(sql: string): Atom[] {
  const atoms: Atom[] = [];
  let depth = 0;
  for (const { 0: text, index } of sql.matchAll(/'(?:[^']|'')*'|\$\{(?:[^{}]|\{[^{}]*\})*\}|[\w$.:]+|\S/g)) {
    if (text === ')' || text === 'END') depth -= 1;
    atoms.push({ text, start: index, end: index + text.length, depth });
    if (text === '(' || text === 'CASE') depth += 1;
  }
  return atoms;
}

/** Returns the end of what begins with atom `first`: before the next of `ends` in the same brackets, or with those brackets. */
function endOf(atoms: readonly Atom[], first: number, ends: ReadonlySet<string>): number {
  const depth = atoms[first]?.depth ?? 0;
  let last = first;
  while (last + 1 < atoms.length) {
    const next = atoms[last + 1];
    if (!next || next.depth < depth || (next.depth === depth && ends.has(next.text))) break;
    last += 1;
  }
  return last;
}

const CLAUSES = [
  'WHERE',
  'RETURNING',
  'ORDER',
  'LIMIT',
  'FOR',
  'GROUP',
  'UNION',
  'DO',
  'JOIN',
  'LEFT',
  'HAVING',
];
const CONDITION_ENDS = new Set([...CLAUSES, 'AND', 'OR', 'ON', 'WHEN', 'THEN', 'ELSE', ',']);
const CONDITION_BEGINS = new Set(['WHERE', 'AND', 'OR', 'ON', 'WHEN']);

function conditions(sql: string, atoms: readonly Atom[]): Edit[] {
  return atoms.flatMap(({ text }, i) => {
    const first = atoms[i + 1];
    if (!CONDITION_BEGINS.has(text) || !first || first.text === 'CONFLICT') return [];
    // A value that CASE compares with is no condition.
    if (text === 'WHEN' && first.text.startsWith("'")) return [];
    const { start, end } = stretch(atoms, i + 1, CONDITION_ENDS);
    const condition = sql.slice(start, end);
    if (/^(true|false)$/.test(condition)) return [];
    return [
      { start, end, replacement: text === 'OR' ? `(${condition} AND false)` : `(${condition} OR true)` },
    ];
  });
}

function stretch(
  atoms: readonly Atom[],
  first: number,
  ends: ReadonlySet<string>,
): { start: number; end: number } {
  return { start: atoms[first]?.start ?? 0, end: atoms[endOf(atoms, first, ends)]?.end ?? 0 };
}

const ASSIGNMENT_ENDS = new Set([...CLAUSES, ',', 'FROM']);

/** A column that keeps its value: `status = $1` becomes `status = CASE WHEN true THEN p.status ELSE $1 END`. */
function assignments(sql: string, atoms: readonly Atom[]): Edit[] {
  const found: Edit[] = [];
  for (const [i, { text }] of atoms.entries()) {
    if (text !== 'UPDATE') continue;
    const set = atoms.findIndex((atom, j) => j > i && atom.text === 'SET');
    const table = atoms[set - 1]?.text;
    if (set < 0 || set > i + 3) continue;
    for (let first = set + 1; atoms[first + 1]?.text === '='; ) {
      const { start, end } = stretch(atoms, first + 2, ASSIGNMENT_ENDS);
      const kept = `CASE WHEN true THEN ${table}.${atoms[first]?.text} ELSE ${sql.slice(start, end)} END`;
      found.push({ start, end, replacement: kept });
      const after = endOf(atoms, first + 2, ASSIGNMENT_ENDS) + 1;
      if (atoms[after]?.text !== ',') break;
      first = after + 1;
    }
  }
  return found;
}

const ORDER_ENDS = new Set(CLAUSES);

function orders(_sql: string, atoms: readonly Atom[]): Edit[] {
  return atoms.flatMap(({ text, start }, i) =>
    text === 'ORDER' ? [{ start, end: stretch(atoms, i, ORDER_ENDS).end, replacement: '' }] : [],
  );
}

function coalesces(sql: string, atoms: readonly Atom[]): Edit[] {
  return atoms.flatMap(({ text }, i) => {
    if (text !== 'coalesce') return [];
    const first = stretch(atoms, i + 2, new Set([',']));
    const comma = endOf(atoms, i + 2, new Set([','])) + 1;
    if (atoms[comma]?.text !== ',') return [];
    const second = stretch(atoms, comma + 1, new Set([',']));
    const swapped = `${sql.slice(second.start, second.end)}, ${sql.slice(first.start, first.end)}`;
    return [{ start: first.start, end: second.end, replacement: swapped }];
  });
}
