import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MIGRATIONS } from '#src/store/engine/migrate.ts';

/** SHA-256 of the migrations that databases have run. A database that has run one refuses any other version of it. */
const FROZEN: Readonly<Record<string, string>> = {
  '0001_baseline.sql': 'b77f13319f854d360dbefbff1b0672eee7db2bd7ee3d23dd9406f53cd95036d4',
  '0002_payment_by_method.sql': '7ecef8f8f61068ca9bdef6154fc03737d9da0b32744bae5bb0a14b0991697b40',
};

it.each(Object.entries(FROZEN))('the migration %s is never edited, comments included', (name, sha256) => {
  const text = readFileSync(join(MIGRATIONS, name));
  const advice = `${name} is frozen: put the change into a new migration that the previous release tolerates`;
  expect(createHash('sha256').update(text).digest('hex'), advice).toBe(sha256);
});

it('migrations are numbered one after another, each number once', () => {
  const numbers = readdirSync(MIGRATIONS)
    .sort()
    .map((name) => Number(name.slice(0, 4)));
  expect(numbers).toEqual(numbers.map((_, i) => i + 1));
});
