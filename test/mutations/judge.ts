import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Mutant, mutated } from './mutant.ts';
import { digestOf, type Result, type Results } from './results.ts';
import type { Scratch } from './scratch.ts';
import type { TestsOf } from './tests-of.ts';

/** Dependencies of a judge. */
export type JudgeDeps = {
  readonly scratch: Scratch;
  readonly results: Results;
  readonly testsOf: TestsOf;
  /** The most test files that are run for a mutant. */
  readonly maxTests: number;
  readonly say: (line: string) => void;
};

/** Runs mutants and says what became of them. */
export type Judge = {
  /** The result of an earlier run, if it still holds: killed until the source changes, survived until a test does, too. */
  earlier(mutant: Mutant): Result | undefined;
  judge(mutant: Mutant): Promise<Result>;
};

/** So many of the nearest test files are run however slow they are. */
const ALWAYS_RUN = 3;
const SLOW_MS = 6_000;
const TEST_FILE_TIMEOUT_MS = 180_000;
const SPARE_MS = 30_000;
/** Factor by which tests may take longer with a mutant: the machine may be busier than it was. */
const SLOWER = 4;

/** Kinds of mutant that make no difference to tsc, which is slow: statements, numbers, operators and SQL. */
const KEEPS_TYPES = /^(?:;|\d+n?|[-+*/%<>=&|]*)$|^\([\s\S]*\b(?:OR true|AND false)\)$|^CASE WHEN true/;

/** Sets up a judge on a copy of the checkout. */
export function createJudge(deps: JudgeDeps): Judge {
  const { scratch, results } = deps;
  const read = (file: string) => readFileSync(join(scratch.path, file), 'utf8');
  const sources = memoized((file: string) => read(file));
  const nearest = memoized((file: string) => deps.testsOf(file).slice(0, deps.maxTests));
  const digests = memoized((file: string) => digestOf(nearest(file).map(read)));
  const baselines = memoized((test: string) => baselineMs(deps, test, read));
  let areTypesRight: Promise<boolean> | undefined;

  async function tests(file: string): Promise<{ files: string[]; ms: number }> {
    const files: { test: string; rank: number }[] = [];
    let sum = 0;
    const kills = results.killsBy(file);
    for (const [i, test] of nearest(file).entries()) {
      const ms = await baselines(test);
      if (ms === undefined || (i >= ALWAYS_RUN && ms > SLOW_MS)) continue;
      sum += ms;
      // What is quick, and what has noticed much so far, comes first.
      files.push({ test, rank: (1 + (kills.get(test) ?? 0)) / ms });
    }
    return { files: files.sort((a, b) => b.rank - a.rank).map(({ test }) => test), ms: sum };
  }

  async function verdict(mutant: Mutant): Promise<Pick<Result, 'verdict' | 'by'>> {
    const { files, ms } = await tests(mutant.file);
    scratch.write(mutant.file, mutated(sources(mutant.file), mutant));
    try {
      const answer = await scratch.runTests(questionOf(scratch, mutant.file, files), SPARE_MS + ms * SLOWER);
      if (!answer) return { verdict: 'timeout' };
      if (answer.failed) return { verdict: 'killed', by: answer.failed };
      if (!answer.isWhole) throw new Error(`not all tests were run for ${mutant.id} in ${mutant.file}`);
      if (KEEPS_TYPES.test(mutant.replacement)) return { verdict: 'survived' };
      if (await hasRightTypes(scratch.path)) return { verdict: 'survived' };
      // Refused for the mutant, and not for something that the copy lacks.
      scratch.write(mutant.file, sources(mutant.file));
      areTypesRight ??= hasRightTypes(scratch.path);
      return { verdict: (await areTypesRight) ? 'types' : 'survived' };
    } finally {
      scratch.write(mutant.file, sources(mutant.file));
    }
  }

  return {
    earlier({ id, file }) {
      const result = results.of(id);
      if (!result || result.source !== digestOf([sources(file)])) return undefined;
      return result.verdict !== 'survived' || result.tests === digests(file) ? result : undefined;
    },
    async judge(mutant) {
      const { id, file } = mutant;
      const since = performance.now();
      const found = await verdict(mutant);
      const ms = Math.round(performance.now() - since);
      const result = { id, file, ...found, ms, source: digestOf([sources(file)]), tests: digests(file) };
      results.add(result);
      return result;
    },
  };
}

/** Returns the duration of a test file; undefined when it fails twice without a mutant: then it proves nothing. */
async function baselineMs(
  { scratch, results, say }: JudgeDeps,
  test: string,
  read: (file: string) => string,
): Promise<number | undefined> {
  const digest = digestOf([read(test)]);
  const known = results.baselineOf(test, digest);
  if (known) return known.ms;
  for (let attempt = 1; ; attempt++) {
    const since = performance.now();
    const answer = await scratch.runTests(questionOf(scratch, test, [test]), TEST_FILE_TIMEOUT_MS);
    if (answer?.isWhole) {
      const ms = Math.round(performance.now() - since);
      results.addBaseline({ test, digest, ms });
      return ms;
    }
    if (attempt < 2) continue;
    say(
      `left out, since it does not pass without a mutant: ${test}: ${answer?.failed?.test ?? 'not all of it was run'}`,
    );
    return undefined;
  }
}

function questionOf(scratch: Scratch, changed: string, tests: readonly string[]) {
  return { changed: join(scratch.path, changed), tests: tests.map((test) => join(scratch.path, test)) };
}

/** @throws Error when tsc was ended from outside, or is not there. */
function hasRightTypes(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    execFile(join(path, 'node_modules/.bin/tsc'), { cwd: path }, (error) => {
      if (error && typeof error.code !== 'number') reject(error);
      else resolve(error === null);
    });
  });
}

function memoized<T>(find: (key: string) => T): (key: string) => T {
  const found = new Map<string, T>();
  return (key) => {
    const value = found.get(key) ?? find(key);
    found.set(key, value);
    return value;
  };
}
