import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
const ofScripts = Object.values(scripts).flatMap(
  (script) => /\bnode (?:.* )?(\S+\.ts)$/.exec(script)?.[1] ?? [],
);
const ofDocs = globSync('docs/*.md', { cwd: ROOT })
  .flatMap((page) => [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^node (\S+\.ts)/gm)])
  .flatMap(([, file]) => file ?? []);
const commands = [
  ...new Set([...ofScripts, ...ofDocs, 'test/bench/routing.ts', 'test/bench/dry-run.ts', 'sandbox/main.ts']),
];

it('the tested commands include those in package.json', () => {
  expect(commands).toEqual(
    expect.arrayContaining(['src/main.ts', 'test/bench/main.ts', 'test/bench/growth.ts']),
  );
});

it.each(commands)('%s prints its usage for --help, and names an unknown option', async (file) => {
  const [help, unknown] = await Promise.all([run(file, '--help'), run(file, '--nonsense')]);
  expect(help).toEqual({ failed: false, stdout: expect.stringMatching(/^Usage: \S/), stderr: '' });
  expect(unknown).toMatchObject({ failed: true, stdout: '' });
  expect(unknown.stderr).toMatch(/^[^\n]*--nonsense/);
  expect(unknown.stderr).toContain('\nUsage: ');
  expect(unknown.stderr).not.toMatch(/^ +at /m);
});

it.each(['src/commands/retention.ts', 'sandbox/main.ts'])('%s takes -h for --help', async (file) => {
  const [short, long] = await Promise.all([run(file, '-h'), run(file, '--help')]);
  expect(short).toEqual(long);
});

function run(file: string, option: string): Promise<{ failed: boolean; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [join(ROOT, file), option], { timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ failed: error !== null, stdout, stderr }),
    );
  });
}
