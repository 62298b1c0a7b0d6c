import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('growth measures payments and every read', async () => {
  const args = [join(import.meta.dirname, 'growth.ts'), '--stored', '200', '--seconds', '1'];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toMatch(/│ 200 +│ \d/);
  expect(stdout).not.toContain('NaN');
});
