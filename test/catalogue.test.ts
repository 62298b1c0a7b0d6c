import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { RoutingFactsSchema } from '../gen/payments/v1/routing_facts_pb.js';
import { CatalogueError, parseCatalogue, readCatalogue } from '../src/catalogue.ts';
import { CONNECTORS } from '../src/connectors/registry.ts';
import { type OpenedCatalogue, openCatalogue } from '../src/open-catalogue.ts';
import { createApprovalRates } from '../src/payments/approval-rates.ts';

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
    condition: type == 'CARD'
    targets:
      - connection: one
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

const open = (text: string, predecessor?: OpenedCatalogue) =>
  openCatalogue(
    parseCatalogue(text, 'test.yaml'),
    {
      connectors: CONNECTORS,
      environment: (name) => ({ ONE_KEY: 'key-7391' })[name],
      variables: { SANDBOX_URL: 'http://127.0.0.1:1/sandbox' },
      rates: createApprovalRates(),
      observer: { conditionFailed: () => {}, circuitChanged: () => {} },
    },
    predecessor,
  );

describe('a catalogue that is in order', () => {
  it('is the one that comes with the service', () => {
    const catalogue = readCatalogue(join(import.meta.dirname, '../config/sandbox-catalogue.yaml'));
    expect(catalogue.paymentMethodTypes.length).toBeGreaterThan(4);
  });

  it('opens, with its types, routes and issuers', async () => {
    const catalogue = open(SMALL);
    expect([...catalogue.types.keys()]).toEqual(['CARD']);
    const chosen = catalogue.router.choose(create(RoutingFactsSchema, { type: 'CARD' }), 'seed');
    expect(chosen?.targets.map(({ id }) => id)).toEqual(['one']);
    expect(catalogue.bins('4111111111111111')?.issuerName).toBe('Bank');
    expect([...catalogue.connections.keys()]).toEqual(['one']);
    await catalogue.close();
  });

  it('may be JSON too', () => {
    const json = JSON.stringify({
      payment_method_types: [{ type: 'CARD', category: 'CARD', workflows: ['DIRECT'] }],
      connections: [{ id: 'one', provider_id: 'ONE', connector: 'sandbox' }],
      routes: [{ id: 1, targets: [{ connection: 'one' }] }],
    });
    expect(parseCatalogue(json, 'test.json').routes).toHaveLength(1);
  });
});

describe('a catalogue that follows another', () => {
  it('takes over the connections that are defined as before, and opens the others anew', async () => {
    const before = open(SMALL);
    const same = open(change('condition: type', "condition: country == 'BR' && type"), before);
    expect(same.connections.get('one')).toBe(before.connections.get('one'));
    expect(same.health.get('one')).toBe(before.health.get('one'));
    const other = open(change('timeout_ms: 1000', 'timeout_ms: 2000'), same);
    expect(other.connections.get('one')).not.toBe(before.connections.get('one'));
    await before.close(same);
    await same.close(other);
    await other.close();
  });

  it('leaves the one before as it is when it cannot be opened', async () => {
    const before = open(SMALL);
    expect(await messageOf(() => open(change('connector: sandbox', 'connector: bank'), before))).toMatch(
      /bank/,
    );
    expect(before.health.get('one')?.isAvailable()).toBe(true);
    await before.close();
  });
});

describe('what is wrong is said with its place:', () => {
  it.each<[what: string, text: string, message: RegExp]>([
    [
      'an unknown field',
      change('    targets:', '    tagrets:'),
      /test\.yaml: routes\[0\]\.tagrets: is not known/,
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
      /routes\[0\]\.targets\[0\]\.connection: names no connection/,
    ],
    [
      'a route without targets',
      change('targets:\n      - connection: one', 'targets: []'),
      /routes\[0\]\.targets: /,
    ],
    [
      'a connection that a route has twice',
      change('- connection: one', '- connection: one\n      - connection: one'),
      /routes\[0\]\.targets\[1\]\.connection: is there twice/,
    ],
    [
      'weights that nobody looks at',
      change('- connection: one', '- { connection: one, weight: 3 }'),
      /routes\[0\]\.targets\[0\]\.weight: counts with choice SPLIT only/,
    ],
    [
      'weights that are all 0',
      change('- connection: one', '- { connection: one, weight: 0 }\n    choice: SPLIT'),
      /routes\[0\]\.targets: need a weight above 0/,
    ],
    [
      'an account that has two targets of its own',
      change(
        'bins:',
        '    accounts:\n      - { account_ids: [x, y], targets: [{ connection: one }] }\n      - { account_ids: [y], targets: [{ connection: one }] }\nbins:',
      ),
      /routes\[0\]\.accounts\[1\]\.account_ids\[0\]: is there twice/,
    ],
    [
      'an account sent to nowhere',
      change('bins:', '    accounts:\n      - { account_ids: [x], targets: [{ connection: two }] }\nbins:'),
      /routes\[0\]\.accounts\[0\]\.targets\[0\]\.connection: names no connection/,
    ],
    [
      'a route that is never reached',
      change("    condition: type == 'CARD'\n", '').replace(
        'bins:',
        '  - { id: 2, targets: [{ connection: one }] }\nbins:',
      ),
      /routes\[1\]: is never reached, for routes\[0\] takes every payment/,
    ],
    [
      'a name that no condition knows, where it stands in the file',
      change("type == 'CARD'", "type == 'CARD' && cuntry == 'BR'"),
      /routes\[0\]\.condition: .*cuntry.* at line 14, column 34/,
    ],
    [
      'a type that the catalogue does not offer',
      change("type == 'CARD'", "type == 'CRAD'"),
      /routes\[0\]\.condition: .*CRAD.* at line 14, column \d+/,
    ],
    [
      'a wrong type in a condition of several lines',
      change("type == 'CARD'", "|\n      type == 'CARD'\n      && amount == 'ten'"),
      /routes\[0\]\.condition: .* at line 16, column \d+/,
    ],
    [
      'a condition that YAML folds, by its own lines',
      change("type == 'CARD'", "\"type == 'CARD' \\\n      && cuntry == 'BR'\""),
      /routes\[0\]\.condition: .*cuntry.* at line 1, column \d+ of the condition/,
    ],
    [
      'a type that is there twice',
      change('connections:', '  - { type: CARD, category: CARD, workflows: [DIRECT] }\nconnections:'),
      /payment_method_types\[1\]\.type: is there twice/,
    ],
    [
      'a route that is there twice',
      change('bins:', '  - { id: 1, condition: "type == \'CARD\'", targets: [{ connection: one }] }\nbins:'),
      /routes\[1\]\.id: is there/,
    ],
    ['YAML that is none', change('api_key: ONE_KEY }', 'api_key: ONE_KEY'), /test\.yaml: .*at line 1[1-9]/s],
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
