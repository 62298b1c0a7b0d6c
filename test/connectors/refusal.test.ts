import { describe, expect, it } from 'vitest';
import type { HttpResult } from '#src/connectors/kit/http-client.ts';
import {
  BY_STATUS,
  declines,
  refusalTable,
  refusedOutcome,
  sendMended,
} from '#src/connectors/kit/refusal.ts';

describe('a table of refusals', () => {
  const table = refusalTable<'status' | 'code'>([
    ...declines('code', 'NONE', { '05': 'refused declined', '94': 'twice' }),
    { status: '402', code: '', means: 'turned_away' },
    { status: '402 403', means: 'unknown' },
    ...BY_STATUS,
  ]);

  it.each([
    [{ code: 'declined' }, { iso8583Code: '05', advice: 'NONE' }],
    [
      { code: 'twice', status: 500 },
      { iso8583Code: '94', advice: 'NONE', nowhereElse: true },
    ],
    [{ status: 402 }, 'turned_away'],
    [{ status: 402, code: 'other' }, 'unknown'],
    [{ status: 403 }, 'unknown'],
    [{ status: 404 }, 'turned_away'],
    [{ status: 404, code: 'toString' }, 'turned_away'],
    [{ status: 500 }, undefined],
    [{}, undefined],
  ])('the first matching row of a refusal table decides what a response means: %j', (shown, meaning) => {
    expect(table(shown)).toEqual(meaning);
  });
});

describe('refusals by HTTP status', () => {
  const byStatus = refusalTable<'status'>(BY_STATUS);
  const refused = (status: number) => refusedOutcome(byStatus({ status }), { status });

  it.each([400, 404, 405, 413, 415, 422])(
    'a response with the status %i is a refusal of only this request',
    (status) => {
      expect(refused(status)).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    },
  );

  it.each([401, 403, 429])('a response with the status %i is a refusal of the whole connection', (status) => {
    expect(refused(status)).toMatchObject({ kind: 'not_sent', because: 'unreachable' });
  });

  it.each([199, 200, 300, 301, 307, 402, 408, 409, 418, 423, 424, 425, 451, 500, 502, 503, 504, 599])(
    'the status %i has no row in the table, and leaves the outcome unknown',
    (status) => {
      expect(refused(status)).toMatchObject({ kind: 'unknown' });
    },
  );
});

it('a refusal names a field or a code, never a value', () => {
  const refused = (name: string) => refusedOutcome('turned_away', { status: 400, refused: name });
  expect(refused('card[number]')).toMatchObject({ refused: 'card[number]' });
  expect(refused('ana@example.com')).toMatchObject({ refused: '' });
  expect(refusedOutcome('unreachable', { status: 401, refused: 'key' })).not.toHaveProperty('refused');
});

describe('requests without a refused field', () => {
  const body = { payer: { name: 'Ana', email: 'x' }, items: [{ title: 'a', note: 'b' }], amount: 1 };
  const refusal: HttpResult = { kind: 'answer', status: 400, headers: {}, body: Buffer.from('{}') };

  async function sentFor(...refused: string[]): Promise<unknown[]> {
    const sent: unknown[] = [];
    const send = async (of: object, isRepeat: boolean) => {
      sent.push([JSON.parse(JSON.stringify(of)), isRepeat]);
      return refusal;
    };
    const pathOf = (name: string) => name.split('.');
    await sendMended(body, send, { names: /^[a-z]/i, refusedBy: () => refused, pathOf });
    return sent;
  }

  it.each([
    ['in an object', ['payer.email'], { ...body, payer: { name: 'Ana' } }],
    ['in a list', ['items.0.note'], { ...body, items: [{ title: 'a' }] }],
    ['along with another field', ['payer.email', 'payer'], { items: body.items, amount: 1 }],
  ])('a refused field is left out of the second request: %s', async (_where, refused, mended) => {
    expect(await sentFor(...refused)).toEqual([
      [body, false],
      [mended, true],
    ]);
  });

  it.each([
    ['no field is refused', []],
    ['one of the fields is not optional', ['payer.email', '0']],
    ['the fault is not in a field', ['']],
    ['the body has no such field', ['payer.phone']],
    ['a field is inside a string', ['payer.name.first']],
    ['the field is a property of every JavaScript object', ['toString']],
  ])('a request is not sent again if %s', async (_why, refused) => {
    expect(await sentFor(...refused)).toEqual([[body, false]]);
  });
});
