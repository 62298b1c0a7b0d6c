import type { PartialStrykerOptions } from '@stryker-mutator/api/core';

/** `npm run mutate`: puts small faults into the money path, one at a time, and runs the tests that reach each. */
const options: PartialStrykerOptions & { readonly vitest: { readonly configFile: string } } = {
  mutate: ['src/{payments,connectors}/**/*.ts'],
  // The text of a log line or an error message matters to no program.
  mutator: { excludedMutations: ['StringLiteral'] },
  testRunner: 'vitest',
  vitest: { configFile: 'stryker.vitest.config.ts' },
  // A mutant that runs as its module loads would have every test that imports the module run again.
  ignoreStatic: true,
  concurrency: 2,
  // Room for a busy machine.
  timeoutMS: 15_000,
  timeoutFactor: 3,
  incremental: true,
  incrementalFile: '.stryker/incremental.json',
  tempDirName: '.stryker',
  cleanTempDir: 'always',
  reporters: ['clear-text', 'progress', 'json', 'html'],
  clearTextReporter: { logTests: false, reportTests: false, allowColor: false },
  jsonReporter: { fileName: '.stryker/report.json' },
  htmlReporter: { fileName: '.stryker/report.html' },
  ignorePatterns: ['/data', '/coverage'],
  // Names no file: Stryker rewrites a tsconfig.json by an API that TypeScript 7 does not have.
  tsconfigFile: 'none',
};

export default options;
