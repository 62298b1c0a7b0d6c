import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    // Processes, not threads: tests start and kill servers, and a native crash then ends one file only.
    pool: 'forks',
    globalSetup: 'test/support/database.ts',
    setupFiles: ['test/support/fixed-seed.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
