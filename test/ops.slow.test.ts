import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

const hasPromtool = (() => {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

it.skipIf(!hasPromtool)('promtool accepts the alert rules', () => {
  execFileSync('promtool', ['check', 'rules', join(ROOT, 'ops/alerts.yaml')]);
});
