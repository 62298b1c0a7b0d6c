import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CatalogueError, openCatalogue, parseCatalogue, readCatalogue } from '../src/catalogue.ts';
import { CONNECTORS } from '../src/connectors/registry.ts';

const SMALL = `
payment_method_types:
  - type: CARD
    category: CARD
    workflows: [DIRECT]
connections:
  - id: one
    provider_id: ONE
    connector: sandbox
    settings: { base_url: $SANDBOX_URL, timeout_ms: 1000 }
    secrets_from_environment: { api_key: ONE_KEY }
routes:
  - id: 1
    types: [CARD]
    connection: one
bins:
  - prefix: '4111'
    issuer_name: Bank
`;

const change = (from: string, to: string) => {
  expect(SMALL).toContain(from);
  return SMALL.replace(from, to);
};

/** The message of the CatalogueError with which something is refused. */
async function messageOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    expect(error).toBeInstanceOf(CatalogueError);
    return (error as Error).message;
  }
  throw new Error('it was not refused');
}

const open = (text: string, environment: Record<string, string> = { ONE_KEY: 'key-7391' }) =>
  openCatalogue(parseCatalogue(text, 'test.yaml'), {
    connectors: CONNECTORS,
    environment: (name) => environment[name],
    variables: { SANDBOX_URL: 'http://127.0.0.1:1/sandbox' },
  });

describe('a catalogue that is in order', () => {
  it('is the one that comes with the service', () => {
    const catalogue = readCatalogue(join(import.meta.dirname, '../config/sandbox-catalogue.yaml'));
    expect(catalogue.paymentMethodTypes.length).toBeGreaterThan(4);
  });

  it('opens, with its types, routes and issuers', async () => {
    const catalogue = open(SMALL);
    expect([...catalogue.types.keys()]).toEqual(['CARD']);
    expect(catalogue.route({ type: 'CARD', country: 'US', currency: 'USD' })?.connection.id).toBe('one');
    expect(catalogue.bins('4111111111111111')?.issuerName).toBe('Bank');
    expect([...catalogue.connections.keys()]).toEqual(['one']);
    await catalogue.close();
  });

  it('may be JSON too', () => {
    const json = JSON.stringify({
      payment_method_types: [{ type: 'CARD', category: 'CARD', workflows: ['DIRECT'] }],
      connections: [{ id: 'one', provider_id: 'ONE', connector: 'sandbox' }],
      routes: [{ id: 1, connection: 'one' }],
    });
    expect(parseCatalogue(json, 'test.json').routes).toHaveLength(1);
  });
});

describe('what is wrong is said with its place:', () => {
  it.each<[what: string, text: string, message: RegExp]>([
    [
      'an unknown field',
      change('    types: [CARD]', '    typs: [CARD]'),
      /test\.yaml: routes\[0\]\.typs: is not known/,
    ],
    ['an unknown field at the top', `${SMALL}\nrules: []`, /test\.yaml: rules: is not known/],
    [
      'an unknown enum value',
      change('category: CARD', 'category: CASH'),
      /payment_method_types\[0\]\.category: must be one of CARD, WALLET/,
    ],
    [
      'an unknown workflow',
      change('[DIRECT]', '[DIRECT, SIDEWAYS]'),
      /payment_method_types\[0\]\.workflows\[1\]: must be one of/,
    ],
    ['a wrong type', change('  - id: 1\n', '  - id: first\n'), /routes\[0\]\.id: must be an integer/],
    ['a number that YAML made of text', change("'4111'", '4111'), /bins\[0\]\.prefix: must be a string/],
    [
      'a missing field',
      change('    provider_id: ONE\n', ''),
      /connections\[0\]\.provider_id: value is required/,
    ],
    [
      'an empty list',
      change('workflows: [DIRECT]', 'workflows: []'),
      /payment_method_types\[0\]\.workflows: /,
    ],
    ['a bad form', change('provider_id: ONE', 'provider_id: one'), /connections\[0\]\.provider_id: /],
    [
      'a route to nowhere',
      change('connection: one', 'connection: two'),
      /routes\[0\]\.connection: names no connection/,
    ],
    [
      'a route of an unknown type',
      change('types: [CARD]', 'types: [CARD, PIX]'),
      /routes\[0\]\.types\[1\]: names no/,
    ],
    [
      'a type that is there twice',
      change('connections:', '  - { type: CARD, category: CARD, workflows: [DIRECT] }\nconnections:'),
      /payment_method_types\[1\]\.type: is there twice/,
    ],
    [
      'a route that is there twice',
      change('bins:', '  - { id: 1, connection: one }\nbins:'),
      /routes\[1\]\.id: is there/,
    ],
    ['YAML that is none', change('    types: [CARD]', '    types: [CARD'), /test\.yaml: .*at line 1[4-9]/s],
    ['a name that YAML has twice', change('    workflows', '    type: X\n    workflows'), /line 5/],
    ['no object', '- a\n- b', /test\.yaml: .*object/],
    ['nothing', '', /test\.yaml: .*object/],
  ])('%s', async (_what, text, message) => {
    expect(await messageOf(() => parseCatalogue(text, 'test.yaml'))).toMatch(message);
  });

  it.each<[what: string, text: string, message: RegExp]>([
    [
      'an unknown connector',
      change('connector: sandbox', 'connector: bank'),
      /connection one: there is no connector "bank"/,
    ],
    [
      'a secret that is not set',
      change('ONE_KEY', 'TWO_KEY'),
      /connection one: the environment variable TWO_KEY is not set/,
    ],
    ['an unknown setting', change('timeout_ms', 'time_out'), /connection one: .*time_out/],
    [
      'a setting out of range',
      change('timeout_ms: 1000', 'timeout_ms: 1'),
      /connection one: timeout_ms must be/,
    ],
    ['an address that is none', change('$SANDBOX_URL', '$NOWHERE'), /connection one: base_url must be/],
    [
      'a secret that is missing',
      change('{ api_key: ONE_KEY }', '{}'),
      /connection one: the secret api_key must be/,
    ],
  ])('%s', async (_what, text, message) => {
    const said = await messageOf(() => open(text));
    expect(said).toMatch(message);
    expect(said).not.toContain('key-7391');
  });

  it('a file that is not there', async () => {
    expect(await messageOf(() => readCatalogue('/nowhere/catalogue.yaml'))).toBe(
      '/nowhere/catalogue.yaml cannot be read (ENOENT)',
    );
  });

  it('a file whose aliases would grow without end', async () => {
    const bomb = ['a: &a [x, x, x, x, x, x, x, x, x]'];
    for (let i = 0; i < 8; i++) {
      const [name, last] = [String.fromCharCode(98 + i), String.fromCharCode(97 + i)];
      bomb.push(`${name}: &${name} [${Array.from({ length: 9 }, () => `*${last}`).join(', ')}]`);
    }
    expect(await messageOf(() => parseCatalogue(bomb.join('\n'), 'test.yaml'))).toMatch(/^test\.yaml: /);
  });
});
