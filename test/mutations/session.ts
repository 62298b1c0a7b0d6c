import { relative } from 'node:path';
import { BaseSequencer, createVitest, type TestModule, type Vitest } from 'vitest/node';

/** What a session is asked: run these test files, in this order, now that `changed` has another text. */
export type Question = { readonly changed: string; readonly tests: readonly string[] };

/** What it answers: the test that failed first, or that all of them passed. */
export type Answer = { readonly failed: Failure | undefined };

/** A test that failed, and where. */
export type Failure = { readonly file: string; readonly test: string };

/*
 * A process that holds Vitest and its PostgreSQL ready for one mutant after the other: starting them takes longer than
 * most test files do. It is started in the copy of the checkout and killed with all that it started.
 */

const CLOSE_TIMEOUT_MS = 5_000;
/** Less than usual: with a mutant, a test that waits for something often waits in vain. */
const TEST_TIMEOUT_MS = 15_000;

class GivenOrder extends BaseSequencer {
  override async sort<T>(files: T): Promise<T> {
    return files;
  }
}

async function run(vitest: Vitest, { changed, tests }: Question): Promise<Answer> {
  const project = vitest.getRootProject();
  const specifications = tests.map((file) => project.createSpecification(file));
  vitest.invalidateFile(changed);
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  // The next mutant may be in another file.
  vitest.invalidateFile(changed);
  for (const module of testModules) {
    const failed = failedTest(module);
    if (failed !== undefined)
      return { failed: { file: relative(process.cwd(), module.moduleId), test: failed } };
  }
  const [error] = unhandledErrors;
  return { failed: error === undefined ? undefined : { file: '', test: String(error) } };
}

function failedTest(module: TestModule): string | undefined {
  for (const test of module.children.allTests('failed')) return test.fullName;
  const [error] = module.errors();
  return error?.message ?? (module.state() === 'failed' ? 'the file as a whole' : undefined);
}

async function main(): Promise<void> {
  const vitest = await createVitest('test', {
    watch: false,
    bail: 1,
    maxWorkers: Number(process.argv[2]),
    reporters: [{}],
    testTimeout: TEST_TIMEOUT_MS,
    sequence: { sequencer: GivenOrder },
  });
  process.on('message', (question: Question) => {
    run(vitest, question).then(
      (answer) => process.send?.(answer),
      (error: Error) => process.send?.({ failed: { file: '', test: error.message } } satisfies Answer),
    );
  });
  process.on('disconnect', () => {
    // A test that never ends keeps Vitest from closing; PostgreSQL ends with this process in any case.
    setTimeout(() => process.exit(), CLOSE_TIMEOUT_MS).unref();
    vitest.close().finally(() => process.exit());
  });
  process.send?.({ failed: undefined } satisfies Answer);
}

await main();
