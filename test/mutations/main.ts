import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readArguments } from '#src/commands/command-line.ts';
import { createRandom } from '../faults/random.ts';
import { createJudge } from './judge.ts';
import { readListed } from './listed.ts';
import { describeMutant, type Mutant, mutantsOf } from './mutant.ts';
import { createMutationProgress } from './progress.ts';
import { summary } from './report.ts';
import { type Result, readResults } from './results.ts';
import { createScratch, Stopped } from './scratch.ts';
import { readTestsOf } from './tests-of.ts';

const USAGE = `Usage: npm run mutate -- [--file 'part of a path']… [--max n] [--seed n] [--only-survivors] [--tests 8] [--at-once 2]
  --max             runs so many mutants at most; run it again for the next ones
  --seed            takes them in an order drawn by this number, instead of that of the files
  --only-survivors  runs those again that survived before
  --tests           runs so many test files at most for a mutant, the nearest by imports
  --at-once         runs so many test files at once`;

const ROOT = join(import.meta.dirname, '../..');
const MUTATED = 'src/{payments,store,connectors}/**/*.ts';
const RESULTS = '.mutations/results.jsonl';
const LISTED = 'docs/mutations.md';

/** These start whole services, or take long by intent: what they notice, nearer tests have to notice, too. */
const LEFT_OUT =
  /^test\/(faults|hostile|interop|main|main-refusals|overload.*|tls|tidy|mutations\/.*)\.test\.ts$/;

type Options = {
  readonly files: readonly string[];
  readonly max: number;
  readonly seed: number | undefined;
} & {
  readonly onlySurvivors: boolean;
  readonly maxTests: number;
  readonly atOnce: number;
};

/** Runs mutants, prints what became of them, and ends with 1 when one survived that is not listed. */
async function main(): Promise<void> {
  const options = readOptions();
  const all = globSync(MUTATED, { cwd: ROOT })
    .sort()
    .flatMap((file) => mutantsOf(file, readFileSync(join(ROOT, file), 'utf8')));
  const listed = readListed(join(ROOT, LISTED));
  const isAsked = ({ file }: Mutant) =>
    options.files.length === 0 || options.files.some((part) => file.includes(part));
  const asked = all.filter(isAsked);
  if (asked.length === 0) throw new Error('there is nothing to mutate in such a file');
  const known = new Set(all.map(({ id }) => id));
  const stale = [...listed.keys()].filter((id) => !known.has(id));

  const scratch = createScratch(ROOT, options.atOnce);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void scratch.stop());
  const results = readResults(join(ROOT, RESULTS));
  const progress = createMutationProgress(process.stdout);
  const testsOf = readTestsOf(scratch.path, (test) => !LEFT_OUT.test(test));
  const judge = createJudge({
    scratch,
    results,
    testsOf,
    maxTests: options.maxTests,
    say: progress.line,
  });
  const latest = new Map<string, Result>();
  for (const mutant of asked) {
    const earlier = judge.earlier(mutant);
    if (earlier) latest.set(mutant.id, earlier);
  }
  const isDue = ({ id }: Mutant) => {
    if (listed.has(id)) return false;
    return options.onlySurvivors ? results.of(id)?.verdict === 'survived' : !latest.has(id);
  };
  const due = ordered(asked.filter(isDue), options.seed).slice(0, options.max);
  try {
    for (const [i, mutant] of due.entries()) {
      progress.state(`${i + 1}/${due.length} ${describeMutant(mutant)}`);
      const result = await judge.judge(mutant);
      latest.set(mutant.id, result);
      progress.done(`${i + 1}/${due.length}`, mutant, result);
    }
  } finally {
    progress.end();
    await scratch.remove();
  }
  console.log(summary({ asked, latest, listed, stale }));
  const survives = ({ id }: Mutant) => !listed.has(id) && latest.get(id)?.verdict === 'survived';
  process.exitCode = asked.some(survives) ? 1 : 0;
}

function readOptions(): Options {
  const { values } = readArguments(USAGE, {
    options: {
      file: { type: 'string', multiple: true, default: [] },
      max: { type: 'string' },
      seed: { type: 'string' },
      'only-survivors': { type: 'boolean', default: false },
      tests: { type: 'string', default: '8' },
      'at-once': { type: 'string', default: '2' },
    },
  });
  const whole = (name: string, value: string) => {
    if (!/^[1-9]\d{0,8}$/.test(value)) throw new Error(`--${name} is a whole number above 0`);
    return Number(value);
  };
  return {
    files: values.file,
    max: values.max === undefined ? Number.POSITIVE_INFINITY : whole('max', values.max),
    seed: values.seed === undefined ? undefined : whole('seed', values.seed),
    onlySurvivors: values['only-survivors'],
    maxTests: whole('tests', values.tests),
    atOnce: whole('at-once', values['at-once']),
  };
}

function ordered(mutants: readonly Mutant[], seed: number | undefined): readonly Mutant[] {
  return seed === undefined ? mutants : createRandom(seed).shuffled(mutants);
}

main().catch((error: Error) => {
  console.error(error instanceof Stopped ? `\n${error.message}` : `${error.message}\n${USAGE}`);
  process.exitCode = 1;
});
