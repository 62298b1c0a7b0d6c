import type { JsonValue } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import {
  answeredAboutAnother,
  differingMoney,
  isHttpUrl,
  isTextLike,
  outcomeOfStatus,
  readJsonObject,
  readMoney,
  textOf,
} from '#src/connectors/provider-answer.ts';

describe('readJsonObject', () => {
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;

  it.each([
    ['{}', {}],
    [' {"a":[1,"é",null]}\n', { a: [1, 'é', null] }],
    [nested(64), JSON.parse(nested(64))],
  ])('reads an object in UTF-8: %s', (text, value) => {
    expect(readJsonObject(Buffer.from(text))).toEqual(value);
  });

  it.each(['', '[]', 'null', '"text"', '1', '{"a":1', '{}x', '<html>', nested(65), '['.repeat(100_000)])(
    'reads nothing from what is no such object: %s',
    (text) => {
      expect(readJsonObject(Buffer.from(text))).toBeUndefined();
    },
  );

  it('reads nothing that is not UTF-8', () => {
    expect(readJsonObject(Buffer.from('{"a":"\u00ff"}', 'latin1'))).toBeUndefined();
  });
});

describe('readMoney', () => {
  it.each([
    [300_000, 'USD', 'minor_units', 300_000n],
    [0, 'jpy', 'minor_units', 0n],
    ['3000.00', 'USD', 'decimal', 300_000n],
    [19.99, 'usd', 'decimal', 1_999n],
    ['1200', 'JPY', 'decimal', 1_200n],
    ['0.5', 'KWD', 'decimal', 500n],
  ] as const)('reads %s %s as %s', (amount, currency, unit, minorUnits) => {
    expect(readMoney(amount, currency, unit)).toEqual({ minorUnits, currency: currency.toUpperCase() });
  });

  it.each([
    ['300000', 'USD', 'minor_units'],
    [0.5, 'USD', 'minor_units'],
    [-1, 'USD', 'minor_units'],
    [2 ** 53, 'USD', 'minor_units'],
    [undefined, 'USD', 'minor_units'],
    [1, undefined, 'minor_units'],
    ['1.001', 'USD', 'decimal'],
    ['-1', 'USD', 'decimal'],
    ['1e2', 'USD', 'decimal'],
    [1e21, 'USD', 'decimal'],
    ['1', 'ZZZ', 'decimal'],
    [null, 'USD', 'decimal'],
    [{ value: 1 }, 'USD', 'decimal'],
    [['1'] as JsonValue, 'USD', 'decimal'],
  ] as const)('reads no money from %s %s as %s', (amount, currency, unit) => {
    expect(readMoney(amount, currency, unit)).toBeUndefined();
  });
});

it.each([
  [{ minorUnits: 1n, currency: 'USD' }, undefined],
  [{ minorUnits: 2n, currency: 'USD' }, 'amount'],
  [{ minorUnits: 1n, currency: 'EUR' }, 'currency'],
  [undefined, 'amount'],
])('money that an answer is about is compared with what was asked', (answered, difference) => {
  expect(differingMoney(answered, { minorUnits: 1n, currency: 'USD' })).toBe(difference);
});

it('an answer about another amount leaves the outcome unknown, with an alarm', () => {
  expect(answeredAboutAnother('amount')).toEqual({
    kind: 'unknown',
    detail: "alarm: the provider's answer is not about this attempt: its amount differs",
    providerData: undefined,
    alarm: true,
  });
});

describe('outcomeOfStatus', () => {
  it.each([200, 201, 202, 204, 299])('leaves %i to the body', (status) => {
    expect(outcomeOfStatus(status, false)).toBeUndefined();
    expect(outcomeOfStatus(status, true)).toBeUndefined();
  });

  it.each([400, 404, 405, 413, 415, 422])(
    "takes the provider's %i for a refusal of this one request",
    (status) => {
      expect(outcomeOfStatus(status, true)).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    },
  );

  it.each([401, 403, 429])("takes the provider's %i for a refusal of the connection", (status) => {
    expect(outcomeOfStatus(status, true)).toMatchObject({ kind: 'not_sent', because: 'unreachable' });
  });

  it.each([199, 300, 301, 307, 402, 408, 409, 418, 423, 424, 425, 451, 500, 502, 503, 504, 599])(
    'knows nothing after %i',
    (status) => {
      expect(outcomeOfStatus(status, true)).toMatchObject({ kind: 'unknown' });
    },
  );

  it.each([400, 401, 403, 404, 429])(
    "knows nothing after a %i in a form that is not the provider's",
    (status) => {
      expect(outcomeOfStatus(status, false)).toMatchObject({ kind: 'unknown' });
    },
  );
});

it('only an address of the web, of bounded length, is one to which a payer is sent', () => {
  expect(isHttpUrl('https://provider.example/x?y')).toBe(true);
  expect(isHttpUrl('http://provider.example')).toBe(true);
  expect(isHttpUrl(`https://x/${'y'.repeat(2_038)}`)).toBe(true);
  for (const value of [
    'javascript:alert(1)',
    'ftp://x',
    '/relative',
    '',
    7,
    undefined,
    `https://x/${'y'.repeat(2_039)}`,
  ]) {
    expect(isHttpUrl(value)).toBe(false);
  }
});

it('only a text is taken for one, whatever it would read as', () => {
  expect(textOf('7')).toBe('7');
  expect(textOf(7)).toBe('');
  expect(isTextLike('7', /^7$/)).toBe(true);
  expect(isTextLike('8', /^7$/)).toBe(false);
  expect(isTextLike(7, /^7$/)).toBe(false);
});
