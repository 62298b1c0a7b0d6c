import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The longest files: begun last, one of them would go on alone while the other cores have nothing to do. */
const LONGEST = [
  'faults.slow',
  'workers.slow',
  'catalogue/reload-catalogue.slow',
  'main.slow',
  'hostile.slow',
  'interleavings/interleavings.slow',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLongest = ({ moduleId }: TestSpecification) =>
      LONGEST.some((name) => moduleId.endsWith(`/test/${name}.test.ts`));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
  }
}

export default defineConfig({
  test: {
    // In two tiers: what starts processes or takes long by intent is named *.slow.test.ts (package.json, test/tiers.test.ts).
    include: ['test/**/*.test.ts'],
    environment: 'node',
    // Processes, not threads: tests start and kill servers, and a native crash then ends one file only.
    pool: 'forks',
    // A worker loads the service once, for all of its files: a third of the time otherwise goes into loading it anew.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    // Half of the time a test waits: four at once use two cores, as a small CI machine has them, to the full.
    maxWorkers: Math.max(4, availableParallelism() - 1),
    globalSetup: 'test/support/database.ts',
    setupFiles: ['test/support/fixed-seed.ts', 'test/support/patience.ts'],
    // Bounds for what hangs, with room for a busy machine.
    expect: { poll: { timeout: 60_000 } },
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
});
