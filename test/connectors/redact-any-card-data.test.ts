import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { createRedactor } from '#src/connectors/guards/redact-card-data.ts';
import { passesLuhn } from '#src/luhn.ts';
import { Secret } from '#src/secret.ts';
import { runs } from '../support/fixed-seed.ts';

describe('redaction of a card in any notation', () => {
  const digit = fc.constantFrom(...'0123456789');
  /** A number with at least this many digits between its first digits and its check digit. */
  const numberOf = (minLength: number) =>
    fc
      .tuple(
        fc.constantFrom('4', '51', '34', '6011', '2720', '9'),
        fc.string({ unit: digit, minLength, maxLength: 14 }),
      )
      .map(([beginning, rest]) => beginning + rest)
      .map((head) => head + [...'0123456789'].find((last) => passesLuhn(head + last)));
  const separator = fc.constantFrom('', '', ' ', '-', '.', ' / ', '\u00a0', ', ', '_', 'x');

  /** The number of digits that must not be shown together: 12, or all of a shorter number. */
  const pieceLength = (card: string) => Math.min(12, card.length);
  /** A piece of the number, or more, in any notation. */
  const spelled = (card: string) =>
    fc
      .tuple(
        fc.nat(card.length - pieceLength(card)),
        fc.integer({ min: pieceLength(card), max: 19 }),
        separator,
        fc.string(),
        fc.string(),
      )
      .chain(([from, length, between, before, after]) => {
        const digits = [...card.slice(from, from + length)];
        const text = `${before}${digits.join(between)}${after}`;
        return fc.constantFrom<JsonValue>(
          text,
          encodeURIComponent(text),
          digits,
          Number(digits.join('')),
          Number(digits.join('')) / 1000,
          { [text]: 1 },
        );
      });

  const answers = numberOf(6).chain((card) => {
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

  it('redaction lets no 12 digits of the number through, in any notation, and the result fits into a record', () => {
    fc.assert(
      fc.property(answers, ({ card, answer }) => {
        const own = createRedactor({ number: new Secret(card), securityCode: undefined });
        const shown = own.json(answer as JsonObject);
        for (const text of textsOf(shown)) {
          const digits = decoded(text).replace(/\D/g, '');
          for (let i = 0; i + pieceLength(card) <= card.length; i++) {
            const piece = card.slice(i, i + pieceLength(card));
            if (new Set(piece).size > 1) expect(digits).not.toContain(piece);
          }
        }
        const data = create(ProviderDataSchema, { rawResponse: shown });
        const read = fromBinary(ProviderDataSchema, toBinary(ProviderDataSchema, data));
        expect(() => JSON.stringify(toJson(ProviderDataSchema, read))).not.toThrow();
        // Redacting it again changes nothing.
        expect(own.json(shown)).toEqual(shown);
      }),
      { numRuns: runs(500) },
    );
  });

  it("redaction lets no other card's number through, grouped or not", () => {
    fc.assert(
      fc.property(
        numberOf(11),
        fc.constantFrom('', ' ', '-', '.', ' / '),
        fc.string(),
        (other, between, around) => {
          fc.pre(!other.startsWith('9') && other.length <= 19 && !/[\p{Nd}]/u.test(around));
          const grouped = other.replace(/(.{4})(?=.)/g, `$1${between}`);
          const shown = createRedactor().text(`${around} ${grouped} ${around}`);
          expect(shown.replace(/\D/g, '')).not.toContain(other);
        },
      ),
      { numRuns: runs(200) },
    );
  });
});

/** Returns the keys and values of an object as strings; a list of plain values is one string. */
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
