import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { MAGIC_CARDS } from '#sandbox/magic-cards.ts';
import { run } from '#src/commands/retention.ts';
import { readConfig } from '#src/config.ts';
import { createMetrics } from '#src/observe/metrics.ts';
import { REASONS } from '#src/service-error.ts';
import { outputOf } from './support/run-command.ts';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** Returns the cells of every table row whose first cell is a name in code, keyed by that name. */
function rows(path: string): Map<string, string[]> {
  const cells = read(path)
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.slice(1, -1).split('|'))
    .map(([name = '', ...others]) => [name.trim().slice(1, -1), others.map((one) => one.trim())] as const);
  return new Map(cells);
}

/** Variables of the sandbox provider, which the server reads like a connection's secrets. */
const READ_BY_NAME = ['SANDBOX_API_KEY', 'SANDBOX_NOTIFICATION_SECRET'];

it('docs/configuration.md lists every variable that the configuration reads, and no other', () => {
  const names = new Set(READ_BY_NAME);
  const recorder = new Proxy({}, { get: (_, name) => void names.add(String(name)) });
  readConfig(recorder);
  expect([...rows('docs/configuration.md').keys()].sort()).toEqual([...names].sort());
});

it('docs/configuration.md states the defaults that the service uses', () => {
  const { environment: _, ...defaults } = readConfig({});
  const documented = [...rows('docs/configuration.md')].flatMap(([name, [text = '']]) => {
    const [, value] = /^`([^`]+)`$/.exec(text) ?? [];
    return value === undefined ? [] : [[name, value] as const];
  });
  expect(documented.length).toBeGreaterThan(15);
  for (const [name, value] of documented) {
    const { environment: _, ...config } = readConfig({ [name]: value });
    expect([name, config]).toEqual([name, defaults]);
  }
});

it('docs/errors.md lists every reason for a refusal, with its HTTP status and RPC code', () => {
  const documented = [...rows('docs/errors.md')].map(([reason, cells]) => [reason, ...cells.slice(0, 2)]);
  const codeName = (rpc: string) => rpc.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
  const actual = Object.entries(REASONS).map(([reason, { status, rpc }]) => [
    reason,
    String(status),
    codeName(rpc),
  ]);
  expect(documented.sort()).toEqual(actual.sort());
});

it('docs/operating.md has the same minimum days for every retention rule as the command’s help', async () => {
  const help = await outputOf(run, {}, '--help');
  const fewest = [...help.matchAll(/^ {2}(--\w+) <days>.*\(minimum (\d+)/gm)].map(([, rule, days]) => [
    rule,
    days,
  ]);
  expect(fewest).toHaveLength(6);
  const documented = rows('docs/operating.md');
  for (const [rule = '', days] of fewest) {
    expect([rule, documented.get(rule)?.[0]]).toEqual([rule, days === '1' ? '1 day' : `${days} days`]);
  }
});

it('docs/sandbox.md lists every card number with a meaning', () => {
  const documented = [...read('docs/sandbox.md').matchAll(/^\| (\d{16}) \|/gm)].map(([, number]) => number);
  expect(documented.sort()).toEqual(MAGIC_CARDS.map(({ number }) => number).sort());
});

it('every metric that docs/operating.md names exists', () => {
  const [, section = ''] = /^## Metrics to watch$(.*?)^## /ms.exec(read('docs/operating.md')) ?? [];
  const names = [...section.matchAll(/`([a-z]+(?:_[a-z]+)+)(?:\{[^`]*)?`/g)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(10);
  const known = createMetrics()
    .registry.getMetricsAsArray()
    .map(({ name }) => name);
  // Only the parent process of workers has this metric.
  known.push('worker_ends_total');
  expect(names.filter((name) => !known.includes(name))).toEqual([]);
});

/** Returns the anchors that GitHub makes from headings. */
function anchors(markdown: string): Set<string> {
  const headings = markdown.matchAll(/^#+ (.+)$/gm);
  const anchorOf = (heading: string) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-');
  return new Set([...headings].map(([, heading = '']) => anchorOf(heading)));
}

it('every link between documents leads to an existing file and heading', () => {
  const broken = globSync(['*.md', '{docs,src,clients,examples}/**/*.md'], { cwd: ROOT }).flatMap(
    (document) => {
      const links = read(document).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g);
      return [...links].flatMap(([link, path = '', anchor]) => {
        const target = path === '' ? join(ROOT, document) : resolve(ROOT, dirname(document), path);
        const isThere =
          existsSync(target) && (anchor === undefined || anchors(readFileSync(target, 'utf8')).has(anchor));
        return isThere ? [] : [`${document}: ${link}`];
      });
    },
  );
  expect(broken).toEqual([]);
});

it('every example payment in the documents and pages has a different idempotency key', () => {
  const documents = globSync(['*.md', '{docs,clients}/**/*.md', 'src/server/mount-pages.ts'], { cwd: ROOT });
  const keys = documents.flatMap((path) =>
    [...read(path).matchAll(/(?:x-idempotency-key: |idempotencyKey: ')([a-z]+-[\w]+)'/g)].map(
      ([, key]) => key,
    ),
  );
  keys.push(JSON.parse(read('gen/openapi.json')).components.parameters.IdempotencyKey.example);
  expect(keys).toContain('order-1001');
  expect(keys.filter((key, i) => keys.indexOf(key) !== i)).toEqual([]);
});

it('README.md has fewer than 900 words', () => {
  expect(read('README.md').split(/\s+/).length).toBeLessThan(900);
});

/** Paths that no rpc serves. */
const NOT_IN_CONTRACT = [
  '/v1/payments/{payment_id}/return',
  '/v1/payments/{payment_id}/return/canceled',
  '/v1/providers/{connection}/notifications',
];

it('the docs name the parameters of paths as the contract does', () => {
  const { paths } = JSON.parse(read('gen/openapi.json')) as { paths: Record<string, unknown> };
  const known = [...Object.keys(paths), ...NOT_IN_CONTRACT];
  const pages = ['README.md', 'SECURITY.md', ...globSync('docs/**/*.md', { cwd: ROOT })];
  const unknown = pages.flatMap((page) =>
    [...read(page).matchAll(/\/v1\/[\w/{}-]*\{[\w/{}-]*[\w}]/g)]
      .map(([path]) => path)
      .filter((path) => !known.some((one) => one === path || one.startsWith(`${path}/`)))
      .map((path) => `${page}: ${path}`),
  );
  expect(unknown).toEqual([]);
});
