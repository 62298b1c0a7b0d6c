import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import startPostgres from './support/database.ts';

const ROOT = join(import.meta.dirname, '..');
const STRYKER = join(ROOT, 'node_modules/@stryker-mutator/core/bin/stryker.js');

/**
 * Runs Stryker on one PostgreSQL for all of its workers: a worker is killed when a mutant does not end, and would leave a
 * PostgreSQL of its own behind.
 */
async function main(): Promise<void> {
  const stopPostgres = await startPostgres();
  try {
    const stryker = spawn(process.execPath, [STRYKER, 'run', 'stryker.config.ts', ...process.argv.slice(2)], {
      cwd: ROOT,
      stdio: 'inherit',
    });
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stryker.kill(signal));
    const [code] = await once(stryker, 'exit');
    process.exitCode = code ?? 1;
  } finally {
    await stopPostgres();
  }
}

await main();
