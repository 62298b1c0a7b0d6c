import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CASES } from './faults/cases/all.ts';
import { NEEDS, notFor } from './faults/cases/needs.ts';
import { type Cluster, startCluster } from './faults/cluster.ts';
import { PLANTS } from './faults/plants.ts';
import { providerNamed } from './faults/providers/all.ts';
import { sandbox } from './faults/providers/sandbox.ts';
import { findingsOf, runCase } from './faults/run.ts';
import { type Checkout, copyCompiled } from './support/copy-checkout.ts';

const ROOT = join(import.meta.dirname, '..');
const SEED = 1;

const AFTER_SENDING = 'killed after sending, before the answer';
/** One case for each provider's fake. */
const AT_FAKES: Readonly<Record<string, string>> = {
  stripe: AFTER_SENDING,
  adyen: `operations: ${AFTER_SENDING}`,
  paypal: 'payers: completion killed after completing, before the answer',
  mercado_pago: 'payers: notification, return and recovery at once on two replicas',
};

describe('a short run of fault cases (`npm run faults` tries all of them, with many seeds)', () => {
  let cluster: Cluster;
  let checkout: Checkout;
  beforeAll(async () => {
    checkout = await copyCompiled(ROOT);
    cluster = await startCluster(checkout.path);
  });
  afterAll(async () => {
    await cluster?.stop();
    checkout?.remove();
  });

  for (const tried of CASES.filter(({ short }) => short)) {
    it(tried.name, async () => {
      const done = await runCase(tried, { seed: SEED, checkout: checkout.path, cluster, kind: sandbox });
      expect(findingsOf([done])).toEqual([]);
    });
  }

  it.concurrent.for(Object.entries(AT_FAKES))(
    'every invariant holds with the fake %s: %s',
    async ([provider, name], { expect }) => {
      const tried = CASES.find((one) => one.name === name);
      if (!tried) throw new Error('there is no case with this name');
      const kind = providerNamed(provider);
      const done = await runCase(tried, { seed: SEED, checkout: checkout.path, cluster, kind });
      expect([done.skipped, findingsOf([done])]).toEqual([undefined, []]);
    },
  );
});

describe('planted faults', () => {
  it.each(Object.entries(PLANTS))('the cases that must find the plant exist: %s', (_name, plant) => {
    expect(CASES.map(({ name }) => name)).toEqual(expect.arrayContaining([...plant.cases]));
  });
});

describe('cases that a provider does not support', () => {
  it('cases that a provider does not support are skipped with the reason, and the sandbox supports every case but one', () => {
    const [first] = CASES;
    if (!first) throw new Error('there are no cases');
    expect(notFor(providerNamed('paypal'), first)).toBe('not for this provider: paypal: it takes no cards');
    // The sandbox supports everything except refunds in a dashboard, which it does not have.
    expect(CASES.filter((one) => notFor(sandbox, one) !== undefined).map(({ name }) => name)).toEqual([
      'operations: refunds made at the provider, and the replica killed while it records them',
    ]);
  });

  it.each(NEEDS.map(([begins]) => begins))(
    'the name prefix of a requirement matches a case: %s',
    (begins) => {
      expect(CASES.filter(({ name }) => name.startsWith(begins)).length).toBeGreaterThan(0);
    },
  );
});
