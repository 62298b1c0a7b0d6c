import { relative } from 'node:path';
import { BaseSequencer, createVitest, type TestModule, type Vitest } from 'vitest/node';

/** A task for a session: run these test files, in this order, now that `changed` has another text. */
export type Question = { readonly changed: string; readonly tests: readonly string[] };

/** A session's answer: the test that failed first, that all of them passed, or that a file was not run. */
export type Answer = { readonly failed?: Failure; readonly isWhole: boolean };

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

const ATTEMPTS = 3;

async function run(vitest: Vitest, { changed, tests }: Question): Promise<Answer> {
  const project = vitest.getRootProject();
  const specifications = tests.map((file) => project.createSpecification(file));
  for (let attempt = 1; ; attempt++) {
    vitest.invalidateFile(changed);
    const result = await vitest.runTestSpecifications(specifications);
    // The result tells of earlier runs' files, too.
    const modules = result.testModules.filter(({ moduleId }) => tests.includes(moduleId));
    // The next mutant may be in another file.
    vitest.invalidateFile(changed);
    const failed = failureOf(modules, result.unhandledErrors);
    if (failed) return { failed, isWhole: false };
    // That the run before was to end, since a test had failed, may arrive in this one: then files are left out.
    const isWhole = modules.length === tests.length && modules.every((one) => one.state() === 'passed');
    if (isWhole || attempt === ATTEMPTS) return { isWhole };
  }
}

function failureOf(modules: readonly TestModule[], errors: readonly unknown[]): Failure | undefined {
  for (const module of modules) {
    const test = failedTest(module);
    if (test !== undefined) return { file: relative(process.cwd(), module.moduleId), test };
  }
  return errors.length > 0 ? { file: '', test: String(errors[0]) } : undefined;
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
  const answer = (told: Answer) => {
    if (process.connected) process.send?.(told);
  };
  process.on('message', (question: Question) => {
    run(vitest, question).then(answer, (error: Error) =>
      answer({ failed: { file: '', test: error.message }, isWhole: false }),
    );
  });
  process.on('disconnect', () => {
    // A test that never ends keeps Vitest from closing; PostgreSQL ends with this process in any case.
    setTimeout(() => process.exit(), CLOSE_TIMEOUT_MS).unref();
    vitest.close().finally(() => process.exit());
  });
  answer({ isWhole: false });
}

await main();
