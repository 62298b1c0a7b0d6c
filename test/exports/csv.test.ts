import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { csvLine, csvStart } from '#src/exports/csv.ts';
import { readCsv } from '../support/read-csv.ts';

const PLAIN = { separator: ',', hasBom: false, isRaw: false } as const;
const line = csvLine(PLAIN);
const money = (minorUnits: bigint, currency: string) => ({ minorUnits, currency });

describe('a line of a file', () => {
  it('a line has money with exactly the digits of its currency', () => {
    const amounts = [
      ...[money(-1200n, 'USD'), money(1200n, 'JPY'), money(1250n, 'KWD'), money(-5n, 'KWD')],
      ...[money(7n, 'USD'), money(0n, 'USD'), money(-3n, 'JPY'), money(9_007_199_254_740_993n, 'USD')],
    ];
    expect(line(amounts)).toBe('-12.00,1200,1.250,-0.005,0.07,0.00,-3,90071992547409.93\r\n');
  });

  it('a line with semicolons has decimal commas, and quotes only what it must', () => {
    const semicolons = csvLine({ ...PLAIN, separator: ';' });
    expect(semicolons([money(-1250n, 'USD'), 'a,b', 'a;b'])).toBe('-12,50;a,b;"a;b"\r\n');
  });

  it('a text that a spreadsheet would run begins with an apostrophe, but money does not', () => {
    for (const text of [
      '=1+1',
      '+1',
      '-1',
      '@SUM(A1)',
      '\t=1',
      '  =1',
      '\u{a0}=1',
      '＝1',
      '＋1',
      '－1',
      '＠x',
      '\rx',
      '\nx',
    ]) {
      expect(line([text]).replace(/^"/, '')).toBe(`'${line([text]).replace(/^"?'/, '')}`);
      expect(readCsv(`a\r\n${line([text])}`)).toEqual([{ a: `'${text}` }]);
    }
    expect(line(['a=1', 'x-1', '1-', money(-100n, 'USD')])).toBe('a=1,x-1,1-,-1.00\r\n');
  });

  it('raw texts are left as they are', () => {
    expect(csvLine({ ...PLAIN, isRaw: true })(['=1+1', '-1'])).toBe('=1+1,-1\r\n');
  });

  it('a byte-order mark comes first if asked for', () => {
    expect(csvStart(PLAIN)).toBe('');
    expect(Buffer.from(csvStart({ ...PLAIN, hasBom: true })).toString('hex')).toBe('efbbbf');
  });

  it('every text is read back as it was written', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', '"', ',', ';', '\r', '\n', '=', "'", ' ', 'é', '中'),
    });
    fc.assert(
      fc.property(
        fc.array(text, { minLength: 2, maxLength: 4 }),
        fc.constantFrom(',', ';'),
        (cells, separator) => {
          const write = csvLine({ separator, hasBom: false, isRaw: true } as never);
          const names = cells.map((_cell, i) => `c${i}`);
          const [row] = readCsv(write(names) + write(cells), separator);
          expect(Object.values(row ?? {})).toEqual(cells);
        },
      ),
    );
  });
});
