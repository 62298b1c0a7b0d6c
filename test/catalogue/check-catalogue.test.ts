import { describe, expect, it } from 'vitest';
import { checkCatalogueMessage, checkCatalogueText } from '#src/catalogue/read-catalogue.ts';
import { change, SMALL } from '../support/small-catalogue.ts';

/** Returns the faults of a text as `line:column path code severity`. */
const faultsOf = (text: string) =>
  checkCatalogueText(text).faults.map(
    ({ line, column, path, code, severity }) => `${line}:${column} ${path} ${code} ${severity}`,
  );

describe('the faults of a catalogue', () => {
  it('a valid text has none', () => {
    expect(checkCatalogueText(SMALL)).toMatchObject({ catalogue: { routes: [{ id: 1 }] }, faults: [] });
  });

  it('all of them are reported at once, each with its path and place', () => {
    const text = change("type == 'CARD'", "type == 'CRAD'")
      .replace('- connection: one', '- connection: two')
      .replace("prefix: '4111'", "prefix: '4111'\n    issuer_name: Bank\n  - prefix: '4111'");
    expect(faultsOf(text)).toEqual([
      '20:13 bins[1].prefix NOT_ALLOWED ERROR',
      '14:24 routes[0].condition NOT_ALLOWED ERROR',
      '16:21 routes[0].targets[0].connection NOT_ALLOWED ERROR',
    ]);
  });

  it('unreadable fields are reported together with broken rules', () => {
    const text = change('category: CARD', 'category: CASH').replace('id: one\n', "id: ''\n");
    expect(faultsOf(text)).toEqual([
      expect.stringMatching(/^4:15 payment_method_types\[0\]\.category /),
      expect.stringMatching(/^7:9 connections\[0\]\.id /),
    ]);
  });

  it('an agreed fee is refused by the field at fault, and a second one for the same money', () => {
    const fees = (...all: string[]) =>
      faultsOf(
        change('    connector: sandbox', `    agreed_fees: [${all.join(', ')}]\n    connector: sandbox`),
      );
    const path = 'connections[0].agreed_fees';
    expect(fees("{ currency: USD, percent: '2.9', fixed: '0.30' }", "{ currency: EUR, fixed: '1' }")).toEqual(
      [],
    );
    expect(
      fees("{ currency: USD, percent: '1', payment_method_type: CARD }", "{ currency: USD, fixed: '1' }"),
    ).toEqual([]);
    expect(fees("{ currency: USD, percent: '-1', fixed: '0.001' }", '{ currency: ABC, fixed: x }')).toEqual([
      expect.stringContaining(` ${path}[0].percent NOT_ALLOWED ERROR`),
      expect.stringContaining(` ${path}[0].fixed NOT_ALLOWED ERROR`),
      expect.stringContaining(` ${path}[1].currency NOT_ALLOWED ERROR`),
    ]);
    expect(fees("{ currency: USD, percent: '1' }", "{ currency: USD, percent: '2' }")).toEqual([
      expect.stringContaining(` ${path}[1].currency NOT_ALLOWED ERROR`),
    ]);
    expect(fees("{ currency: USD, percent: '1', payment_method_type: CASH }")).toEqual([
      expect.stringContaining(` ${path}[0].payment_method_type NOT_ALLOWED ERROR`),
    ]);
  });

  it('more than twenty broken rules are all reported', () => {
    const bins = Array.from({ length: 30 }, (_, i) => `  - prefix: 'x${i}'`).join('\n');
    expect(faultsOf(`${SMALL}${bins}\n`).length).toBe(30);
  });

  it('a text that is not YAML has the place where it ends to be YAML', () => {
    const [fault] = checkCatalogueText(change('api_key: ONE_KEY }', 'api_key: ONE_KEY')).faults;
    expect(fault).toMatchObject({ path: '', code: 'INVALID_FORMAT', severity: 'ERROR' });
    expect(fault?.line).toBeGreaterThan(10);
  });

  it('a catalogue that is no text has faults without a place', () => {
    const { catalogue } = checkCatalogueText(SMALL);
    if (!catalogue) throw new Error('the catalogue is invalid');
    const routes = catalogue.routes.map((route) => ({ ...route, condition: 'nothing == 1' }));
    const [fault] = checkCatalogueMessage({ ...catalogue, routes }).faults;
    expect(fault).toMatchObject({ path: 'routes[0].condition', line: 0, column: 0, severity: 'ERROR' });
    expect(fault?.message).toMatch(/, at line 1, column 1 of the condition$/);
  });
});
