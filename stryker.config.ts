import type { PartialStrykerOptions } from '@stryker-mutator/api/core';

/** `npm run mutate`: makes small changes to the money path, one at a time, and runs the tests that reach each. */
const options: PartialStrykerOptions & { readonly vitest: { readonly configFile: string } } = {
  mutate: ['src/{payments,connectors}/**/*.ts'],
  // No program depends on the text of a log line or an error message.
  mutator: { excludedMutations: ['StringLiteral'] },
  testRunner: 'vitest',
  vitest: { configFile: 'stryker.vitest.config.ts' },
  // A mutant that runs while its module loads would rerun every test that imports the module.
  ignoreStatic: true,
  concurrency: 2,
  // Allows for a busy machine.
  timeoutMS: 15_000,
  timeoutFactor: 3,
  dryRunTimeoutMinutes: 30,
  incremental: true,
  incrementalFile: '.stryker/incremental.json',
  tempDirName: '.stryker',
  cleanTempDir: 'always',
  reporters: ['clear-text', 'progress', 'json', 'html'],
  clearTextReporter: { logTests: false, reportTests: false, allowColor: false },
  jsonReporter: { fileName: '.stryker/report.json' },
  htmlReporter: { fileName: '.stryker/report.html' },
  ignorePatterns: ['/data', '/coverage'],
  // Not a real file: Stryker would rewrite a tsconfig.json through an API that TypeScript 7 lacks.
  tsconfigFile: 'none',
};

export default options;
