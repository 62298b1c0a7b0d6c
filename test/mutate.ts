import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, rmSync } from 'node:fs';
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
