import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { createRedactor } from '#src/connectors/redact-card-data.ts';
import { passesLuhn } from '#src/luhn.ts';
import { Secret } from '#src/secret.ts';

const NUMBER = '4012888888881881';
const redactor = createRedactor({ number: new Secret(NUMBER), securityCode: new Secret('123') });
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('a text', () => {
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
    ['4012%208888%208888%201881', '[removed]'],
    ['%34%30%31%32888888881881', '[removed]'],
    ['%2534012888888881881', '[removed]'],
    ['\\u0034012888888881881', '[removed]'],
    ['&#52;012888888881881 &#x34;', '[removed]'],
    ['４０１２８８８８８８８８１８８１', '[removed]'],
    ['٤٠١٢٨٨٨٨٨٨٨٨١٨٨١', '[removed]'],
    [`token=${base64(NUMBER)}`, '[removed]'],
    [base64(`{"number":"${NUMBER}"}`).replaceAll('=', ''), '[removed]'],
    [Buffer.from(NUMBER).toString('hex'), '[removed]'],
  ])('loses the number of the card: %s', (text, shown) => {
    expect(redactor.text(text)).toBe(shown);
  });

  it.each([
    ['123', '[removed]'],
    ['code: 123.', 'code: [removed].'],
    ['cvc=123&x=1', 'cvc=[removed]&x=1'],
    ['CVC123', 'CVC[removed]'],
    ['cvv%3D123', '[removed]'],
    // Whatever the code is: a look-up no longer knows it.
    ['cvv: 987, CSC 4567', 'cvv: [removed], CSC [removed]'],
  ])('loses the security code where it stands alone: %s', (text, shown) => {
    expect(redactor.text(text)).toBe(shown);
  });

  it.each([
    ['Approved for 4111111111111111', 'Approved for [removed]'],
    ['378282246310005 30569309025904', '[removed] [removed]'],
    ['5555-5555 5555/4444, 6011 0000 0000 0004', '[removed], [removed]'],
    ['0005555555555554444', '[removed]'],
    ['x=5555%205555%205555%204444', '[removed]'],
  ])('loses what looks like the number of another card: %s', (text, shown) => {
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
    '40128888 1881',
    '10.123, 123.45, 12345, 10.0.0.123 and abc123def',
    'https://provider.example/checkout?id=wo_3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11&v=%7Ba%7D',
    '+52 55 1234 5678',
    '4111111111111112',
    '1111111111111117',
  ])('keeps what is no card data: %s', (text) => {
    expect(redactor.text(text)).toBe(text);
    expect(redactor.identifier(text)).toBe(text);
    expect(redactor.isClean(text)).toBe(true);
  });

  it('is cut after the card data was removed, not through it', () => {
    const filler = 'x'.repeat(1_014);
    expect(redactor.text(`${filler} 5555555555554444`)).toBe(`${filler} [removed]`.slice(0, 1_024));
    expect(redactor.isClean('x'.repeat(2_000))).toBe(true);
  });

  it('is one that protobuf can carry, though a surrogate in it stands alone', () => {
    expect(redactor.text('a\ud800b, which is long enough').isWellFormed()).toBe(true);
  });
});

it('lets an identifier pass that looks like the number of another card, but not the own one', () => {
  expect(redactor.identifier('5555555555554444')).toBe('5555555555554444');
  expect(redactor.identifier(`ref-${NUMBER}`)).toBe('ref-[removed]');
});

it('keeps the eight first and the four last digits of a number of one digit again and again', () => {
  const own = createRedactor({ number: new Secret('4111111111111111'), securityCode: undefined });
  const shown = { card_iin: '41111111', card_last_four: '1111', created_at: '1111111111111' };
  expect(own.json(shown)).toEqual(shown);
  expect(own.text('4111 1111 1111 1111')).toBe('[removed] 1111');
});

