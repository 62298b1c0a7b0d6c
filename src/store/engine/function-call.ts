import { byteaArray } from './bytea-array.ts';

/** A parameter of a database function: its name, its type, and its value in a row. */
export type Parameter<Row> = readonly [name: string, type: string, value: (row: Row) => unknown];

/** Returns the text of a statement that calls a function once, with named parameters. */
export function callText<Row>(name: string, parameters: readonly Parameter<Row>[]): string {
  const given = parameters.map(([parameter, type], index) => `${parameter} => $${index + 1}::${type}`);
  return `SELECT * FROM ${name}(${given.join(', ')}) AS result`;
}

/** Returns the parameters of a statement for many rows, each an array: `$1::uuid[], $2::text[]`. */
export function arraysOf<Row>(parameters: readonly Parameter<Row>[], first = 1): string {
  return parameters.map(([, type], index) => `$${first + index}::${type}[]`).join(', ');
}

/** Returns the values of a call. */
export function callValues<Row>(parameters: readonly Parameter<Row>[], row: Row): unknown[] {
  return parameters.map(([, , value]) => value(row) ?? null);
}

/** Returns the values of a statement for many rows, as an array per parameter. */
export function callsValues<Row>(parameters: readonly Parameter<Row>[], rows: readonly Row[]): unknown[] {
  return parameters.map(([, type, value]) => {
    const column = rows.map((row) => value(row) ?? null);
    return type === 'bytea' ? byteaArray(column as (Uint8Array | null)[]) : column;
  });
}

/** Returns the same for rows of one account, which is the first parameter and passed once. */
export function callsOfAccount<Row>(parameters: readonly Parameter<Row>[], rows: readonly Row[]): unknown[] {
  const [accounts, ...others] = callsValues(parameters, rows);
  return [(accounts as unknown[])[0], ...others];
}
