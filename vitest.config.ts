import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The longest files, which run first: started last, one would run alone while the other cores are idle. */
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
    // Two tiers: tests that start processes or take long by design are named *.slow.test.ts (package.json,
    // test/tiers.test.ts).
    include: ['test/**/*.test.ts'],
    environment: 'node',
    // Processes, not threads: tests start and kill servers, and a native crash then ends only one file.
    pool: 'forks',
    // A worker loads the service once for all its files. Reloading it for each file would take a third of the time.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    // Tests wait half the time, so four at once fully use the two cores of a small CI machine.
    maxWorkers: Math.max(4, availableParallelism() - 1),
    globalSetup: 'test/support/database.ts',
    setupFiles: ['test/support/fixed-seed.ts', 'test/support/patience.ts'],
    // Limits for hanging tests, with allowance for a busy machine.
    expect: { poll: { timeout: 60_000 } },
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
});
