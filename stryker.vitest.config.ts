import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Runs the files that detected the previous mutant first, since they are likely to detect its neighbor, then the
 * fastest files.
 */
class LikeliestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const cost = (file: TestSpecification) => {
      const { failed = false, duration = 0 } = this.ctx.cache.getTestSpecificationResult(file) ?? {};
      return failed ? -1 : duration;
    };
    return files.toSorted((a, b) => cost(a) - cost(b));
  }
}

/** The fast tests of the money path, which Stryker runs. test/mutate.ts starts PostgreSQL for them. */
export default defineConfig({
  test: {
    include: ['test/{payments,connectors,store,notifications}/**/*.test.ts', 'test/money.test.ts'],
    // These wait, race or generate cases for many seconds. More direct tests must detect the same mutants.
    exclude: [
      'test/payments/{concurrent-payments,operated-books,model/{any-order,apply},*-faults}.test.ts',
      '**/*.slow.test.ts',
      'test/store/{account-keys*,backlog-plans,database,migrate,next-release,pooler,row-names,statement-plans}.test.ts',
      'test/connectors/adyen/whole-service.test.ts',
    ],
    environment: 'node',
    isolate: false,
    sequence: { sequencer: LikeliestFirst },
    setupFiles: ['test/support/fixed-seed.ts', 'test/support/patience.ts'],
    // Longer than Stryker's timeout: Stryker kills the worker of a hanging mutant, so that none of its work continues.
    expect: { poll: { timeout: 60_000 } },
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
});
