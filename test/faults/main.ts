import { join } from 'node:path';
import { readArguments } from '#src/commands/command-line.ts';
import { createProgress, howFar } from '#src/commands/progress.ts';
import { copyCompiled } from '../support/copy-checkout.ts';
import { planted } from '../support/plant.ts';
import { CASES } from './cases/all.ts';
import type { Case } from './cases/case.ts';
import { type Cluster, startCluster, useCitus } from './cluster.ts';
import { inParallel } from './in-parallel.ts';
import { INVARIANTS } from './invariants.ts';
import { PLANTS, type Plant } from './plants.ts';
import { PROVIDERS, providerNamed } from './providers/all.ts';
import type { Provider } from './providers/provider.ts';
import { findingsOf, runCase, type Try, table } from './run.ts';

const USAGE = `Usage: npm run faults -- [--seeds 3] [--seed n]… [--case 'part of a name']… [--at-once 6]
  [--provider ${PROVIDERS.map(({ name }) => name).join('|')}]   runs with the sandbox, or with the fake of a provider
  [--database <url>]   runs on Citus, whose coordinator has this database; without the cases that stop or fill the database
  [--plant ${Object.keys(PLANTS).join('|')}]   runs with a planted fault, which must be found
  [--plants]   runs every plant's cases, and succeeds if each plant is found`;

const ROOT = join(import.meta.dirname, '../..');

/** Runs the cases, prints the findings, and exits with 1 if there are any. */
async function main(): Promise<void> {
  const { values } = readArguments(USAGE, {
    options: {
      seeds: { type: 'string', default: '3' },
      seed: { type: 'string', multiple: true },
      case: { type: 'string', multiple: true },
      provider: { type: 'string', default: 'sandbox' },
      'at-once': { type: 'string', default: '6' },
      database: { type: 'string' },
      plant: { type: 'string' },
      plants: { type: 'boolean', default: false },
    },
  });
  const seeds = values.seed?.map(Number) ?? freshSeeds(Number(values.seeds));
  const atOnce = Number(values['at-once']);
  if (seeds.length === 0 || !seeds.every(Number.isSafeInteger)) throw new Error('a seed is an integer');
  if (!Number.isInteger(atOnce) || atOnce < 1) throw new Error('--at-once must be a positive integer');
  const kind = providerNamed(values.provider);
  const plant = values.plant === undefined ? undefined : PLANTS[values.plant];
  if (values.plant !== undefined && !plant) throw new Error(`there is no plant ${values.plant}`);

  // One copy of the source serves the whole run, so that edits in the meantime have no effect.
  const base = await copyCompiled(ROOT);
  const cluster = await (values.database === undefined
    ? startCluster(base.path)
    : useCitus(base.path, values.database));
  const run = (options: RunOptions) =>
    runCases(cluster, { root: base.path, seeds, atOnce, kind, ...options });
  try {
    process.exitCode = values.plants
      ? await findPlants(run)
      : report(await run({ cases: chosen(values.case), plant }));
  } finally {
    await cluster.stop();
    base.remove();
  }
}

type RunOptions = { readonly cases: readonly Case[]; readonly plant: Plant | undefined };

function freshSeeds(count: number): number[] {
  const first = Math.floor(Math.random() * 1_000_000);
  return Array.from({ length: count }, (_, i) => first + i);
}

function chosen(parts: readonly string[] | undefined): readonly Case[] {
  const cases = parts ? CASES.filter(({ name }) => parts.some((part) => name.includes(part))) : CASES;
  if (cases.length === 0) throw new Error('no case has this name');
  return cases;
}

/** Runs cases concurrently if they do not disturb each other, then the others one after another. */
async function runCases(
  cluster: Cluster,
  options: RunOptions & {
    readonly root: string;
    readonly seeds: readonly number[];
    readonly atOnce: number;
    readonly kind: Provider;
  },
): Promise<Try[]> {
  const checkout = await copyCompiled(options.root, options.plant && { edits: [options.plant] });
  const jobsOf = (cases: readonly Case[]) =>
    options.seeds.flatMap((seed) =>
      cases.map((tried) => async () => {
        const done = await runCase(tried, { seed, checkout: checkout.path, cluster, kind: options.kind });
        const found = findingsOf([done]);
        const verdict = found.length === 0 ? 'ok' : 'FOUND';
        progress.line(`${verdict} ${tried.name}, seed ${seed}, ${seconds(done)} s`);
        if (done.skipped) progress.line(`  skipped: ${done.skipped}`);
        for (const finding of found) progress.line(`  ${finding}`);
        ended += 1;
        progress.state(howFar(ended, total, performance.now() - startedMs));
        return done;
      }),
    );
  const progress = createProgress(process.stdout);
  const total = options.seeds.length * options.cases.length;
  const startedMs = performance.now();
  let ended = 0;
  try {
    const together = jobsOf(options.cases.filter(({ alone }) => !alone));
    const alone = jobsOf(options.cases.filter((tried) => tried.alone));
    return [...(await inParallel(together, options.atOnce)), ...(await inParallel(alone, 1))];
  } finally {
    progress.end();
    checkout.remove();
  }
}

function seconds({ tookMs }: Try): string {
  return (tookMs / 1000).toFixed(1);
}

function report(tries: readonly Try[]): number {
  const found = findingsOf(tries);
  console.log(`\n${table(tries)}\n`);
  for (const [name, meaning] of Object.entries(INVARIANTS)) console.log(`${name.padEnd(4)} ${meaning}`);
  console.log(found.length === 0 ? '\nNothing was violated.' : `\nVIOLATED:\n${found.join('\n')}`);
  return found.length === 0 ? 0 : 1;
}

async function findPlants(run: (options: RunOptions) => Promise<Try[]>): Promise<number> {
  // Reports any plant that no longer applies before the first one runs, which takes a minute.
  for (const plant of Object.values(PLANTS)) planted(ROOT, [plant]);
  let missed = 0;
  for (const [name, plant] of Object.entries(PLANTS)) {
    const cases = CASES.filter((tried) => plant.cases.includes(tried.name));
    console.log(`plant ${name}:`);
    const tries = await run({ cases, plant });
    const unseen = plant.violates.filter((one) => !tries.some(({ findings }) => findings[one].length > 0));
    console.log(
      unseen.length === 0 ? `plant ${name} was found\n` : `plant ${name}: NOT found by ${unseen}\n`,
    );
    missed += unseen.length;
  }
  return missed === 0 ? 0 : 1;
}

main()
  .catch((error: Error) => {
    console.error(`${error.message}\n${USAGE}`);
    process.exitCode = 1;
  })
  // After many socket resets, Node (26) can hang during its cleanup at exit.
  .finally(() => process.exit());
