import { CASES } from './cases/all.ts';
import type { Case } from './cases/case.ts';
import { notFor } from './cases/needs.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { type Findings, INVARIANTS, type Invariant, judgeWorld } from './invariants.ts';
import type { Provider } from './providers/provider.ts';
import { openWorld } from './world.ts';

/** A case with a seed and its findings. */
export type Try = {
  readonly name: string;
  readonly seed: number;
  readonly findings: Findings;
  /** The reason for skipping the case, if it was skipped. */
  readonly skipped?: string | undefined;
  readonly tookMs: number;
};

/**
 * Runs a case with a seed and a provider, and checks the invariants. Skips a case that the provider does not support.
 */
export async function runCase(
  tried: Case,
  options: {
    readonly seed: number;
    readonly checkout: string;
    readonly cluster: Cluster;
    readonly kind: Provider;
  },
): Promise<Try> {
  const startedMs = performance.now();
  const { name } = tried;
  const { seed } = options;
  const passedOver = notFor(options.kind, tried);
  if (passedOver) return { name, seed, findings: nothingFound(), skipped: passedOver, tookMs: 0 };
  const own = tried.ownCluster ? await startCluster(options.checkout) : undefined;
  const done = (findings: Findings) => ({ name, seed, findings, tookMs: performance.now() - startedMs });
  try {
    const world = await openWorld({ ...options, cluster: own ?? options.cluster });
    try {
      // A case that throws has found something, but the invariants are checked all the same.
      await tried.run(world).catch((error: Error) => world.expect(false, error.message));
      world.database.up();
      world.provider.up();
      if (!world.replicas.some((replica) => replica.isAlive())) await world.startReplica();
      return { ...done(await judgeWorld(world)), skipped: world.skipped() };
    } finally {
      await world.close();
    }
  } catch (error) {
    return done({ ...nothingFound(), told: [`it could not be judged: ${(error as Error).message}`] });
  } finally {
    await own?.stop();
  }
}

function nothingFound(): Findings {
  return Object.fromEntries(Object.keys(INVARIANTS).map((name) => [name, []])) as never;
}

/**
 * Returns a table with a row for each case and a column for each invariant: the number of successful tries, or
 * VIOLATED.
 */
export function table(tries: readonly Try[]): string {
  const columns = Object.keys(INVARIANTS) as Invariant[];
  const tried = new Set(tries.map(({ name }) => name));
  const names = CASES.map(({ name }) => name).filter((name) => tried.has(name));
  const width = Math.max(...names.map((name) => name.length));
  const head = `${'case'.padEnd(width)}  ${columns.map((column) => column.padEnd(8)).join(' ')}`;
  const lines = names.map((name) => {
    const own = tries.filter((one) => one.name === name && !one.skipped);
    if (own.length === 0) return `${name.padEnd(width)}  ${tries.find((one) => one.name === name)?.skipped}`;
    const cells = columns.map((column) => {
      const well = own.filter(({ findings }) => findings[column].length === 0).length;
      return (well === own.length ? `ok ${well}/${own.length}` : 'VIOLATED').padEnd(8);
    });
    return `${name.padEnd(width)}  ${cells.join(' ')}`;
  });
  return [head, '-'.repeat(head.length), ...lines].join('\n');
}

const SHOWN = 4;

/** Returns every finding on a separate line, with the seed that repeats it. */
export function findingsOf(tries: readonly Try[]): string[] {
  return tries.flatMap(({ name, seed, findings }) =>
    Object.entries(findings).flatMap(([invariant, found]) => {
      const shown = found.length > SHOWN ? [...found.slice(0, SHOWN), `… ${found.length} in all`] : found;
      return shown.map((finding) => `${invariant} ${name} (--case '${name}' --seed ${seed}): ${finding}`);
    }),
  );
}
