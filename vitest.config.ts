import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    // Processes, not threads: tests start and kill servers, and a native crash then ends one file only.
    pool: 'forks',
    // Vitest leaves a core for itself; on the two cores of a small CI machine that would be one file at a time.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    globalSetup: 'test/support/database.ts',
    setupFiles: ['test/support/fixed-seed.ts'],
    // Bounds for what hangs, with room for a busy machine.
    testTimeout: 90_000,
    hookTimeout: 120_000,
  },
});
