import { describe, expect, it } from 'vitest';
import { readExportRequest } from '#src/exports/export-request.ts';
import { momentName, readPeriod } from '#src/exports/period.ts';

const boundsOf = (given: Parameters<typeof readPeriod>[0]) => {
  const { from, before } = readPeriod(given);
  return [from.toInstant().toString(), before.toInstant().toString()];
};

describe('the period of an export', () => {
  it('a month begins and ends at the midnights of its zone', () => {
    expect(boundsOf({ month: '2026-09' })).toEqual(['2026-09-01T00:00:00Z', '2026-10-01T00:00:00Z']);
    expect(boundsOf({ month: '2026-09', zone: 'America/Bogota' })).toEqual([
      ...['2026-09-01T05:00:00Z', '2026-10-01T05:00:00Z'],
    ]);
    expect(boundsOf({ month: '2026-12', zone: '+05:30' })).toEqual([
      ...['2026-11-30T18:30:00Z', '2026-12-31T18:30:00Z'],
    ]);
    // A query string's plus sign, decoded to a space.
    expect(boundsOf({ month: '2026-12', zone: ' 05:30' })).toEqual(
      boundsOf({ month: '2026-12', zone: '+05:30' }),
    );
    // The clocks change within the month.
    expect(boundsOf({ month: '2026-10', zone: 'Europe/Madrid' })).toEqual([
      ...['2026-09-30T22:00:00Z', '2026-10-31T23:00:00Z'],
    ]);
  });

  it('a day without a midnight begins with its first instant', () => {
    // In Santiago, the clocks went from 24:00 to 01:00 on this day.
    const day = { from: '2026-09-06', before: '2026-09-07', zone: 'America/Santiago' };
    expect(boundsOf(day)).toEqual(['2026-09-06T04:00:00Z', '2026-09-07T03:00:00Z']);
    expect(momentName(readPeriod(day).from)).toBe('2026-09-06');
  });

  it('a time has its own offset, and names the file by its zone', () => {
    const given = {
      from: '2026-09-01T05:00:00Z',
      before: '2026-09-01T07:30:00-02:00',
      zone: 'America/Bogota',
    };
    expect(boundsOf(given)).toEqual(['2026-09-01T05:00:00Z', '2026-09-01T09:30:00Z']);
    const { from, before } = readPeriod(given);
    expect([from, before].map(momentName)).toEqual(['2026-09-01', '2026-09-01T043000']);
    expect(boundsOf({ ...given, before: '2026-09-01T09:30' })[1]).toBe('2026-09-01T14:30:00Z');
    // A plus sign that was not escaped.
    expect(boundsOf({ ...given, before: '2026-09-01T07:30:00 02:00' })[1]).toBe('2026-09-01T05:30:00Z');
  });

  it('a period has at most 366 days of its zone', () => {
    const zone = 'Europe/Madrid';
    expect(boundsOf({ from: '2026-03-01', before: '2027-03-02', zone })).toHaveLength(2);
    expect(() => readPeriod({ from: '2026-03-01', before: '2027-03-03', zone })).toThrow(
      /^before: .*366 days/,
    );
    expect(() => readPeriod({ from: '2026-03-01', before: '2027-03-02T00:00:01+01:00', zone })).toThrow(
      /366/,
    );
  });

  it.each([
    [{}, /^from: is required/],
    [{ from: '2026-09-01' }, /^before: is required/],
    [{ month: '2026-9' }, /^month: must be a month/],
    [{ month: '2026-13' }, /^month: must be a month/],
    [{ month: '2026-09', from: '2026-09-01' }, /^from: must be absent/],
    [{ from: '2026-09-31', before: '2026-10-01' }, /^from: must be a date/],
    [{ from: '2026-09-01', before: '2026-10-01T25:00:00Z' }, /^before: must be a date/],
    [{ from: '2026-09-01', before: '2026-09-01' }, /^before: must be later/],
    [{ from: '0000-01-01', before: '2026-09-01' }, /^from: must be a date/],
    [{ month: '2026-09', zone: 'Mars/Base' }, /^zone: must be a time zone/],
    [{ month: '2026-09', zone: '2026-01-01T00:00Z' }, /^zone: must be a time zone/],
  ])('the period %o is refused by name', (given, message) => {
    expect(() => readPeriod(given)).toThrow(message);
  });
});

describe('the parameters of an export', () => {
  const read = (more: Record<string, unknown>) =>
    readExportRequest('movements', { month: '2026-09', ...more });

  it('parameters become filters and a format', () => {
    const asked = read({
      currency: 'USD',
      type: 'REFUND',
      separator: 'semicolon',
      bom: 'true',
      raw: 'false',
    });
    expect(asked).toMatchObject({
      ...{ kind: 'movements', accountId: undefined, includesPayer: false },
      filters: { currency: 'USD', type: 'REFUND' },
      format: { separator: ';', hasBom: true, isRaw: false },
    });
  });

  it.each([
    [{ to: '2026-09-30' }, /^to: .*use before/],
    [{ statsu: 'x' }, /^statsu: is not a parameter of this file/],
    [{ status: 'SUCCEEDED' }, /^status: is not a parameter of this file/],
    [{ toString: 'x' }, /^toString: is not a parameter/],
    [{ currency: ['USD', 'EUR'] }, /^currency: must be given once/],
    [{ currency: 'usd' }, /^currency: must be a currency/],
    [{ type: 'refund' }, /^type: must be one of PURCHASE, CAPTURE/],
    [{ raw: 'yes' }, /^raw: must be one of true, false/],
    [{ include: 'card' }, /^include: must be one of payer/],
    [{ account_id: '1' }, /^account_id: must be a UUID/],
    [{ country: '' }, /^country: must have 1 to 255/],
    [{ country: 'x'.repeat(256) }, /^country: must have 1 to 255/],
  ])('the parameters %o are refused by name', (given, message) => {
    expect(() => read(given)).toThrow(message);
  });
});
