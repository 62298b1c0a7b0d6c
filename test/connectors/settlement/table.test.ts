import { expect, it } from 'vitest';
import { readTable, TABLE_LIMITS } from '#src/connectors/kit/settlement-table.ts';
import { SettlementFileError } from '#src/connectors/port/settlement-line.ts';

async function read(text: string, required: (string | string[])[] = ['a', 'b']) {
  const rows = [];
  async function* pieces() {
    for (const letter of text) yield letter;
  }
  for await (const row of readTable(pieces(), required))
    rows.push([row.lineNumber, row.read('a'), row.read('b')]);
  return rows;
}

it.each([
  ['a,b\n1,2\n', [[2, '1', '2']]],
  [
    '\u{feff}B;other;A\r\n1;x;2\r\n\r\n3;;4',
    [
      [2, '2', '1'],
      [4, '4', '3'],
    ],
  ],
  [
    '"a","b"\r\n"1,""2""\n3", 4 \r\n5,\r\n',
    [
      [2, '1,"2"\n3', '4'],
      [4, '5', undefined],
    ],
  ],
  ['a,  B \n1,2\n', [[2, '1', '2']]],
])('reads %j', async (text, rows) => {
  expect(await read(text)).toEqual(rows);
});

it.each([
  ['', 'line 1: the file is empty'],
  ['a\n1\n', 'line 1: the report must have the columns b'],
  ['a,b,A\n', 'line 1, column a: is there twice'],
  ['a,b\n1,2\n1\n', 'line 3: has 1 cells, but the first line names 2 columns'],
  ['a,b\n1,"2\n', 'line 2: a quote is not closed: the file is incomplete'],
  ['a,b\n"1"x,2\n', 'line 2: text follows a closing quote'],
  ['a,b\n1"2,"3\n', 'line 2: a quote is not closed'],
  [`a,b\n1,${'x'.repeat(256)}\n`, 'line 2, column b: has more than 255 characters'],
  [`a,b\n1,${'x'.repeat(TABLE_LIMITS.line)}\n`, `line 2: has more than ${TABLE_LIMITS.line} characters`],
  [`a,b\n${','.repeat(TABLE_LIMITS.cells)}\n`, 'line 2: has more than 500 cells'],
])('refuses %#', async (text, message) => {
  await expect(read(text)).rejects.toThrow(new SettlementFileError(message));
});

it('any one of several columns is enough', async () => {
  expect(await read('a,c\n1,2\n', ['a', ['b', 'c']])).toEqual([[2, '1', undefined]]);
  await expect(read('a\n', ['a', ['b', 'c']])).rejects.toThrow('the columns b or c');
});
