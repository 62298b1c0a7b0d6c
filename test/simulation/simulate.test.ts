import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { type Ended, runCommand } from '../support/service-process.ts';

const directory = mkdtempSync(join(tmpdir(), 'simulate-'));
afterAll(() => rmSync(directory, { recursive: true }));

function run(...args: string[]): Promise<Ended> {
  return runCommand('simulate', {}, ...args);
}

it('the command compares the strategies in a table and a plot of at most 100 columns', async () => {
  const svg = join(directory, 'day.svg');
  const { code, stdout, stderr } = await run('--payments', '500', '--seed', '7', '--svg', svg);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^A day of 500 card payments, by .*simulation\.yaml, seed 7$/m);
  for (const name of ['priority', 'split', 'success rate']) {
    expect(stdout).toMatch(new RegExp(`^${name} +\\d`, 'm'));
    expect(stdout).toMatch(new RegExp(`^${name}, with failover +\\d`, 'm'));
  }
  const [, plot = ''] = stdout.split('Approved, %');
  expect(plot).toContain('█');
  expect(Math.max(...plot.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
  expect(readFileSync(svg, 'utf8').match(/<polyline/g)).toHaveLength(6);
});

it('the command refuses an invalid scenario, seed or option', async () => {
  const bad = join(directory, 'bad.yaml');
  writeFileSync(bad, 'payments: 1\ncurrency: dollars\n');
  expect(await run('--scenario', bad)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`${bad}:2: currency`),
  });
  expect(await run('--seed', 'x')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--seed is a whole'),
  });
  expect(await run('--sead', '1')).toMatchObject({ code: 2, stderr: expect.stringContaining('Usage') });
});

it('the command says in a line that the picture cannot be written, after the results', async () => {
  const svg = join(directory, 'no-such-directory', 'day.svg');
  const { code, stdout, stderr } = await run('--payments', '1', '--svg', svg);
  expect([code, stderr]).toEqual([1, `${svg} cannot be written (ENOENT)\n`]);
  expect(stdout).toContain('priority, with failover');
});
