import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readArguments } from '#src/commands/command-line.ts';
import startPostgres from './support/database.ts';

const USAGE = `Usage: npm run mutate -- [--mutate 'src/payments/model/*.ts' --testFiles 'test/payments/model/*.test.ts' --force]

Puts small faults into the code, one at a time, and runs the tests that reach each: a fault that no test notices is a
missing test, or code that makes no difference. --mutate names other files than src/payments and src/connectors, --testFiles
fewer tests; results of unchanged code are kept from run to run, unless --force is given. The report is in .stryker/report.html.`;

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
 * Runs Stryker on one PostgreSQL for all of its workers: a worker is killed when a mutant does not end, and would leave a
 * PostgreSQL of its own behind.
 */
async function main(): Promise<void> {
  const stopPostgres = await startPostgres();
  try {
    const stryker = spawn(process.execPath, [STRYKER, 'run', 'stryker.config.ts', ...options], {
      cwd: ROOT,
      stdio: 'inherit',
    });
    // A terminal sends this to both; a second one would end Stryker before it has saved what it found.
    process.on('SIGINT', () => {});
    process.on('SIGTERM', () => stryker.kill());
    const [code] = await once(stryker, 'exit');
    process.exitCode = code ?? 1;
  } finally {
    // A run that was interrupted leaves its copy of the checkout behind.
    for (const copy of globSync('.stryker/sandbox-*', { cwd: ROOT }))
      rmSync(join(ROOT, copy), { recursive: true });
    await stopPostgres();
  }
}

await main();
