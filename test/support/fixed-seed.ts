import fc from 'fast-check';

/*
 * Properties run on the same cases every time: a test that fails by chance says nothing about the current change. `npm
 * run properties` tries new cases. To reproduce a reported seed, set FAST_CHECK_SEED.
 */
const seed = process.env.FAST_CHECK_SEED ?? '20261122';
if (seed !== 'fresh') fc.configureGlobal({ seed: Number(seed) });

/** Returns the number of cases for a property: `usual`, multiplied by FAST_CHECK_RUNS in a longer search. */
export const runs = (usual: number): number => usual * Number(process.env.FAST_CHECK_RUNS ?? 1);
