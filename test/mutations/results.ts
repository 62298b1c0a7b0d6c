import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** The fate of a mutant. `timeout` and `types` count as killed: a hang is noticed, and so is what tsc refuses. */
export type Verdict = 'killed' | 'timeout' | 'types' | 'survived';

/** The fate of a mutant, and the evidence for it. */
export type Result = {
  readonly id: string;
  readonly file: string;
  readonly verdict: Verdict;
  /** The test that failed. */
  readonly by?: { readonly file: string; readonly test: string };
  readonly ms: number;
  /** Digest of the source file. */
  readonly source: string;
  /** Digest of the test files. */
  readonly tests: string;
};

/** Duration of a test file without a mutant. It passed. */
export type Baseline = { readonly test: string; readonly digest: string; readonly ms: number };

/** Results of earlier runs; each line is written at once, so that a run can be stopped at any time. */
export type Results = {
  of(id: string): Result | undefined;
  add(result: Result): void;
  baselineOf(test: string, digest: string): Baseline | undefined;
  addBaseline(baseline: Baseline): void;
  /** Number of mutants of a source file that each test file has noticed. */
  killsBy(file: string): ReadonlyMap<string, number>;
};

/** Reads a file of lines of JSON, of which the last one on a mutant counts. */
export function readResults(path: string): Results {
  const results = new Map<string, Result>();
  const baselines = new Map<string, Baseline>();
  const keep = (line: Result | Baseline) =>
    'id' in line ? results.set(line.id, line) : baselines.set(line.test, line);
  if (existsSync(path)) {
    for (const line of readFileSync(path, 'utf8').split('\n')) if (line) keep(JSON.parse(line));
  }
  mkdirSync(dirname(path), { recursive: true });
  const add = (line: Result | Baseline) => {
    keep(line);
    appendFileSync(path, `${JSON.stringify(line)}\n`);
  };
  return {
    of: (id) => results.get(id),
    add,
    baselineOf(test, digest) {
      const baseline = baselines.get(test);
      return baseline?.digest === digest ? baseline : undefined;
    },
    addBaseline: add,
    killsBy(file) {
      const kills = new Map<string, number>();
      for (const result of results.values()) {
        if (result.file === file && result.by)
          kills.set(result.by.file, (kills.get(result.by.file) ?? 0) + 1);
      }
      return kills;
    },
  };
}

/** Digest of texts, to see whether they have changed. */
export function digestOf(texts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(`${text.length}\n${text}`);
  return hash.digest('hex').slice(0, 16);
}
