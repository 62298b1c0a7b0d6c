import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What noticed the mutant before is likely to notice the next, which is beside it; then what costs least to ask. */
class LikeliestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const cost = (file: TestSpecification) => {
      const { failed = false, duration = 0 } = this.ctx.cache.getTestSpecificationResult(file) ?? {};
      return failed ? -1 : duration;
    };
    return files.toSorted((a, b) => cost(a) - cost(b));
  }
}

/** The tests that Stryker runs: near the money path, and quick. test/mutate.ts starts their PostgreSQL. */
export default defineConfig({
  test: {
    include: ['test/{payments,connectors,store,notifications}/**/*.test.ts', 'test/money.test.ts'],
    // These wait, race or draw cases for many seconds: what they notice, nearer tests have to notice, too.
    exclude: [
      'test/payments/{concurrent-payments,database-trouble,operated-books,model/{any-order,apply},*-faults}.test.ts',
      'test/notifications/notifications-under-way.test.ts',
      'test/store/{account-keys*,backlog-plans,database,migrate,next-release,pooler,row-names,statement-plans}.test.ts',
      'test/connectors/adyen/whole-service.test.ts',
    ],
    environment: 'node',
    isolate: false,
    sequence: { sequencer: LikeliestFirst },
    setupFiles: ['test/support/fixed-seed.ts', 'test/support/patience.ts'],
    // Longer than Stryker waits: it ends the whole worker of a mutant that hangs, so that nothing of it goes on.
    expect: { poll: { timeout: 60_000 } },
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
});
