import fc from 'fast-check';
import { expect, it } from 'vitest';
import { encodeForm, type FormValue } from '#src/connectors/kit/form-body.ts';

it('a form writes nested fields with brackets and lists with their indices', () => {
  const form = encodeForm({
    amount: 3_000n,
    capture: false,
    card: { number: '4242', owner: { name: 'Ana' } },
    items: ['a', { sku: 7 }],
  });
  expect(decodeURIComponent(form)).toBe(
    'amount=3000&capture=false&card[number]=4242&card[owner][name]=Ana&items[0]=a&items[1][sku]=7',
  );
});

it('a form percent-encodes characters that would end a field, and writes a space as a plus', () => {
  expect(encodeForm({ 'a b': { 'c&d': '1 + 1 = 2&é%' } })).toBe('a+b%5Bc%26d%5D=1+%2B+1+%3D+2%26%C3%A9%25');
});

it('a form leaves out absent fields, empty lists and empty objects, but not empty strings', () => {
  expect(encodeForm({ a: undefined, b: { c: undefined, d: '' }, e: [], f: {} })).toBe('b%5Bd%5D=');
});

it('a form counts an absent list element, so that the others keep their positions', () => {
  expect(decodeURIComponent(encodeForm({ a: ['x', undefined, 'y'] }))).toBe('a[0]=x&a[2]=y');
});

it('a form rejects a name that would become another field, without quoting it', () => {
  expect(() => encodeForm({ metadata: { 'x][amount': '1' } })).toThrow(/^a field name in a form must/);
  expect(() => encodeForm({ 'card[number]': '1' })).toThrow('bracket');
});

it.each([0.1, 1e21, Number.NaN, 2 ** 53])(
  'a form rejects the number %d, which is not an exact integer',
  (number) => {
    expect(() => encodeForm({ amount: number })).toThrow('safe integer');
  },
);

it('a form can be read by any form parser, whatever its strings', () => {
  const text = fc.string({ unit: 'grapheme' });
  const name = fc.string({ unit: 'grapheme', minLength: 1 }).filter((it) => !/[[\]]/.test(it));
  const { fields } = fc.letrec<{ value: FormValue; fields: { [name: string]: FormValue } }>((tie) => ({
    value: fc.oneof(text, fc.boolean(), fc.bigInt(), fc.array(tie('value'), { maxLength: 3 }), tie('fields')),
    fields: fc.dictionary(name, tie('value'), { maxKeys: 3 }),
  }));
  fc.assert(
    fc.property(fields, (form) => {
      expect([...new URLSearchParams(encodeForm(form))]).toEqual(leaves('', form));
    }),
    { seed: 1, numRuns: 300 },
  );
});

/** The pairs of a form, as an independent implementation reads them. */
function leaves(path: string, value: FormValue): [string, string][] {
  if (typeof value !== 'object') return [[path, `${value}`]];
  return Object.entries(value).flatMap(([name, inner]) => leaves(path ? `${path}[${name}]` : name, inner));
}
