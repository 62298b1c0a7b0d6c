import { execFileSync } from 'node:child_process';
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { checkOut } from './older-checkout.ts';

const root = mkdtempSync(join(tmpdir(), 'older-checkout-'));
const git = (...args: string[]) =>
  execFileSync('git', ['-C', root, '-c', 'user.name=t', '-c', 'user.email=t@t', ...args]);

/** Commits a state of a project whose only dependency is a directory within it. */
function commit(dependency: string, text: string): void {
  mkdirSync(join(root, dependency), { recursive: true });
  const files = {
    'package.json': {
      name: 'project',
      version: '1.0.0',
      dependencies: { [dependency]: `file:${dependency}` },
    },
    [`${dependency}/package.json`]: { name: dependency, version: '1.0.0' },
    'package-lock.json': {
      name: 'project',
      version: '1.0.0',
      lockfileVersion: 3,
      packages: {
        '': { name: 'project', version: '1.0.0', dependencies: { [dependency]: `file:${dependency}` } },
        [dependency]: { version: '1.0.0' },
        [`node_modules/${dependency}`]: { resolved: dependency, link: true },
      },
    },
  };
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(root, name), JSON.stringify(content));
  writeFileSync(join(root, 'text'), text);
  git('add', '.');
  git('commit', '--quiet', '--message', text);
}

beforeAll(() => {
  git('init', '--quiet');
  writeFileSync(join(root, '.gitignore'), 'node_modules\n');
  commit('old-dependency', 'first');
  commit('new-dependency', 'second');
  commit('new-dependency', 'third');
  mkdirSync(join(root, 'node_modules/new-dependency'), { recursive: true });
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

it('a commit with the same lockfile is checked out with the dependencies installed here', () => {
  const older = checkOut(root, 'HEAD~1');
  expect(readFileSync(join(older.path, 'text'), 'utf8')).toBe('second');
  expect(lstatSync(join(older.path, 'node_modules')).isSymbolicLink()).toBe(true);
  older.remove();
});

it('a commit with another lockfile gets its own dependencies, and this checkout does not change', () => {
  const older = checkOut(root, 'HEAD~2');
  expect(readFileSync(join(older.path, 'text'), 'utf8')).toBe('first');
  const manifest = join(older.path, 'node_modules/old-dependency/package.json');
  expect(JSON.parse(readFileSync(manifest, 'utf8')).name).toBe('old-dependency');
  older.remove();
  expect(() => lstatSync(older.path)).toThrow();
  expect(git('status', '--porcelain').toString()).toBe('');
  expect(lstatSync(join(root, 'node_modules/new-dependency')).isDirectory()).toBe(true);
});

it('a commit whose dependencies cannot be installed leaves no checkout behind', () => {
  writeFileSync(join(root, 'package-lock.json'), '{');
  git('commit', '--quiet', '--all', '--message', 'broken');
  git('tag', 'broken');
  git('reset', '--quiet', '--hard', 'HEAD~1');
  expect(() => checkOut(root, 'broken')).toThrow();
  expect(git('worktree', 'list').toString().trim().split('\n')).toHaveLength(1);
});
