import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createCommand, readArguments, runAsProcess, UsageError } from '#src/commands/command-line.ts';

const USAGE = `Usage: npm run interleave -- [--runs 300] [--seed n] [--plants]

Plays concurrent actions on one payment in many orders, statement by statement, with an actor that dies; the
provider's ledger judges the result. A printed seed repeats a failure.

  --runs     number of orders to try
  --plants   instead plants known faults, one at a time, and succeeds if each is found in its own orders, and nothing
             without the fault`;

const ROOT = join(import.meta.dirname, '../..');
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');
const TEST = 'test/interleavings/interleavings.slow.test.ts';

async function main(): Promise<number> {
  const { values } = readArguments(USAGE, {
    options: {
      runs: { type: 'string', default: '300' },
      seed: { type: 'string' },
      plants: { type: 'boolean', default: false },
    },
  });
  if (values.plants) return run(['--testNamePattern', 'planted faults'], {});
  const seed = values.seed ?? String(Math.floor(Math.random() * 2 ** 31));
  if (!/^[1-9]\d{0,5}$/.test(values.runs) || !/^\d{1,10}$/.test(seed)) {
    throw new UsageError('--runs and --seed are whole numbers');
  }
  console.log(`seed ${seed}`);
  const environment = { FAST_CHECK_RUNS: values.runs, FAST_CHECK_SEED: seed };
  return run(['--testNamePattern', 'in every tried order'], environment);
}

/** Runs tests. @returns the exit status. */
function run(options: readonly string[], environment: Readonly<Record<string, string>>): number {
  const env = { ...process.env, ...environment };
  const program = [VITEST, 'run', TEST, ...options];
  return spawnSync(process.execPath, program, { cwd: ROOT, env, stdio: 'inherit' }).status ?? 1;
}

await runAsProcess(createCommand(USAGE, main, String));
