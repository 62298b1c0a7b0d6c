import { describe, expect, it } from 'vitest';
import { isRecent, readFiguresPeriod, type Stretch } from '#src/dashboard/figures-period.ts';

const NOW = new Date('2026-11-28T14:25:00Z');
const read = (query: Readonly<Record<string, string>>) => readFiguresPeriod((name) => query[name] ?? '', NOW);
const texts = ({ from, before }: Stretch) =>
  [from, before].map((moment) => moment.toPlainDateTime().toString({ smallestUnit: 'minute' }));

describe('the period of the figures', () => {
  it('an hour is the last whole one, and a day ends with the running hour; each is compared with as many hours', () => {
    const hour = read({ span: '1h' });
    expect([texts(hour), texts(hour.past)]).toEqual([
      ['2026-11-28T13:00', '2026-11-28T14:00'],
      ['2026-11-28T12:00', '2026-11-28T13:00'],
    ]);
    const day = read({});
    expect([texts(day), texts(day.past)]).toEqual([
      ['2026-11-27T15:00', '2026-11-28T15:00'],
      ['2026-11-26T15:00', '2026-11-27T15:00'],
    ]);
    expect(day.parts).toHaveLength(24);
  });

  it('seven and thirty days are days of the zone, and are compared up to the same time of the day', () => {
    const week = read({ span: '7d', zone: 'America/Bogota' });
    expect([texts(week), texts(week.past)]).toEqual([
      ['2026-11-22T00:00', '2026-11-28T10:00'],
      ['2026-11-15T00:00', '2026-11-21T10:00'],
    ]);
    expect(texts(week.parts[1] as Stretch)).toEqual(['2026-11-22T06:00', '2026-11-22T12:00']);
    const month = read({ span: '30d', zone: 'America/Bogota' });
    expect(month.parts).toHaveLength(30);
    expect(texts(month.parts.at(-1) as Stretch)).toEqual(['2026-11-28T00:00', '2026-11-28T10:00']);
  });

  it('days of a month in which the clock changes begin at midnight, and a year has at most 32 parts', () => {
    const month = read({ from: '2026-10-01', before: '2026-11-01', zone: 'Europe/Berlin' });
    expect(month.parts).toHaveLength(31);
    expect(month.parts.map(({ from }) => from.hour)).toEqual(month.parts.map(() => 0));
    expect(texts(month.past)).toEqual(['2026-08-31T00:00', '2026-10-01T00:00']);
    const year = read({ from: '2025-01-01', before: '2026-01-01' });
    expect(year.parts.length).toBeLessThanOrEqual(32);
    expect(texts(year.parts.at(-1) as Stretch)[1]).toBe('2026-01-01T00:00');
  });

  it('a range in a zone that differs by half an hour begins and ends with whole hours in UTC, and says so', () => {
    const range = read({ from: '2026-11-01', before: '2026-11-02', zone: 'Asia/Kolkata' });
    expect(texts(range)).toEqual(['2026-10-31T23:30', '2026-11-02T00:30']);
    expect(range.covers).toContain('outside the range');
  });

  it('countries and codes are known for the last day, not for longer or earlier', () => {
    expect(isRecent(read({ span: '1h' }), NOW)).toBe(true);
    expect(isRecent(read({}), NOW)).toBe(true);
    expect(isRecent(read({ span: '7d' }), NOW)).toBe(false);
    expect(isRecent(read({ from: '2026-11-26', before: '2026-11-26T02:00' }), NOW)).toBe(false);
  });
});
