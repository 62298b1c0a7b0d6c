import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { mapBreaches } from './support/architecture-map.ts';
import { breaches } from './support/house-rules.ts';

const ROOT = join(import.meta.dirname, '..');

it('the whole repository follows the house rules', () => {
  const files = globSync(['{src,sandbox,tools,examples,test}/**/*.ts'], { cwd: ROOT });
  expect(files.length).toBeGreaterThan(100);
  expect(breaches(new Map(files.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')])))).toEqual([]);
});

it('the map in ARCHITECTURE.md has a row for every room and names only files that exist', () => {
  const architecture = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8');
  const files = globSync('src/**/*.ts', { cwd: ROOT });
  expect(mapBreaches(architecture, files)).toEqual([]);
  expect(architecture.length).toBeLessThanOrEqual(15_000);
});

it('rooms that the map omits or repeats, and files that it invents, are reported', () => {
  const map =
    '| `/` | What it is. | main |\n| `api/` | What it is. | rest · gone |\n| `api/` | What it is. | rpc |';
  const files = ['main', 'api/rest', 'api/rpc', 'api/one/a', 'two/a'].map((name) => `src/${name}.ts`);
  expect(mapBreaches(map, files)).toEqual([
    'src/two/: the map in ARCHITECTURE.md has no row for it',
    'src/api/: the map in ARCHITECTURE.md has two rows for it',
    'src/api/gone.ts: the map in ARCHITECTURE.md names it, but it does not exist',
  ]);
});

describe('the house rules', () => {
  const brokenBy = (files: Record<string, string>) => breaches(new Map(Object.entries(files)));

  it.each([
    ['the part below', 'src/api/a.ts', "import { b } from '../payments/b.ts';"],
    ['a file of the same part', 'src/api/a.ts', "import { b } from './b.ts';"],
    ['the port into a provider', 'src/connectors/one/a.ts', "import type { C } from '../connector.ts';"],
    ['a file of the same provider', 'src/connectors/one/a.ts', "import { b } from './b.ts';"],
    ['a provider into the registry', 'src/connectors/registry.ts', "import { b } from './one/b.ts';"],
    ['money into the sandbox', 'sandbox/a.ts', "import { b } from '#src/money.ts';"],
    ['the part below through a subpath', 'src/api/a.ts', "import { b } from '#src/payments/b.ts';"],
    ['generated code', 'src/money.ts', "import { b } from '../gen/b_pb.js';"],
    [
      'anything that a comment names',
      'src/money.ts',
      "/** import { b } from './server.ts' */\n// from './main.ts'",
    ],
    ['packages', 'src/money.ts', "import { b } from 'server';"],
    [
      'outcomes into the model',
      'src/payments/model/a.ts',
      "import type { B } from '#src/connectors/port/outcome.ts';",
    ],
    ['the model into payments', 'src/payments/a.ts', "import { b } from './model/b.ts';"],
    ['the model into the store', 'src/store/a.ts', "import type { B } from '#src/payments/model/b.ts';"],
  ])('the house rules allow importing %s', (_what, path, text) => {
    expect(brokenBy({ [path]: text })).toEqual([]);
  });

  it.each([
    ['the part above', 'src/payments/a.ts', "import { b } from '../api/b.ts';"],
    [
      'a private file of another room',
      'src/api/a.ts',
      "import { b } from '#src/payments/create/prepare-payment.ts';",
    ],
    ['the part above through a subpath', 'src/payments/a.ts', "import { b } from '#src/api/b.ts';"],
    ['a type of the part above', 'src/payments/a.ts', "import type { B } from '../api/b.ts';"],
    ['the part above at run time', 'src/payments/a.ts', "const b = await import('../api/b.ts');"],
    [
      'the part above with a statement of several lines',
      'src/payments/a.ts',
      "import {\n  b,\n} from '../api/b.ts';",
    ],
    ['the part above for its side effects', 'src/payments/a.ts', "import '../api/b.ts';"],
    ['a neighbor', 'src/store/a.ts', "import { b } from '../vault/b.ts';"],
    [
      'connectors into the port',
      'src/connectors/port/connector.ts',
      "import { b } from '../kit/http-client.ts';",
    ],
    ['another provider', 'src/connectors/one/a.ts', "import { b } from '../two/b.ts';"],
    ['the store into a connector', 'src/connectors/one/a.ts', "import { b } from '../../store/b.ts';"],
    ['our messages into the sandbox', 'sandbox/a.ts', "import { b } from '../../gen/b_pb.js';"],
    ['secrets into the sandbox', 'sandbox/a.ts', "import { b } from '../secret.ts';"],
    ['the store into the model', 'src/payments/model/a.ts', "import type { B } from '#src/store/b.ts';"],
    ['the clock into the model', 'src/payments/model/a.ts', "import { b } from '#src/clock.ts';"],
    ['other files of payments into the model', 'src/payments/model/a.ts', "import { b } from '../b.ts';"],
    ['the process', 'src/server/server.ts', "import { b } from '../main.ts';"],
    ['tests', 'src/server/server.ts', "import { b } from '../../test/b.ts';"],
  ])('the house rules forbid importing %s', (_what, path, text) => {
    expect(brokenBy({ [path]: text })).toEqual([expect.stringMatching(new RegExp(`^${path}: .*import`))]);
  });

  it('the house rules require a place in the order for every part', () => {
    expect(brokenBy({ 'src/new.ts': '' })).toEqual([expect.stringContaining('src/new.ts: has no place')]);
  });

  it('the house rules forbid import cycles and report their path', () => {
    const files = {
      'src/api/a.ts': "import { b } from './b.ts';",
      'src/api/b.ts': "import type { C } from './c.ts';",
      'src/api/c.ts': "import { b } from './b.ts';",
    };
    expect(brokenBy(files)).toEqual(['src/api/b.ts → src/api/c.ts → src/api/b.ts']);
  });

  it.each([
    ['process.env', 'src/server/server.ts', 'const a = process.env.A;'],
    ['undici', 'src/connectors/one/connector.ts', "import { request } from 'undici';"],
    ['fetch', 'src/payments/a.ts', "await fetch('http://a');"],
    ['an HTTP request of Node', 'src/payments/a.ts', 'https.request(url);'],
    ["Node's HTTP server", 'src/server/server.ts', "import http from 'node:http';"],
    ['OpenTelemetry', 'src/observe/observe.ts', "import { trace } from '@opentelemetry/api';"],
    ['a query', 'src/payments/a.ts', 'const a = `SELECT id\n FROM payment`;'],
    ['an update', 'sandbox/wallets.ts', "const a = 'UPDATE payment SET id = 1';"],
    ['the driver', 'src/server/server.ts', "import pg from 'pg';"],
    ['revealing a secret', 'src/payments/a.ts', 'const a = card.number.reveal();'],
    ['the clock of the process', 'src/payments/a.ts', 'const a = Date.now() - sentAtMs;'],
    ['console', 'src/server/server.ts', "console.log('a');"],
    ['an exit', 'src/server/server.ts', 'process.exit(1);'],
    ['a barrel', 'src/api/a.ts', "export * from './b.ts';"],
    ['a named barrel', 'src/api/a.ts', "export { b } from './b.ts';"],
  ])('the house rules allow %s only in its place', (_what, path, text) => {
    expect(brokenBy({ [path]: text })).toEqual([expect.stringContaining(', which belongs in')]);
  });

  it.each([
    ['use randomness', 'const a = Math.random();'],
    ['read a clock', 'const a = timestampNow();'],
    ['wait', 'const a = await b;'],
  ])('the house rules forbid the model to %s', (_what, text) => {
    expect(brokenBy({ 'src/payments/model/a.ts': text })).toEqual([
      expect.stringContaining('pass the value to the model'),
    ]);
    expect(brokenBy({ 'src/payments/a.ts': text })).toEqual([]);
  });

  it('the house rules accept code that is in its proper place', () => {
    const files = {
      'src/config.ts': 'process.env',
      'src/connectors/kit/http-client.ts': "import { Pool } from 'undici';",
      'src/connectors/one/to-provider.ts': 'key.reveal()',
      'src/store/a.ts': "'DELETE FROM a'",
      'sandbox/ledger.ts': "'INSERT INTO a'",
      'src/main.ts': 'console.error(); process.exit(1)',
      'src/payments/a.ts': 'Object.fromEntries([]); // process.env, fetch( and SELECT a FROM b',
      'src/listener/listener.ts': "import http from 'node:http';\nimport type { Socket } from 'node:net';",
      'src/api/a.ts': "import type { IncomingHttpHeaders } from 'node:http';",
    };
    expect(brokenBy(files)).toEqual([]);
  });

  it.each([
    'export function a() {}',
    'export async function a() {}',
    'export const a = 1;',
    'export type A = 1;',
    'export class A {}',
    '/** A comment of something else. */\n\nexport const a = 1;',
    '// No JSDoc.\nexport const a = 1;',
  ])('the house rules require a JSDoc comment on every export: %j', (text) => {
    expect(brokenBy({ 'src/api/a.ts': text })).toEqual([
      expect.stringMatching(/exports [aA] without a JSDoc comment/),
    ]);
    expect(brokenBy({ 'test/a.test.ts': text })).toEqual([]);
    expect(brokenBy({ 'src/api/a.ts': `/** A thing of this name. */\n${text.split('\n').at(-1)}` })).toEqual(
      [],
    );
  });

  it.each([
    "new ServiceError('NOT_FOUND', 'There is nothing here');",
    "new ServiceError(\n  'NOT_FOUND',\n  `This path allows no more`,\n);",
    "new ServiceError('NOT_FOUND', 'there is nothing here.');",
    "const message = 'Another operation is open; nothing was sent';",
    'const message = "the payment\'s provider does not offer it.";',
  ])('the house rules require refusals in lower case without a full stop: %j', (text) => {
    expect(brokenBy({ 'src/payments/a.ts': text })).toEqual([
      expect.stringContaining('a message starts with a capital or ends'),
    ]);
    expect(brokenBy({ 'test/a.test.ts': text })).toEqual([]);
  });

  it('the house rules allow a refusal that begins with a name in capitals', () => {
    const text = "new ServiceError('INVALID_PARAMETERS', 'DIRECT is not offered; try REDIRECT', { cause });";
    expect(brokenBy({ 'src/payments/a.ts': text })).toEqual([]);
  });

  it.each(['What it is', 'How many', 'Whether it holds', 'Where it lies', 'Is told of it'])(
    'the house rules forbid doc comments that open with %j',
    (opening) => {
      for (const text of [`/** ${opening}. */`, `/**\n * ${opening}.\n */`]) {
        expect(brokenBy({ 'src/api/a.ts': text, 'test/a.ts': text })).toEqual([
          expect.stringContaining('src/api/a.ts: a doc comment opens with'),
          expect.stringContaining('test/a.ts: a doc comment opens with'),
        ]);
      }
      expect(brokenBy({ 'src/api/a.ts': `// ${opening}.\n/** Tells. ${opening}. */` })).toEqual([]);
    },
  );

  it.each([
    '// The gateway answers.',
    'const manager = 1;',
    'type TakenAttempt = 1;',
    'let held = 1;',
    'function place() {}',
  ])('the house rules forbid words without a clear meaning: %j', (text) => {
    expect(brokenBy({ 'src/api/a.ts': text })).toEqual([expect.stringMatching(/: (says|declares) /)]);
    expect(brokenBy({ 'src/api/a.ts': '// It is held in place. Parts are taken.' })).toEqual([]);
  });

  it('the house rules limit files to 500 lines, including tests', () => {
    expect(brokenBy({ 'src/api/a.ts': 'x\n'.repeat(500), 'test/a.test.ts': 'x\n'.repeat(500) })).toEqual([]);
    expect(brokenBy({ 'src/api/a.ts': 'x\n'.repeat(501), 'test/a.test.ts': 'x\n'.repeat(501) })).toEqual([
      'src/api/a.ts: has 501 lines: split it by idea, at most 500 a file',
      'test/a.test.ts: has 501 lines: split it by idea, at most 500 a file',
    ]);
  });

  it.each([
    'src/api/utils.ts',
    'src/api/card-helper.ts',
    'src/common/a.ts',
    'test/types.ts',
    'src/api/types.d.ts',
  ])('the house rules require meaningful file names, unlike %s', (path) => {
    expect(brokenBy({ [path]: '' })).toContain(
      `${path}: has a name that says nothing: name it for its main export`,
    );
  });

  it('the house rules require file names in kebab-case', () => {
    expect(brokenBy({ 'src/api/wireJson.ts': '' })).toEqual(['src/api/wireJson.ts: is not in kebab-case']);
  });
});
