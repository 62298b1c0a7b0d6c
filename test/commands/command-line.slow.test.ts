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
const commands = [...new Set([...ofScripts, ...ofDocs, 'test/bench/routing.ts', 'sandbox/main.ts'])];

it('knows the commands of package.json and those that the docs name', () => {
  expect(commands).toEqual(
    expect.arrayContaining(['src/main.ts', 'test/bench/main.ts', 'test/bench/growth.ts']),
  );
});

it.each(commands)(
  '%s prints its usage for --help, and names an option that it does not know',
  async (file) => {
    const [help, unknown] = await Promise.all([run(file, '--help'), run(file, '--nonsense')]);
    expect(help).toEqual({ failed: false, stdout: expect.stringMatching(/^Usage: \S/), stderr: '' });
    expect(unknown).toMatchObject({ failed: true, stdout: '' });
    expect(unknown.stderr).toMatch(/^[^\n]*--nonsense/);
    expect(unknown.stderr).toContain('\nUsage: ');
    expect(unknown.stderr).not.toMatch(/^ +at /m);
  },
);

it.each(['src/commands/retention.ts', 'sandbox/main.ts'])('%s takes -h for --help', async (file) => {
  const [short, long] = await Promise.all([run(file, '-h'), run(file, '--help')]);
  expect(short).toEqual(long);
});

it.each([
  ['account.ts', ['create'], { npm_config_name: 'Shop' }, 'npm run account -- create --name …'],
  ['retention.ts', [], { npm_config_dry_run: 'true' }, 'npm run retention -- --dry-run\n'],
  [
    'webhook-listen.ts',
    [],
    { npm_config_public_key: 'pk', npm_config_port: '1' },
    'npm run webhook-listen -- --port … --public-key …',
  ],
])('%s says where to put an option that npm took for its own', async (file, args, taken, message) => {
  const env = { ...taken, npm_lifecycle_event: file.replace('.ts', '') };
  const { failed, stdout, stderr } = await run(`src/commands/${file}`, args, env);
  expect([failed, stdout]).toEqual([true, '']);
  expect(stderr).toMatch(/^npm kept --/);
  expect(stderr).toContain(message);
  expect(stderr).toContain('nothing was done');
});

it('an option that is given after -- is taken, whatever npm has of the same name', async () => {
  const env = { npm_config_name: 'other', npm_lifecycle_event: 'account' };
  const { stderr } = await run('src/commands/account.ts', ['nonsense', '--name', 'Shop'], env);
  expect(stderr).not.toContain('npm kept');
});

function run(
  file: string,
  options: string | readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ failed: boolean; stdout: string; stderr: string }> {
  const args = [join(ROOT, file), ...[options].flat()];
  const settings = { timeout: 60_000, env: { ...process.env, ...env } };
  return new Promise((resolve) => {
    execFile(process.execPath, args, settings, (error, stdout, stderr) =>
      resolve({ failed: error !== null, stdout, stderr }),
    );
  });
}
