import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';
import { copyCheckout } from '../support/copy-checkout.ts';
import { explore, isSound, wantEvents } from './explore.ts';
import { CODE_PLANS, PLANS } from './plan.ts';
import { PLANTS } from './plants.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Number of orders to try; `npm run interleave` can try more, with other seeds. */
const RUNS = Number(process.env.FAST_CHECK_RUNS ?? 300);

/** On a busy machine an order takes a second. */
const LONGEST_MS = RUNS * 3_000;

onOperatedPayments();

beforeAll(() => wantEvents(payments));

it.each([
  ['payment', PLANS],
  ['payment with a code', CODE_PLANS],
])(
  'in every tried order of steps and process deaths, the books of a %s match its provider’s ledger',
  async (_what, plans) => {
    await fc.assert(isSound(payments, {}, plans), { numRuns: RUNS });
    expect.assertions(0);
  },
  LONGEST_MS,
);

describe('planted faults', () => {
  it('without a plant, nothing is found in the orders of the planted faults', async () => {
    const found: Record<string, string> = {};
    for (const [name, { orders }] of Object.entries(PLANTS))
      found[name] = (await explore(payments, orders)).found;
    expect(found).toEqual(Object.fromEntries(Object.keys(PLANTS).map((name) => [name, ''])));
  });

  it.concurrent.for(Object.entries(PLANTS))('the fault is found: %s', async ([name, plant], { expect }) => {
    const copy = copyCheckout(ROOT, { edits: plant.edits, with: ['test', 'proto'] });
    try {
      const program = ['test/interleavings/explore-alone.ts', name];
      const { stdout } = await promisify(execFile)(process.execPath, program, { cwd: copy.path });
      expect(JSON.parse(stdout).found).toMatch(plant.finding);
    } finally {
      copy.remove();
    }
  });
});