describe('an object', () => {
  it('loses card data in keys, numbers, lists and what is nested', () => {
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

  it('keeps every other value as it is', () => {
    const value = { amount: 300_000, rate: 0.15, ok: true, none: null, list: [1, 'two', []], empty: {} };
    expect(redactor.json(value)).toEqual(value);
  });

  it('has bounds, and only numbers that a Struct can hold', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(30)}1${'}'.repeat(30)}`);
    expect(JSON.stringify(redactor.json(deep)).length).toBeLessThan(100);
    const wide = redactor.json({ list: Array.from({ length: 5_000 }, (_, i) => i) });
    expect((wide.list as JsonValue[]).filter((it) => it !== '[removed]').length).toBeLessThan(1_000);
    expect(redactor.json({ number: Number.POSITIVE_INFINITY })).toEqual({ number: '[removed]' });
  });
});

describe('whatever a provider makes of a card', () => {
  const digit = fc.constantFrom(...'0123456789');
  const number = fc
    .tuple(
      fc.constantFrom('4', '51', '34', '6011', '2720', '9'),
      fc.string({ unit: digit, minLength: 11, maxLength: 14 }),
    )
    .map(([beginning, rest]) => beginning + rest)
    .map((head) => head + [...'0123456789'].find((last) => passesLuhn(head + last)));
  const separator = fc.constantFrom('', '', ' ', '-', '.', ' / ', '\u00a0', ', ', '_', 'x');

  /** A piece of the number, of 12 digits or more, spelled somehow. */
  const spelled = (card: string) =>
    fc
      .tuple(fc.nat(card.length - 12), fc.integer({ min: 12, max: 19 }), separator, fc.string(), fc.string())
      .chain(([from, length, between, before, after]) => {
        const digits = [...card.slice(from, from + length)];
        const text = `${before}${digits.join(between)}${after}`;
        return fc.constantFrom<JsonValue>(
          text,
          encodeURIComponent(text),
          base64(digits.join('')),
          digits,
          Number(digits.join('')),
          Number(digits.join('')) / 1000,
          { [text]: 1 },
        );
      });

  const answers = number.chain((card) => {
    const leaf = fc.oneof(
      spelled(card),
      fc.string(),
      fc.integer(),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
    );
    const { tree } = fc.letrec<{ tree: JsonValue }>((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(fc.string(), tie('tree'), { maxKeys: 4 }),
      ),
    }));
    return fc.record({ card: fc.constant(card), answer: fc.dictionary(fc.string(), tree, { maxKeys: 5 }) });
  });

  it('no 12 digits of its number pass, and what passes is an object that a record can hold', () => {
    fc.assert(
      fc.property(answers, ({ card, answer }) => {
        const own = createRedactor({ number: new Secret(card), securityCode: undefined });
        const shown = own.json(answer as JsonObject);
        for (const text of textsOf(shown)) {
          const digits = decoded(text).replace(/\D/g, '');
          for (let i = 0; i + 12 <= card.length; i++) {
            const piece = card.slice(i, i + 12);
            if (new Set(piece).size > 1) expect(digits).not.toContain(piece);
          }
        }
        const data = create(ProviderDataSchema, { rawResponse: shown });
        const read = fromBinary(ProviderDataSchema, toBinary(ProviderDataSchema, data));
        expect(() => JSON.stringify(toJson(ProviderDataSchema, read))).not.toThrow();
        // Redacted once more, it stays as it is.
        expect(own.json(shown)).toEqual(shown);
      }),
      { seed: 17, numRuns: 1_500 },
    );
  });

  it('no number of another card passes, grouped or not', () => {
    fc.assert(
      fc.property(
        number,
        fc.constantFrom('', ' ', '-', '.', ' / '),
        fc.string(),
        (other, between, around) => {
          fc.pre(!other.startsWith('9') && other.length <= 19 && !/[\p{Nd}]/u.test(around));
          const grouped = other.replace(/(.{4})(?=.)/g, `$1${between}`);
          const shown = createRedactor().text(`${around} ${grouped} ${around}`);
          expect(shown.replace(/\D/g, '')).not.toContain(other);
        },
      ),
      { seed: 18, numRuns: 500 },
    );
  });
});

/** The keys and values of an object as texts; a list of plain values is one text. */
function textsOf(value: JsonValue): string[] {
  if (typeof value !== 'object' || value === null) return [String(value)];
  if (Array.isArray(value)) {
    const plain = value.filter((it) => typeof it !== 'object');
    return [plain.join(' '), ...value.flatMap(textsOf)];
  }
  return Object.entries(value).flatMap(([key, inner]) => [key, ...textsOf(inner)]);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
