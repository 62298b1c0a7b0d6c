import { create, type JsonValue } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { HttpResult } from '#src/connectors/kit/http-client.ts';
import {
  answeredAboutAnother,
  approvedOutcome,
  asIs,
  bodyOf,
  differingMoney,
  each,
  fields,
  fromResult,
  isHttpUrl,
  isSuccess,
  isTextLike,
  isUuid,
  listOf,
  neverHappens,
  numberOf,
  optional,
  pageAddress,
  readJsonObject,
  readMoney,
  stringOf,
  textLike,
  textOf,
  turnedAway,
  unknownOutcome,
  uuidOf,
  withMovedMoney,
  withoutFields,
  withRaw,
} from '#src/connectors/kit/provider-answer.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';

describe('readJsonObject', () => {
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;

  it.each([
    ['{}', {}],
    [' {"a":[1,"é",null]}\n', { a: [1, 'é', null] }],
    [nested(64), JSON.parse(nested(64))],
  ])('readJsonObject reads an object in UTF-8: %s', (text, value) => {
    expect(readJsonObject(Buffer.from(text))).toEqual(value);
  });

  it.each(['', '[]', 'null', '"text"', '1', '{"a":1', '{}x', '<html>', nested(65), '['.repeat(100_000)])(
    'readJsonObject returns undefined for anything but a JSON object of limited depth: %s',
    (text) => {
      expect(readJsonObject(Buffer.from(text))).toBeUndefined();
    },
  );

  it('readJsonObject rejects a body that is not UTF-8', () => {
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
  ] as const)('readMoney reads %s %s as %s', (amount, currency, unit, minorUnits) => {
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
  ] as const)('readMoney returns undefined for %s %s as %s', (amount, currency, unit) => {
    expect(readMoney(amount, currency, unit)).toBeUndefined();
  });
});

it.each([
  [{ minorUnits: 1n, currency: 'USD' }, undefined],
  [{ minorUnits: 2n, currency: 'USD' }, 'amount'],
  [{ minorUnits: 1n, currency: 'EUR' }, 'currency'],
  [undefined, 'amount'],
])('the amount in a response is compared with the request', (answered, difference) => {
  expect(differingMoney(answered, { minorUnits: 1n, currency: 'USD' })).toBe(difference);
});

it('a response with another amount leaves the outcome unknown, with an alarm', () => {
  expect(answeredAboutAnother('amount')).toEqual({
    kind: 'unknown',
    detail: "alarm: the provider's response is not about this attempt: its amount differs",
    providerData: undefined,
    alarm: true,
  });
});

it('an operation whose answer names other money is over with that money, and raises an alarm', () => {
  const reported = { providerData: create(ProviderDataSchema), reference: 'theirs' };
  const done = approvedOutcome(reported);
  const moved = { minorUnits: 2n, currency: 'USD' };
  expect(withMovedMoney(done, undefined, moved)).toBe(done);
  expect(withMovedMoney(done, 'amount', moved)).toMatchObject({
    ...{ kind: 'approved', alarm: true, money: moved, reference: 'theirs' },
    providerData: { responseMessage: 'alarm: the amount that was moved is not the requested one' },
  });
  expect(withMovedMoney(done, 'amount', undefined)).toEqual(answeredAboutAnother('amount'));
  const pending: Outcome = { kind: 'pending', ...reported };
  expect(withMovedMoney(pending, 'amount', moved)).toBe(pending);
});

it('a payer is redirected only to a web URL of limited length', () => {
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

it('only a string counts as a string, whatever else converts to one', () => {
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

  it('fields reads the named fields', () => {
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
  ])('fields reads a value of another type as absent: %j', (value) => {
    expect(read(value)).toEqual({
      id: undefined,
      status: '',
      reference: undefined,
      charge: { status: '' },
      error: undefined,
      refunds: [],
    });
  });

  it('fields can keep the whole object along with the named fields', () => {
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
])('the status %i counts as success: %s', (status, isOne) => {
  expect(isSuccess(status)).toBe(isOne);
});

const answer = (status: number, text: string): HttpResult => ({
  ...{ kind: 'answer', status, headers: {}, body: Buffer.from(text) },
});
const NOT_SENT: HttpResult = { kind: 'not_sent', detail: 'before sending: CLOSED', because: 'unreachable' };
const LOST: HttpResult = { kind: 'unknown', detail: 'awaiting the response: DEADLINE' };

it('the body of a response is read only if the status is the expected one', () => {
  expect(bodyOf(answer(200, '{"a":1}'))).toEqual({ a: 1 });
  expect(bodyOf(answer(404, '{"a":1}'), 404)).toEqual({ a: 1 });
  for (const result of [answer(201, '{"a":1}'), answer(200, '[]'), NOT_SENT, LOST]) {
    expect(bodyOf(result)).toBeUndefined();
  }
});

it('the outcome of a call that may have moved money is known only from a readable response, whatever its status', () => {
  const read = () => unknownOutcome('read');
  expect(fromResult(answer(500, '{}'), read)).toEqual(unknownOutcome('read'));
  expect(fromResult(answer(200, 'no'), read)).toEqual(unknownOutcome('unreadable response: 200'));
  const page = { ...answer(401, '<p>'), headers: { 'content-type': 'text/html' } };
  expect(fromResult(page, read)).toEqual(unknownOutcome('an HTML page as response: 401'));
  expect(fromResult(NOT_SENT, read)).toEqual(NOT_SENT);
  expect(fromResult(LOST, read)).toEqual(unknownOutcome('awaiting the response: DEADLINE'));
});

it('fields that merchants must not see are left out at any depth, even in lists', () => {
  const object = {
    secret: 1,
    kept: [{ secret: 2, a: null }, 'secret', [{ secret: 3 }]],
    inner: { secret: {}, b: 4 },
  };
  expect(withoutFields(object, new Set(['secret']))).toEqual({
    ...{ kept: [{ a: null }, 'secret', [{}]], inner: { b: 4 } },
  });
});

it('a value is read only if it has the expected type and form', () => {
  const id = '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11';
  const forms = [id, `${id}0`, `x${id}`, id.toUpperCase(), '', 7, null, undefined] as const;
  expect(forms.map(isUuid)).toEqual([true, ...Array(7).fill(false)]);
  expect(forms.map(uuidOf)).toEqual([id, ...Array(7).fill(undefined)]);
  expect([7, '7', null].map(numberOf)).toEqual([7, undefined, undefined]);
  expect(['7', 7, null].map(stringOf)).toEqual(['7', undefined, undefined]);
  expect(['https://x', 'ftp://x', 7].map(pageAddress)).toEqual(['https://x', undefined, undefined]);
  expect(fields(each(numberOf, 'a', 'b'))({ a: 1, b: 2, c: 3 })).toEqual({ a: 1, b: 2 });
});

it('an approval without a code has an empty code', () => {
  const reported = { providerData: create(ProviderDataSchema), reference: 'theirs', corrects: [''] } as const;
  const approved = { kind: 'approved', ...reported, retrievalReferenceNumber: '' };
  expect(approvedOutcome(reported)).toEqual({ ...approved, authorizationCode: '' });
  expect(approvedOutcome(reported, 'A1')).toEqual({ ...approved, authorizationCode: 'A1' });
});

it('an attempt that was never made may be made at another provider', () => {
  const turned = { kind: 'not_sent', because: 'turned_away' };
  expect(neverHappens('gone')).toEqual({ ...turned, detail: 'gone' });
  expect(turnedAway('no')).toEqual({ ...turned, detail: 'nothing was sent to the provider: no' });
});
