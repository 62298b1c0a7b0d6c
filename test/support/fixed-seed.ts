import fc from 'fast-check';

/*
 * Properties run on the same cases every time: a test that fails by chance says nothing about the current change. To
 * reproduce a reported seed, set FAST_CHECK_SEED.
 */
const seed = Number(process.env.FAST_CHECK_SEED);
fc.configureGlobal({ seed: Number.isInteger(seed) ? seed : 20261122 });
