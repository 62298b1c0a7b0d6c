import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readArguments } from '#src/commands/command-line.ts';
import startPostgres from './support/database.ts';

const USAGE = `Usage: npm run mutate -- [--mutate 'src/payments/model/*.ts' --testFiles 'test/payments/model/*.test.ts' --force]

Plants small faults in the code, one at a time, and runs the tests that reach each. A fault that no test detects is a
missing test or dead code. --mutate selects files other than src/payments and src/connectors, --testFiles selects
fewer tests. Without --force, results of unchanged code are reused. The report is in .stryker/report.html.`;

const { values } = readArguments(USAGE, {
  options: {
    mutate: { type: 'string' },
    testFiles: { type: 'string' },
    force: { type: 'boolean', default: false },
  },
});
const options = Object.entries(values).flatMap(([name, value]) =>
  value === true ? [`--${name}`] : value ? [`--${name}`, value] : [],
);

const ROOT = join(import.meta.dirname, '..');
const STRYKER = join(ROOT, 'node_modules/@stryker-mutator/core/bin/stryker.js');

/**
 * Runs Stryker with one PostgreSQL for all its workers: a worker whose mutant does not end is killed and would leave
 * its own PostgreSQL behind.
 */
async function main(): Promise<void> {
  const stopPostgres = await startPostgres();
  try {
    const stryker = spawn(process.execPath, [STRYKER, 'run', 'stryker.config.ts', ...options], {
      cwd: ROOT,
      stdio: 'inherit',
    });
    // A terminal sends this signal to both processes; a second one would end Stryker before it saves its results.
    process.on('SIGINT', () => {});
    process.on('SIGTERM', () => stryker.kill());
    const [code] = await once(stryker, 'exit');
    process.exitCode = code ?? 1;
  } finally {
    // An interrupted run leaves its copy of the checkout behind.
    for (const copy of globSync('.stryker/sandbox-*', { cwd: ROOT }))
      rmSync(join(ROOT, copy), { recursive: true });
    await stopPostgres();
  }
}

await main();
