import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { createCommand, readArguments, runAsProcess, UsageError } from '#src/commands/command-line.ts';
import { copyCheckout } from '../faults/plants.ts';

const USAGE = `Usage: npm run interleave -- [--runs 300] [--seed n] [--plants]

Plays concurrent actions on one payment in many orders, statement by statement, with an actor that dies; the
provider's ledger judges the result. A printed seed repeats a failure.

  --runs     number of orders to try
  --plants   plants known faults, one at a time, and succeeds if each is found`;

const ROOT = join(import.meta.dirname, '../..');
const TEST = 'test/interleavings/interleavings.slow.test.ts';

/** Faults to plant; only a certain order of steps reveals each of them. */
const PLANTS = [
  {
    name: 'a write that does not check whether the payment has changed',
    file: 'src/store/migrations/0001_baseline.sql',
    find: 'AND p.id = the_payment AND p.version = the_version',
    replacement: 'AND p.id = the_payment',
  },
  {
    name: 'a claim that does not check whether the payment has changed or has an open operation',
    file: 'src/store/engine/claim-operation.ts',
    find: 'AND p.version = $3 AND p.open_operation IS NULL',
    replacement: 'AND (p.version = $3 OR true)',
  },
  {
    name: 'an operation whose unknown outcome counts as never sent',
    file: 'src/payments/operate/operate-payment.ts',
    find: '  // 5. Commit 2: the outcome, as far as it is known, and the response.',
    replacement: "  if (outcome.kind === 'unknown') Object.assign(outcome, { kind: 'not_sent' });",
  },
];

async function main(): Promise<number> {
  const { values } = readArguments(USAGE, {
    options: {
      runs: { type: 'string', default: '300' },
      seed: { type: 'string' },
      plants: { type: 'boolean', default: false },
    },
  });
  const seed = values.seed ?? String(Math.floor(Math.random() * 2 ** 31));
  if (!/^[1-9]\d{0,5}$/.test(values.runs) || !/^\d{1,10}$/.test(seed)) {
    throw new UsageError('--runs and --seed are whole numbers');
  }
  const environment = { FAST_CHECK_RUNS: values.runs, FAST_CHECK_SEED: seed };
  console.log(`seed ${seed}`);
  return values.plants ? await findPlants(environment) : run(ROOT, environment, 'inherit');
}

async function findPlants(environment: Readonly<Record<string, string>>): Promise<number> {
  let wrong = 0;
  // The copy without a fault must pass, or failures of the other copies prove nothing.
  for (const plant of [undefined, ...PLANTS]) {
    const checkout = await copyCheckout(ROOT, plant && { ...plant, cases: [], violates: [] });
    for (const part of ['test', 'proto', 'tsconfig.json', 'vitest.config.ts']) {
      cpSync(join(ROOT, part), join(checkout.path, part), { recursive: true });
    }
    const isFound = run(checkout.path, environment, 'ignore') !== 0;
    console.log(`${isFound ? 'found' : 'not found'}: ${plant?.name ?? 'no planted fault'}`);
    if (isFound !== (plant !== undefined)) wrong += 1;
    checkout.remove();
  }
  return wrong === 0 ? 0 : 1;
}

/** Runs the test. @returns its exit status. */
function run(
  checkout: string,
  environment: Readonly<Record<string, string>>,
  stdio: 'inherit' | 'ignore',
): number {
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const env = { ...process.env, ...environment };
  return spawnSync(process.execPath, [vitest, 'run', TEST], { cwd: checkout, env, stdio }).status ?? 1;
}

await runAsProcess(createCommand(USAGE, main, String));
