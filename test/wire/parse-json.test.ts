import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '#src/service-error.ts';
import { canonicalDecimal } from '#src/wire/canonical-decimal.ts';
import { NESTING_LIMIT, parseJson, RawNumber } from '#src/wire/parse-json.ts';

const parse = (text: string) => parseJson(Buffer.from(text));

function refusal(body: string | Uint8Array): ServiceError {
  try {
    parseJson(Buffer.from(body));
  } catch (error) {
    expect(error).toBeInstanceOf(ServiceError);
    return error as ServiceError;
  }
  throw new Error('was not refused');
}

describe('parseJson', () => {
  it('parseJson returns the same as JSON.parse for short, plain numbers', () => {
    const text = '{"a":[1,-2.5,0.1,123456789012345],"b":{"c":null,"d":true},"e":"\\u00e9 \\" } [","a2":""}';
    expect(parse(text)).toEqual(JSON.parse(text));
  });

  it('parseJson keeps the literal of every number that a double or its printing would change', () => {
    const literals = [
      '1e2',
      '1E+2',
      '-1.5e-3',
      '12345678901234567890',
      '0.1234567890123456789',
      '-0.0000001',
    ];
    for (const literal of literals) {
      expect(parse(literal)).toEqual(new RawNumber(literal));
      expect(parse(`{"a": [${literal}, 1]}`)).toEqual({ a: [new RawNumber(literal), 1] });
      expect(parse(`[1,${literal}]`)).toEqual([1, new RawNumber(literal)]);
      expect(parse(`{"a":\n${literal}}`)).toEqual({ a: new RawNumber(literal) });
    }
  });

  it('parseJson leaves a string that looks like such a number unchanged', () => {
    const text = '{"a":"x, 1e2","b":", 12345678901234567890","c":10}';
    expect(parse(text)).toEqual(JSON.parse(text));
  });

  it('parseJson returns every decimal as a double that prints unchanged, or as its literal', () => {
    const digits = (max: number) =>
      fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: max });
    const decimal = fc.tuple(fc.boolean(), fc.bigInt({ min: 0n, max: 10n ** 20n }), digits(20));
    fc.assert(
      fc.property(decimal, ([negative, whole, fraction]) => {
        const literal = `${negative ? '-' : ''}${whole}.${fraction}`;
        const value = parse(`{"v":${literal}}`) as { v: number | RawNumber };
        const text = value.v instanceof RawNumber ? value.v.source : String(value.v);
        expect(canonicalDecimal(text)).toBe(canonicalDecimal(literal));
      }),
    );
  });

  it('parseJson uses the last of several members with the same name', () => {
    expect(parse('{"a":1e5,"a":2}')).toEqual({ a: 2 });
    expect(parse('{"a":2,"a":1e5}')).toEqual({ a: new RawNumber('1e5') });
  });

  it('parseJson reads __proto__ as an ordinary member, with and without kept literals', () => {
    for (const number of ['1', '1e5']) {
      const value = parse(`{"__proto__":{"polluted":${number}}}`) as object;
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
      expect(Object.keys(value)).toEqual(['__proto__']);
    }
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it('parseJson accepts nesting up to the limit, and refuses deeper nesting', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect(parse(nested(NESTING_LIMIT))).toBeInstanceOf(Array);
    expect(refusal(nested(NESTING_LIMIT + 1)).reason).toBe('INVALID_REQUEST');
    expect(refusal(nested(NESTING_LIMIT + 1)).message).toContain('32');
    const objects = `${'{"a":['.repeat(17)}1${']}'.repeat(17)}`;
    expect(refusal(objects).message).toContain('32');
  });

  it('parseJson does not count brackets in strings or closed brackets as nesting', () => {
    expect(parse(`["${'['.repeat(100)}\\"${'{'.repeat(100)}\\\\"]`)).toHaveLength(1);
    expect(parse(`[${Array(100).fill('{"a":[]}').join()}]`)).toHaveLength(100);
  });

  it('parseJson refuses 30,000 nested arrays without parsing them', () => {
    // The parser would refuse them for another reason: they are never closed.
    expect(refusal('['.repeat(30_000)).message).toContain('32');
    expect(refusal('{"a":'.repeat(30_000)).message).toContain('32');
  });

  it.each([
    ['an overlong sequence', [0x22, 0xc0, 0x80, 0x22]],
    ['an encoded surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a lone byte', [0x22, 0xff, 0x22]],
  ])('parseJson refuses invalid UTF-8: %s', (_name, bytes) => {
    expect(refusal(Uint8Array.from(bytes)).message).toBe('the body is not valid UTF-8');
  });

  it('parseJson does not quote its input in errors', () => {
    const texts = [
      '{"number": 4111111111111111 "x"}',
      '4111111111111111x',
      '{"number":"4111111111111111"',
      '',
    ];
    for (const text of texts) {
      const error = refusal(text);
      expect(error.message).toBe('the body is not valid JSON');
      expect(error.cause).toBeUndefined();
    }
  });

  it('parseJson throws only ServiceError and never quotes its input, for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.json(), (bytes, json) => {
        for (const body of [bytes, Buffer.concat([Buffer.from(json), bytes])]) {
          try {
            parseJson(body);
          } catch (error) {
            expect(error).toBeInstanceOf(ServiceError);
            expect((error as ServiceError).reason).toBe('INVALID_REQUEST');
          }
        }
      }),
    );
  });
});
