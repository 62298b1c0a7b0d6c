import { globSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const STARTS_A_PROCESS = /^import (?!type)[^;]*'(node:child_process|puppeteer-core)'/m;
const TYPES = /^import type [^;]*;/gm;
const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*'(#test\/|\.)([^']+)'/g;
/** Its processes belong to the whole run. */
const OF_THE_RUN = 'test/support/database.ts';

it('a test that starts a process is named *.slow.test.ts and left to npm run test:slow', () => {
  const files = globSync('test/**/*.ts', { cwd: ROOT });
  const starting = new Map(files.map((file) => [file, STARTS_A_PROCESS.test(text(file))]));
  const reaches = (file: string, seen = new Set([OF_THE_RUN])): boolean => {
    if (seen.has(file) || !starting.has(file)) return false;
    seen.add(file);
    return starting.get(file) === true || imports(file).some((one) => reaches(one, seen));
  };
  const quick = files.filter((file) => file.endsWith('.test.ts') && !file.endsWith('.slow.test.ts'));
  expect(quick.length).toBeGreaterThan(200);
  expect(quick.filter((file) => reaches(file))).toEqual([]);
});

function text(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8').replaceAll(TYPES, '');
}

function imports(file: string): string[] {
  return [...text(file).matchAll(IMPORT)].map(([, start, rest = '']) =>
    start === '.' ? posix.join(posix.dirname(file), `.${rest}`) : `test/${rest}`,
  );
}
