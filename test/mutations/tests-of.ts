import { globSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*'([.#][^']+)'/g;
/** Matches imports of types alone, which are not run. */
const TYPE_IMPORT = /^import type [^;]*;/gm;

/** The test files that reach a source file through imports, the nearest first. */
export type TestsOf = (file: string) => readonly string[];

/**
 * Reads which files of a checkout import which.
 *
 * @param isMatter which test files are run for mutants at all.
 */
export function readTestsOf(root: string, isMatter: (test: string) => boolean): TestsOf {
  const importers = new Map<string, Set<string>>();
  for (const path of globSync(['src/**/*.ts', 'test/**/*.ts'], { cwd: root })) {
    for (const target of importsOf(path, readFileSync(join(root, path), 'utf8'))) {
      importers.set(target, (importers.get(target) ?? new Set()).add(path));
    }
  }
  return (file) => reachedFrom(file, importers).filter((path) => path.endsWith('.test.ts') && isMatter(path));
}

function importsOf(path: string, text: string): string[] {
  const code = text.replace(TYPE_IMPORT, '');
  return [...code.matchAll(IMPORT)].map(([, target = '']) =>
    target.startsWith('#') ? target.slice(1) : posix.join(posix.dirname(path), target),
  );
}

/** Breadth first, so that what is near comes before what is far; files of one distance by their names. */
function reachedFrom(file: string, importers: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const reached = new Set([file]);
  let edge: readonly string[] = [file];
  while (edge.length > 0) {
    const next = edge
      .flatMap((path) => [...(importers.get(path) ?? [])])
      .filter((path) => !reached.has(path));
    edge = [...new Set(next)].sort();
    for (const path of edge) reached.add(path);
  }
  return [...reached];
}
