import type { JsonValue } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import {
  answeredAboutAnother,
  asIs,
  differingMoney,
  fields,
  isHttpUrl,
  isSuccess,
  isTextLike,
  listOf,
  optional,
  readJsonObject,
  readMoney,
  textLike,
  textOf,
  withRaw,
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
    'reads nothing from anything else: %s',
    (text) => {
      expect(readJsonObject(Buffer.from(text))).toBeUndefined();
    },
  );

  it('rejects a body that is not UTF-8', () => {
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
])('the money in a response is compared with the request', (answered, difference) => {
  expect(differingMoney(answered, { minorUnits: 1n, currency: 'USD' })).toBe(difference);
});

it('a response about another amount leaves the outcome unknown, with an alarm', () => {
  expect(answeredAboutAnother('amount')).toEqual({
    kind: 'unknown',
    detail: "alarm: the provider's response is not about this attempt: its amount differs",
    providerData: undefined,
    alarm: true,
  });
});

it('a payer is only sent to a web address of limited length', () => {
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

it('only a string counts as a text, whatever it converts to', () => {
  expect(textOf('7')).toBe('7');
  expect(textOf(7)).toBe('');
  expect(isTextLike('7', /^7$/)).toBe(true);
  expect(isTextLike('8', /^7$/)).toBe(false);
  expect(isTextLike(7, /^7$/)).toBe(false);
});

describe('fields', () => {
  const read = fields({
    id: textLike(/^pi_/),
    status: textOf,
    reference: asIs,
    charge: fields({ status: textOf }),
    error: optional(fields({ code: textOf })),
    refunds: listOf(fields({ id: textOf })),
  });

  it('reads the fields that it names', () => {
    const answer = {
      id: 'pi_1',
      status: 'paid',
      reference: 7,
      charge: { status: 'x' },
      error: { code: 'y' },
      refunds: [{ id: 're_1' }],
    };
    expect(read({ ...answer, other: 1 })).toEqual(answer);
  });

  it.each([
    undefined,
    null,
    'text',
    [],
    {},
    { id: 7, status: {}, charge: 'ch_1', error: null, refunds: {} },
    { id: 'xpi', status: null, charge: [], error: 'no', refunds: [null, 7] },
  ])('reads a value of another kind as absent: %j', (value) => {
    expect(read(value)).toEqual({
      id: undefined,
      status: '',
      reference: undefined,
      charge: { status: '' },
      error: undefined,
      refunds: [],
    });
  });

  it('keeps the whole object beside them on request', () => {
    expect(withRaw(read)({ status: 'paid', other: 1 })).toMatchObject({
      status: 'paid',
      raw: { status: 'paid', other: 1 },
    });
    expect(withRaw(read)(null).raw).toEqual({});
  });
});

it.each([
  [199, false],
  [200, true],
  [204, true],
  [299, true],
  [300, false],
  [402, false],
])('the status %i says that the request succeeded: %s', (status, isOne) => {
  expect(isSuccess(status)).toBe(isOne);
});
