import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BinSchema } from '#gen/payments/v1/catalogue_pb.js';
import { CardDataInputSchema } from '#gen/payments/v1/payment_method_pb.js';
import { cardBrand } from '#src/card-number.ts';
import { passesLuhn } from '#src/luhn.ts';
import { cardData, cardFingerprint, cardName } from '#src/payments/method/card.ts';

const KEY = Buffer.alloc(32, 1);
const digits = fc
  .array(fc.integer({ min: 0, max: 9 }), { minLength: 7, maxLength: 18 })
  .map((all) => all.join(''));
/** A card number completed by its check digit. */
const cardNumber = digits.map((head) => {
  const check = [...'0123456789'].find((digit) => passesLuhn(head + digit));
  return head + check;
});

describe('passesLuhn', () => {
  it.each(['4111111111111111', '79927398713', '378282246310005', '6304000000000000000', '0'])(
    'passesLuhn accepts %s',
    (number) => {
      expect(passesLuhn(number)).toBe(true);
    },
  );

  it('passesLuhn accepts exactly one check digit for every number', () => {
    fc.assert(
      fc.property(digits, (head) => {
        expect([...'0123456789'].filter((digit) => passesLuhn(head + digit))).toHaveLength(1);
      }),
    );
  });

  it('passesLuhn detects every wrong digit, and every swap of neighboring digits except 0 and 9', () => {
    fc.assert(
      fc.property(cardNumber, fc.nat(), fc.integer({ min: 1, max: 9 }), (number, at, by) => {
        const i = at % (number.length - 1);
        const [a, b] = [Number(number[i]), Number(number[i + 1])];
        expect(passesLuhn(number.slice(0, i) + ((a + by) % 10) + number.slice(i + 1))).toBe(false);
        const swapped = number.slice(0, i) + b + a + number.slice(i + 2);
        expect(passesLuhn(swapped)).toBe(a === b || Math.abs(a - b) === 9);
      }),
    );
  });
});

describe('cardFingerprint', () => {
  const uuidShape = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

  it('cardFingerprint is the same for the same card in the same account, and shaped like a UUID', () => {
    expect(cardFingerprint(KEY, 'a', '4111111111111111')).toBe(cardFingerprint(KEY, 'a', '4111111111111111'));
    expect(cardFingerprint(KEY, 'a', '4111111111111111')).toMatch(uuidShape);
  });

  it('cardFingerprint differs for a different account, number or key', () => {
    const all = [
      cardFingerprint(KEY, 'a', '4111111111111111'),
      cardFingerprint(KEY, 'b', '4111111111111111'),
      cardFingerprint(KEY, 'a', '4012888888881881'),
      cardFingerprint(Buffer.alloc(32, 2), 'a', '4111111111111111'),
    ];
    expect(new Set(all).size).toBe(4);
  });
});

describe('cardBrand', () => {
  it.each([
    ['4111111111111111', 'VISA'],
    ['5555555555554444', 'MASTERCARD'],
    ['2223003122003222', 'MASTERCARD'],
    ['378282246310005', 'AMERICAN_EXPRESS'],
    ['6011111111111117', 'DISCOVER'],
    ['36227206271667', 'DINERS_CLUB'],
    ['3530111333300000', 'JCB'],
    ['6362970000457013', 'ELO'],
    ['6062825624254001', 'HIPERCARD'],
    ['00000000', ''],
  ])('the cardBrand of %s is "%s"', (number, brand) => {
    expect(cardBrand(number)).toBe(brand);
    // The second result comes from the cache.
    expect(cardBrand(number)).toBe(brand);
  });
});

it('a card is named by its brand, if it is known, and its last four digits', () => {
  expect(cardName({ brand: 'VISA', lfd: '1111' })).toBe('VISA ****1111');
  expect(cardName({ brand: '', lfd: '1111' })).toBe('CARD ****1111');
});

describe('cardData', () => {
  const input = (number: string, rest: object = {}) =>
    create(CardDataInputSchema, {
      number,
      expirationMonth: 1,
      expirationYear: 30,
      securityCode: '123',
      ...rest,
    });

  it('cardData shows at most the first eight and last four digits, and leaves out two or more', () => {
    fc.assert(
      fc.property(cardNumber, (number) => {
        const data = cardData(input(number), undefined);
        const shown = number.length >= 16 ? 8 : number.length >= 12 ? 6 : number.length - 8;
        expect(data.iin).toBe(number.slice(0, shown));
        expect(shown + data.lfd.length).toBeLessThanOrEqual(number.length - 2);
        expect(data.lfd).toBe(number.slice(-4));
        expect(data.numberLength).toBe(number.length);
        expect(JSON.stringify(data)).not.toContain(number);
      }),
    );
  });

  it('cardData keeps two digits of the year, and only the length of the security code', () => {
    const sent = input('4111111111111111', { expirationYear: 2031, securityCode: '9876' });
    const data = cardData(sent, undefined);
    expect(data).toMatchObject({ expirationYear: 31, securityCodeLength: 4 });
    expect(JSON.stringify(data)).not.toContain('9876');
  });

  it('cardData shows what the BIN table knows about the issuer, and nothing else', () => {
    const bin = create(BinSchema, {
      prefix: '41111111',
      issuerName: 'Bank',
      countryCode: 'US',
      type: 'CREDIT',
    });
    const known = cardData(input('4111111111111111'), bin);
    expect(known).toMatchObject({ issuerName: 'Bank', countryCode: 'US', type: 'CREDIT' });
    expect([known.issuerCode, known.category]).toEqual([undefined, undefined]);
    expect(cardData(input('4111111111111111'), undefined).issuerName).toBeUndefined();
  });
});
