import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { createRedactor } from '#src/connectors/guards/redact-card-data.ts';
import { passesLuhn } from '#src/luhn.ts';
import { Secret } from '#src/secret.ts';

const NUMBER = '4012888888881881';
/** Twenty digits that pass the Luhn check. */
const LONG_NUMBER =
  Array.from({ length: 10 }, (_, digit) => `${'4'.padEnd(19, '0')}${digit}`).find(passesLuhn) ?? '';
const redactor = createRedactor({ number: new Secret(NUMBER), securityCode: new Secret('123') });
/** A number digit by digit: no piece of it appears contiguously. */
const spelled = (digit: (digit: string) => string) => [...NUMBER].map(digit).join('');

describe('redacted strings', () => {
  it.each([
    ['Approved 4012 8888 8888 1881 cvc 123', 'Approved [removed] cvc [removed]'],
    ['4012-8888-8888-1881', '[removed]'],
    ['(4012)8888.8888_1881!', '([removed]!'],
    ['4 0 1 2 8 8 8 8 8 8 8 8 1 8 8 1', '[removed]'],
    ['4012 and 8888 and 8888 and 1881', '[removed]'],
    ['pan4012888888881881exp1230', 'pan[removed]exp1230'],
    ['40128888888818810123', '[removed]'],
    ['888888881881 are the last twelve', '[removed] are the last twelve'],
    ['401288 4012888888881881 8888881', '[removed]'],
    // Digests pass unchanged otherwise.
    [`${'a'.repeat(16)}${NUMBER}`, `${'a'.repeat(16)}[removed]`],
    ['4012%208888%208888%201881', '[removed]'],
    ['%34%30%31%32888888881881', '[removed]'],
    [spelled((digit) => `%3${digit}`), '[removed]'],
  ])("a redacted string loses the card's number: %s", (text, shown) => {
    expect(redactor.text(text)).toBe(shown);
  });

  it.each([
    ['41111113', 'card 41111113 ok', 'card [removed] ok'],
    ['4111111110', 'card 4111-1111-10, ref 41111', 'card [removed], ref 41111'],
  ])('a redacted string loses a card number of fewer than 12 digits: %s', (number, text, shown) => {
    const own = createRedactor({ number: new Secret(number), securityCode: undefined });
    expect(own.text(text)).toBe(shown);
    expect(own.isClean(text)).toBe(false);
  });

  it.each([
    ['123', '[removed]'],
    ['123 and 123', '[removed] and [removed]'],
    ['code: 123.', 'code: [removed].'],
    ['cvc=123&x=1', 'cvc=[removed]&x=1'],
    ['CVC123', 'CVC[removed]'],
    ['cvv%3D123', '[removed]'],
    // Any code after such a label, since a look-up no longer knows the real one.
    ['cvv: 987, CSC 4567', 'cvv: [removed], CSC [removed]'],
  ])('a redacted string loses the security code on its own: %s', (text, shown) => {
    expect(redactor.text(text)).toBe(shown);
  });

  it.each([
    ['Approved for 4111111111111111', 'Approved for [removed]'],
    ['378282246310005 30569309025904', '[removed] [removed]'],
    ['5555-5555 5555/4444, 6011 0000 0000 0004', '[removed], [removed]'],
    ['0005555555555554444', '[removed]'],
    ['4222222222222', '[removed]'],
    [
      'of ch_45328100-1111-4123-8123-123456789012: 5555555555554444, 10:00:00.123Z 5555555555554444',
      'of ch_45328100-1111-4123-8123-123456789012: [removed], 10:00:00.123Z [removed]',
    ],
    ['x=5555%205555%205555%204444', '[removed]'],
  ])("a redacted string loses a lookalike of another card's number: %s", (text, shown) => {
    expect(redactor.text(text)).toBe(shown);
    expect(createRedactor().text(text)).toBe(shown);
  });

  it.each([
    '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11',
    'ch_45328100-1111-4123-8123-123456789012',
    '2026-11-21T10:00:00.123Z',
    '2026-11-21 22:23:45.123456789+02:00',
    '9b74c9897bac770ffc029102a200c5de4012aaaa5555555555554444aaaaaaaa',
    '1767225600000',
    '1767225600000000',
    '1767225600000000000',
    'pi_3MtwBwLkdIwHu7ix28a3tqPa',
    '8515131751004933',
    '5O190127TN364715T',
    '401288******1881',
    '40128888888',
    'digest 9B74C9897BAC770FFC029102A200C5DE4012AAAA5555555555554444AAAAAAAA',
    // Longer than any card number, although it starts like one and passes the Luhn check.
    LONG_NUMBER,
    '40128888 1881',
    '10.123, 123.45, 12345, 10.0.0.123 and abc123def',
    'https://provider.example/checkout?id=wo_3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11&v=%7Ba%7D',
    '+52 55 1234 5678',
    '4111111111111112',
    '1111111111111117',
  ])('a redacted string keeps data other than card data: %s', (text) => {
    expect(redactor.text(text)).toBe(text);
    expect(redactor.identifier(text)).toBe(text);
    expect(redactor.isClean(text)).toBe(true);
  });

  it('a redacted string is cut after the card data is removed, not in the middle of it', () => {
    const filler = 'x'.repeat(1_014);
    expect(redactor.text(`${filler} 5555555555554444`)).toBe(`${filler} [removed]`.slice(0, 1_024));
    expect(redactor.isClean('x'.repeat(2_000))).toBe(true);
    expect(redactor.text('x'.repeat(2_000))).toBe('x'.repeat(1_024));
  });

  it('a redacted string is valid in protobuf, even with a lone surrogate', () => {
    expect(redactor.text('a\ud800b, which is long enough').isWellFormed()).toBe(true);
  });
});

