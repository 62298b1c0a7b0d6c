import { describe, expect, it } from 'vitest';
import { mutantsOf, mutated } from './mutant.ts';

/** Each text with one mutant in it. */
function mutations(text: string): string[] {
  return mutantsOf('src/a.ts', text).map((mutant) => mutated(text, mutant));
}

describe('mutantsOf', () => {
  it.each<[string, string, string[]]>([
    ['comparisons', 'const a = b <= c;', ['const a = b < c;']],
    ['connectives', 'const a = b && c;', ['const a = b || c;']],
    ['negations', 'const a = !b;', ['const a = b;']],
    ['defaults', 'const a = b ?? c;', ['const a = b;']],
    ['conditions', 'if (a) b();', ['if (true) b();', 'if (false) b();']],
    ['numbers', 'const a = 1_000;', ['const a = 1001;', 'const a = 999;']],
    ['bigints', 'const a = 0n;', ['const a = 1n;']],
    ['truth', 'const a = true;', ['const a = false;']],
    ['texts', "const a = 'b';", ["const a = '';"]],
    ['calls that are left out', 'a(b);', [';']],
    ['what stands in templates', `const a = \`\${b < c}\`;`, [`const a = \`\${b <= c}\`;`, 'const a = ``;']],
  ])('changes %s', (_what, text, expected) => {
    expect(mutations(text).toSorted()).toEqual(expected.toSorted());
  });

  it.each([
    ['types', "type A = 'b' | 1; const a: 'b' = c;"],
    ['imports', "import { a } from 'b';"],
    ['names of properties', "const a = { 'b': c };"],
    ['the wording of messages', `const a = 'it was refused'; const b = \`the answer: \${a}\`;`],
    ['the names of prepared statements', "const a = { name: 'b', text: c };"],
  ])('leaves %s alone', (_what, text) => {
    expect(mutations(text)).toEqual([]);
  });

  it('gives a mutant an id that stays when its line moves, and differs from that of its twin', () => {
    const [one, two] = mutantsOf('src/a.ts', 'const a = [true, true];');
    const [moved] = mutantsOf('src/a.ts', '// A comment.\nconst a = [true, true];');
    expect(moved?.id).toBe(one?.id);
    expect(two?.id).not.toBe(one?.id);
  });
});

describe('mutants of SQL', () => {
  const sql = (statement: string) =>
    mutations(`const A = \`${statement}\`;`).map((text) => text.slice('const A = `'.length, -2));

  it('let a condition always hold, with its parameters', () => {
    expect(sql('SELECT a FROM b WHERE c = $1 AND d = $2')).toEqual([
      'SELECT a FROM b WHERE (c = $1 OR true) AND d = $2',
      'SELECT a FROM b WHERE c = $1 AND (d = $2 OR true)',
    ]);
  });

  it('take a condition with all of its brackets', () => {
    expect(sql('UPDATE a SET b = c WHERE f(g(1), 2) IN (h()) RETURNING i')).toContain(
      'UPDATE a SET b = c WHERE (f(g(1), 2) IN (h()) OR true) RETURNING i',
    );
  });

  it('let a column keep its value', () => {
    expect(sql('UPDATE a SET b = coalesce($1, b), c = $2 FROM d')).toEqual([
      'UPDATE a SET b = CASE WHEN true THEN a.b ELSE coalesce($1, b) END, c = $2 FROM d',
      'UPDATE a SET b = coalesce(b, $1), c = $2 FROM d',
      'UPDATE a SET b = coalesce($1, b), c = CASE WHEN true THEN a.c ELSE $2 END FROM d',
    ]);
  });

  it('leave out locks and the order of rows', () => {
    expect(sql('SELECT a FROM b ORDER BY c LIMIT 1 FOR UPDATE SKIP LOCKED')).toEqual([
      'SELECT a FROM b  LIMIT 1 FOR UPDATE SKIP LOCKED',
      'SELECT a FROM b ORDER BY c LIMIT 1',
      'SELECT a FROM b ORDER BY c LIMIT 1 FOR UPDATE',
    ]);
  });

  it('change comparisons, also beside what is put in', () => {
    const hole = `\${d}`;
    expect(sql(`SELECT a FROM b WHERE c <= now() LIMIT ${hole}`)).toContain(
      `SELECT a FROM b WHERE c < now() LIMIT ${hole}`,
    );
  });
});
