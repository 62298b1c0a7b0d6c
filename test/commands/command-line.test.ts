import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { run as account } from '#src/commands/account.ts';
import type { Command } from '#src/commands/command-line.ts';
import { run as retention } from '#src/commands/retention.ts';
import { run as webhookListen } from '#src/commands/webhook-listen.ts';
import { runCommand } from '../support/run-command.ts';

it.each<[string, Command, string[], Readonly<Record<string, string>>, string]>([
  ['account', account, ['create'], { npm_config_name: 'Shop' }, 'npm run account -- create --name …'],
  ['retention', retention, [], { npm_config_dry_run: 'true' }, 'npm run retention -- --dry-run\n'],
  [
    'webhook-listen',
    webhookListen,
    [],
    { npm_config_public_key: 'pk', npm_config_port: '1' },
    'npm run webhook-listen -- --port … --public-key …',
  ],
])(
  'if npm consumes an option, %s tells the user to put the option after --',
  async (name, command, args, taken, message) => {
    const environment = { ...taken, npm_lifecycle_event: name };
    const { code, stdout, stderr } = await runCommand(command, environment, ...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^npm kept --/);
    expect(stderr).toContain(message);
    expect(stderr).toContain('nothing was done');
  },
);

it('an option after -- is accepted even if npm has an option of the same name', async () => {
  const environment = { npm_config_name: 'other', npm_lifecycle_event: 'account' };
  const { stderr } = await runCommand(account, environment, 'nonsense', '--name', 'Shop');
  expect(stderr).not.toContain('npm kept');
});

// The module's later constants do not exist yet when an earlier line runs.
it('a command starts at the end of its file, when all of the file has been evaluated', () => {
  const root = join(import.meta.dirname, '../..');
  const started = globSync('{src,sandbox,tools,examples,test}/**/*.ts', { cwd: root })
    .map((file) => [file, readFileSync(join(root, file), 'utf8')] as const)
    .filter(([, text]) => /^if \(import\.meta\.main\)/m.test(text));
  expect(started.length).toBeGreaterThan(5);
  const last = /\nif \(import\.meta\.main\) (?:[^{\n]*|\{\n(?: .*\n)*\})\n$/;
  expect(started.filter(([, text]) => !last.test(text)).map(([file]) => file)).toEqual([]);
});
