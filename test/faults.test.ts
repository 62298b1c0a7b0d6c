import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CASES } from './faults/cases/all.ts';
import { type Cluster, startCluster } from './faults/cluster.ts';
import { type Checkout, copyCheckout, PLANTS, planted } from './faults/plants.ts';
import { sandbox } from './faults/providers/sandbox.ts';
import { findingsOf, runCase } from './faults/run.ts';

const ROOT = join(import.meta.dirname, '..');
const SEED = 1;

describe('after a fault everything still holds (in short: `npm run faults` tries all of them, under many seeds)', () => {
  let cluster: Cluster;
  let checkout: Checkout;
  beforeAll(async () => {
    checkout = copyCheckout(ROOT);
    cluster = await startCluster(checkout.path);
  });
  afterAll(async () => {
    await cluster?.stop();
    checkout?.remove();
  });

  for (const tried of CASES.filter(({ short }) => short)) {
    it(tried.name, { timeout: 120_000 }, async () => {
      const done = await runCase(tried, { seed: SEED, checkout: checkout.path, cluster, kind: sandbox });
      expect(findingsOf([done])).toEqual([]);
    });
  }
});

describe('the faults of our own, with which the runner is tried', () => {
  it.each(Object.entries(PLANTS))('%s still has its place in the source', (_name, plant) => {
    expect(planted(ROOT, plant)).toContain(plant.replacement);
    expect(CASES.map(({ name }) => name)).toEqual(expect.arrayContaining([...plant.cases]));
  });
});
