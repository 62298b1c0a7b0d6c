import { pbkdf2 } from 'node:crypto';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it, vi } from 'vitest';
import { parseCatalogue } from '#src/catalogue/read-catalogue.ts';
import { fileStamp, startReloading } from '#src/catalogue/reload-catalogue.ts';

const CATALOGUE = readFileSync(
  join(import.meta.dirname, '../../config/sandbox-catalogue.yaml'),
  'utf8',
).replaceAll(/\$SANDBOX_URL/g, 'http://127.0.0.1:1');
const directory = mkdtempSync(join(tmpdir(), 'reload-'));
const file = join(directory, 'catalogue.yaml');

beforeEach(() => writeFileSync(file, CATALOGUE));
afterEach(() => {
  vi.useRealTimers();
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Replaces the whole file at once by renaming. */
function replaceFile(text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

const renamed = (name: string) => CATALOGUE.replace('name: Cards elsewhere', `name: ${name}`);

it('a change of the catalogue right after startup takes effect', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const readAt = fileStamp(file);
  // Keeps the thread pool busy, so that a background read of the file's state would see the changed file.
  for (let i = 0; i < 16; i++) pbkdf2('', '', 300_000, 32, 'sha256', () => {});
  const replaced: string[] = [];
  const stop = startReloading({
    file,
    readAt,
    replace: ({ routes }) => replaced.push(...routes.map(({ name }) => name)),
    reloaded: () => {},
  });
  try {
    replaceFile(renamed('Changed at once'));
    await vi.advanceTimersByTimeAsync(2_500);
    expect(replaced).toContain('Changed at once');
  } finally {
    stop();
  }
});

it('a partially written file does not take effect, even if it is a valid catalogue', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const replaced: (string | undefined)[] = [];
  const failures: unknown[] = [];
  const stop = startReloading({
    file,
    readAt: fileStamp(file),
    replace: ({ routes }) => replaced.push(routes.at(-1)?.name),
    reloaded: (failure) => failures.push(failure),
  });
  const text = renamed('The whole file');
  writeFileSync(file, text.slice(0, text.indexOf('  - id: 3\n')));
  await vi.advanceTimersByTimeAsync(1_500);
  writeFileSync(file, text);
  await vi.advanceTimersByTimeAsync(1_500);
  expect(replaced).toEqual([]);
  await vi.advanceTimersByTimeAsync(500);
  expect([replaced, failures]).toEqual([
    [parseCatalogue(text, 'catalogue').routes.at(-1)?.name],
    [undefined],
  ]);
  stop();
});
