import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeDirectories, ROOT_HOME, resolveDataDir } from '#src/postgres/data-dir.ts';
import { startEmbeddedPostgres } from '#src/postgres/embedded-postgres.ts';

const isRoot = process.geteuid?.() === 0;
let home: string;
let open: string;
let secluded: string;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'data-dir-'));
  chmodSync(home, 0o711);
  open = join(home, 'open');
  secluded = join(home, 'private', 'app');
  for (const checkout of [open, secluded]) mkdirSync(checkout, { recursive: true, mode: 0o755 });
  chmodSync(open, 0o755);
  chmodSync(join(home, 'private'), 0o700);
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

it('the default data directory is named data, in the checkout, and is not created by resolving it', () => {
  expect(resolveDataDir({ explicit: undefined, checkoutDir: open })).toBe(join(open, 'data'));
  expect(existsSync(join(open, 'data'))).toBe(false);
});

it('an explicit data directory is made absolute', () => {
  expect(resolveDataDir({ explicit: join(open, 'x', '..', 'y'), checkoutDir: secluded })).toBe(
    join(open, 'y'),
  );
});

it.each(['file', 'file/below'])('a data directory is refused if a file is in its path: %s', (name) => {
  writeFileSync(join(open, 'file'), '');
  expect(() => resolveDataDir({ explicit: join(open, name), checkoutDir: open })).toThrow(
    `The data directory ${join(open, name)} cannot be used: ${join(open, 'file')} is not a directory. Set DATA_DIR`,
  );
});

it('a data directory that cannot hold PostgreSQL’s data is refused with a message that names it', async () => {
  const dataDir = join(open, 'mine');
  mkdirSync(dataDir);
  symlinkSync('nowhere', join(dataDir, 'postgres'));
  await expect(startEmbeddedPostgres({ dataDir, log: pino({ level: 'silent' }) })).rejects.toThrow(
    /^The data directory .*mine cannot be used: ENOTDIR: .* Set DATA_DIR to /,
  );
});

it('makeDirectories creates missing parents with the given mode, and returns the first one that it created', () => {
  const directory = join(open, 'made', 'of', 'three');
  expect(makeDirectories(directory, 0o700)).toBe(join(open, 'made'));
  const modes = ['made', 'made/of', 'made/of/three'].map((name) => statSync(join(open, name)).mode & 0o777);
  expect(modes).toEqual([0o700, 0o700, 0o700]);
  expect(makeDirectories(directory, 0o755)).toBeUndefined();
});

it.runIf(existsSync('/proc/self'))(
  'makeDirectories throws where nothing can be created, instead of searching forever',
  () => {
    expect(() => makeDirectories('/proc/none/below', 0o700)).toThrow(/^ENOENT: .* mkdir '\/proc\/none'$/);
  },
);

it.skipIf(isRoot)('an ordinary user’s data directory may be in a private checkout', () => {
  expect(resolveDataDir({ explicit: undefined, checkoutDir: secluded })).toBe(join(secluded, 'data'));
});

describe.runIf(isRoot)('the data directory as root', () => {
  it('a root-owned private checkout has its own data directory below /var/lib', () => {
    const first = resolveDataDir({ explicit: undefined, checkoutDir: secluded });
    expect(first).toMatch(new RegExp(`^${ROOT_HOME}/app-[0-9a-f]{12}$`));
    expect(resolveDataDir({ explicit: undefined, checkoutDir: secluded })).toBe(first);
    const clone = join(home, 'private', 'clone', 'app');
    mkdirSync(clone, { recursive: true });
    expect(resolveDataDir({ explicit: undefined, checkoutDir: clone })).not.toBe(first);
  });

  it('a private data directory in an open checkout moves below /var/lib', () => {
    mkdirSync(join(open, 'data'), { mode: 0o700 });
    expect(resolveDataDir({ explicit: undefined, checkoutDir: open })).toMatch(/^\/var\/lib\//);
    rmSync(join(open, 'data'), { recursive: true });
  });

  it('an explicit data directory that PostgreSQL’s user cannot reach is refused with advice', () => {
    const refused = () => resolveDataDir({ explicit: join(secluded, 'mine'), checkoutDir: open });
    expect(refused).toThrow(/mine cannot be used.*"postgres".*cannot reach it.*DATABASE_URL/s);
  });
});