it("redaction keeps an identifier that looks like another card's number, but not the card's own number", () => {
  expect(redactor.identifier('5555555555554444')).toBe('5555555555554444');
  expect(redactor.identifier(`ref-${NUMBER}`)).toBe('ref-[removed]');
  expect(redactor.identifier('CVC123')).toBe('CVC[removed]');
  expect(redactor.identifier('123.123,123')).toBe('123.123,123');
});

it('redaction keeps the first eight and last four digits of a number that repeats one digit', () => {
  const own = createRedactor({ number: new Secret('4111111111111111'), securityCode: undefined });
  const shown = { card_iin: '41111111', card_last_four: '1111', created_at: '1111111111111' };
  expect(own.json(shown)).toEqual(shown);
  expect(own.text('4111 1111 1111 1111')).toBe('[removed] 1111');
});

describe('a redacted object', () => {
  it('a redacted object loses card data in keys, numbers, lists and nested values', () => {
    const shown = redactor.json({
      exact: 4012888888881881,
      rounded: Number(`${NUMBER}9999`),
      fraction: 40128888888818.81,
      exponent: 4.012888888881881e25,
      [NUMBER]: true,
      groups: ['4012', '8888', 8888, '1881'],
      nested: [{ deeper: { number: `x ${NUMBER}` } }],
      code: 123,
      cvv: '9876',
      card: { security_code: 987, cvc_check: 'pass' },
    });
    expect(shown).toEqual({
      exact: '[removed]',
      rounded: '[removed]',
      fraction: '[removed]',
      exponent: '[removed]',
      '[removed]': true,
      groups: '[removed]',
      nested: [{ deeper: { number: 'x [removed]' } }],
      code: '[removed]',
      cvv: '[removed]',
      card: { security_code: '[removed]', cvc_check: 'pass' },
    });
  });

  it('a redacted object keeps every other value unchanged', () => {
    const value = { amount: 300_000, rate: 0.15, ok: true, none: null, list: [1, 'two', []], empty: {} };
    expect(redactor.json(value)).toEqual(value);
  });

  it('a redacted object has limited size and depth, and only numbers that a Struct can represent', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(30)}1${'}'.repeat(30)}`);
    expect(JSON.stringify(redactor.json(deep)).length).toBeLessThan(100);
    const wide = createRedactor().json({ list: Array.from({ length: 5_000 }, (_, i) => i) });
    // The list counts as a value, too.
    expect((wide.list as JsonValue[]).filter((it) => it !== '[removed]')).toHaveLength(999);
    const objects = (levels: number): JsonObject =>
      JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`);
    expect(redactor.json(objects(11))).toEqual(objects(11));
    const cut = (value: JsonObject) => JSON.parse(JSON.stringify(value).replace('1', '"[removed]"'));
    expect(redactor.json(objects(12))).toEqual(cut(objects(12)));
    const lists = (levels: number) => ({ a: JSON.parse(`${'['.repeat(levels)}1${']'.repeat(levels)}`) });
    expect(redactor.json(lists(10))).toEqual(lists(10));
    expect(redactor.json(lists(11))).toEqual(cut(lists(11)));
    expect(redactor.json({ number: Number.POSITIVE_INFINITY })).toEqual({ number: '[removed]' });
  });
});
