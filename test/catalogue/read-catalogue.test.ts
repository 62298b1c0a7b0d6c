import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseCatalogue, readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { conditionOf, createRouter } from '#src/routing/router.ts';
import { change, messageOf, SMALL } from '../support/small-catalogue.ts';

describe('a valid catalogue', () => {
  it('the catalogue that comes with the service is valid', () => {
    const catalogue = readCatalogue(join(import.meta.dirname, '../../config/sandbox-catalogue.yaml'));
    expect(catalogue.paymentMethodTypes.length).toBeGreaterThan(4);
  });

  it('a catalogue may be JSON', () => {
    const json = JSON.stringify({
      payment_method_types: [{ type: 'CARD', category: 'CARD', workflows: ['DIRECT'] }],
      connections: [{ id: 'one', provider_id: 'ONE', connector: 'sandbox' }],
      routes: [{ id: 1, targets: [{ connection: 'one' }] }],
    });
    expect(parseCatalogue(json, 'test.json').routes).toHaveLength(1);
  });

  it('the conditions of a catalogue are compiled once, when it is checked', () => {
    const catalogue = parseCatalogue(SMALL, 'test.yaml');
    const [route] = catalogue.routes;
    if (!route?.condition.includes("type == 'CARD'")) throw new Error('the catalogue has another condition');
    // Compiling the condition now would fail, because the type is unknown.
    const compiled = conditionOf(route, new Map([['type', new Set<string>()]]));
    const router = createRouter(catalogue, { isAvailable: () => true, approvalRate: () => 1 });
    expect(router.routes[0]?.condition).toBe(compiled);
  });
});

