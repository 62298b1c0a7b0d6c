import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { holdLock } from '#src/postgres/process-lock.ts';

const MODULE = JSON.stringify(join(import.meta.dirname, '../../src/postgres/process-lock.ts'));

let directory: string;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'process-lock-'));
  path = join(directory, 'service.lock');
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

it('a lock excludes others, in this process and in another, until its release', () => {
  const release = holdLock(path);
  expect(release).toBeDefined();
  expect(holdLock(path)).toBeUndefined();
  expect(takenByAnotherProcess()).toBe(false);
  release?.();
  expect(takenByAnotherProcess()).toBe(true);
});

it('a lock still excludes others after a refused attempt and a garbage collection', () => {
  const release = holdLock(path);
  holdLock(path);
  execGarbageCollection();
  expect(takenByAnotherProcess()).toBe(false);
  release?.();
});

it('a lock is free as soon as its holder is killed', async () => {
  const script = `const { holdLock } = await import(${MODULE}); holdLock(${JSON.stringify(path)});
    console.log('held'); setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  expect(holdLock(path)).toBeUndefined();
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  const release = holdLock(path);
  expect(release).toBeDefined();
  release?.();
});

it('a lock leaves one empty file that only its owner can read', () => {
  const release = holdLock(path);
  expect(readdirSync(directory)).toEqual(['service.lock']);
  expect(statSync(path).size).toBe(0);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  release?.();
});

it('locking throws if the file cannot be created', () => {
  expect(() => holdLock(join(directory, 'missing', 'service.lock'))).toThrow(/ENOENT/);
});

function takenByAnotherProcess(): boolean {
  const script = `const { holdLock } = await import(${MODULE});
    process.stdout.write(String(holdLock(${JSON.stringify(path)}) !== undefined));`;
  return (
    execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }) === 'true'
  );
}

/** Fills the young generation several times, which collects unreferenced objects. */
function execGarbageCollection(): void {
  for (let round = 0; round < 200; round++) new Array(100_000).fill(round);
}
