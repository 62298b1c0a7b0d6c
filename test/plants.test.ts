import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLANTS as FAULTS } from './faults/plants.ts';
import { PLANTS as INTERLEAVINGS } from './interleavings/plants.ts';
import { planted } from './support/plant.ts';

const ROOT = join(import.meta.dirname, '..');

describe('a plant, which proves that the judge finds a fault, applies to the present source', () => {
  it.each(Object.entries(FAULTS))('npm run faults: %s', (_name, plant) => {
    expect(planted(ROOT, [plant]).get(plant.file)).toContain(plant.replacement);
  });

  it.each(Object.entries(INTERLEAVINGS))('npm run interleave: %s', (_name, { edits }) => {
    const files = planted(ROOT, edits);
    for (const { file, replacement } of edits) expect(files.get(file)).toContain(replacement);
  });
});

describe('planting', () => {
  let root: string;
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'plants-'));
    writeFileSync(join(root, 'a.ts'), 'const a =\n  f(b) + 1;\nconst c = 1;\n');
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  const plant = (find: string) => planted(root, [{ file: 'a.ts', find, replacement: '$&2' }]);

  it('a plant replaces its text, however the words are spread over lines', () => {
    expect(plant('const a = f(b) +').get('a.ts')).toBe('$&2 1;\nconst c = 1;\n');
  });

  it('several edits of a file are made one after another', () => {
    const edits = [
      { file: 'a.ts', find: 'f(b)', replacement: 'g()' },
      { file: 'a.ts', find: 'g() + 1', replacement: '0' },
    ];
    expect(planted(root, edits).get('a.ts')).toBe('const a =\n  0;\nconst c = 1;\n');
  });

  it.each([
    ['is gone', 'f(d)', 0],
    ['occurs twice', 'const', 2],
  ])('a plant whose text %s is refused, and the error names the file and the text', (_how, find, times) => {
    expect(() => plant(find)).toThrow(
      `a.ts has the text that a plant replaces ${times} times, not once: ${find}\nLet the plant replace the code that does the same now.`,
    );
  });
});