describe('an invalid catalogue', () => {
  it.each<[what: string, text: string, message: RegExp]>([
    [
      'an unknown field',
      change('    targets:', '    tagrets:'),
      /test\.yaml: routes\[0\]\.tagrets: is not a known field/,
    ],
    ['an unknown top-level field', `${SMALL}\nrules: []`, /test\.yaml: rules: is not a known field/],
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
    [
      'cards that are paid on a page',
      change('[DIRECT]', '[DIRECT, REDIRECT]'),
      /payment_method_types\[0\]\.workflows: must be \[DIRECT\] for the category CARD/,
    ],
    ...['[DIRECT]', '[DIRECT, REDIRECT]', '[REDIRECT, REDIRECT]'].map(
      (workflows): [string, string, RegExp] => [
        `a ticket with the workflows ${workflows}`,
        change('category: CARD\n    workflows: [DIRECT]', `category: TICKET\n    workflows: ${workflows}`),
        /payment_method_types\[0\]\.workflows: must be \[REDIRECT\] for the category TICKET/,
      ],
    ),
    ['a wrong type', change('  - id: 1\n', '  - id: first\n'), /routes\[0\]\.id: must be an integer/],
    ['a number in place of a string', change("'4111'", '4111'), /bins\[0\]\.prefix: must be a string/],
    ['a missing field', change('    provider_id: ONE\n', ''), /connections\[0\]\.provider_id: is required/],
    [
      'an empty list',
      change('workflows: [DIRECT]', 'workflows: []'),
      /payment_method_types\[0\]\.workflows: /,
    ],
    ['an invalid format', change('provider_id: ONE', 'provider_id: one'), /connections\[0\]\.provider_id: /],
    [
      'a route to an unknown connection',
      change('connection: one', 'connection: two'),
      /routes\[0\]\.targets\[0\]\.connection: is not the id of a connection/,
    ],
    [
      'a route without targets',
      change('targets:\n      - connection: one', 'targets: []'),
      /routes\[0\]\.targets: /,
    ],
    [
      'a duplicate connection in a route',
      change('- connection: one', '- connection: one\n      - connection: one'),
      /routes\[0\]\.targets\[1\]\.connection: is listed twice/,
    ],
    [
      'weights without effect',
      change('- connection: one', '- { connection: one, weight: 3 }'),
      /routes\[0\]\.targets\[0\]\.weight: is used only with choice SPLIT/,
    ],
    [
      'only weights of 0',
      change('- connection: one', '- { connection: one, weight: 0 }\n    choice: SPLIT'),
      /routes\[0\]\.targets: must include a weight above 0/,
    ],
    [
      'an account with two overrides',
      change(
        'bins:',
        '    accounts:\n      - { account_ids: [11111111-1111-4111-8111-111111111111, 22222222-2222-4222-8222-222222222222], targets: [{ connection: one }] }\n      - { account_ids: [22222222-2222-4222-8222-222222222222], targets: [{ connection: one }] }\nbins:',
      ),
      /routes\[0\]\.accounts\[1\]\.account_ids\[0\]: is listed twice/,
    ],
    [
      'an invalid account id',
      change(
        'bins:',
        '    accounts:\n      - { account_ids: [1111], targets: [{ connection: one }] }\nbins:',
      ),
      /routes\[0\]\.accounts\[0\]\.account_ids\[0\]: must be a string/,
    ],
    [
      'an account with an unknown connection',
      change(
        'bins:',
        '    accounts:\n      - { account_ids: [11111111-1111-4111-8111-111111111111], targets: [{ connection: two }] }\nbins:',
      ),
      /routes\[0\]\.accounts\[0\]\.targets\[0\]\.connection: is not the id of a connection/,
    ],
    [
      'an unknown name in a condition',
      change("type == 'CARD'", "type == 'CARD' && cuntry == 'BR'"),
      /routes\[0\]\.condition: .*cuntry.* at line 14, column 34/,
    ],
    [
      'an unknown type in a condition',
      change("type == 'CARD'", "type == 'CRAD'"),
      /routes\[0\]\.condition: .*CRAD.* at line 14, column \d+/,
    ],
    [
      'a wrong type in a condition of several lines',
      change("type == 'CARD'", "|\n      type == 'CARD'\n      && amount == 'ten'"),
      /routes\[0\]\.condition: .* at line 16, column \d+/,
    ],
    [
      'a folded condition',
      change("type == 'CARD'", "\"type == 'CARD' \\\n      && cuntry == 'BR'\""),
      /routes\[0\]\.condition: .*cuntry.* at line 1, column \d+ of the condition/,
    ],
    [
      'a duplicate type',
      change('connections:', '  - { type: CARD, category: CARD, workflows: [DIRECT] }\nconnections:'),
      /payment_method_types\[1\]\.type: is listed twice/,
    ],
    [
      'a duplicate route',
      change('bins:', '  - { id: 1, condition: "type == \'CARD\'", targets: [{ connection: one }] }\nbins:'),
      /routes\[1\]\.id: is listed twice/,
    ],
    ['invalid YAML', change('api_key: ONE_KEY }', 'api_key: ONE_KEY'), /test\.yaml: .*at line 1[1-9]/s],
    ['a duplicate key', change('    workflows', '    type: X\n    workflows'), /line 5/],
    ['a list', '- a\n- b', /test\.yaml: .*object/],
    ['an empty file', '', /test\.yaml: .*object/],
  ])('the error for %s gives its location in the file', async (_what, text, message) => {
    expect(await messageOf(() => parseCatalogue(text, 'test.yaml'))).toMatch(message);
  });

  it('the error for a missing file names the file', async () => {
    expect(await messageOf(() => readCatalogue('/nowhere/catalogue.yaml'))).toBe(
      '/nowhere/catalogue.yaml cannot be read (ENOENT)',
    );
  });

  it('a file whose aliases expand without limit is refused', async () => {
    const bomb = ['a: &a [x, x, x, x, x, x, x, x, x]'];
    for (let i = 0; i < 8; i++) {
      const [name, last] = [String.fromCharCode(98 + i), String.fromCharCode(97 + i)];
      bomb.push(`${name}: &${name} [${Array.from({ length: 9 }, () => `*${last}`).join(', ')}]`);
    }
    expect(await messageOf(() => parseCatalogue(bomb.join('\n'), 'test.yaml'))).toMatch(/^test\.yaml: /);
  });
});
