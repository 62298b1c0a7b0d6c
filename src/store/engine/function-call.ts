import type { QueryResult, QueryResultRow } from 'pg';
import { byteaArray } from './bytea-array.ts';
import type { Database, Statement } from './database.ts';

/** A parameter of a database function: its name, its type, and its value in a row. */
export type Parameter<Row> = readonly [name: string, type: string, value: (row: Row) => unknown];

/** Returns the text of a statement that calls a function once, with named parameters. */
export function callText<Row>(name: string, parameters: readonly Parameter<Row>[]): string {
  const given = parameters.map(([parameter, type], index) => `${parameter} => $${index + 1}::${type}`);
  return `SELECT * FROM ${name}(${given.join(', ')}) AS result`;
}

/**
 * Returns the parameters of a statement for many rows, each an array: `$1::uuid[], $2::text[]`.
 *
 * @param after number of parameters before them.
 */
export function arraysOf<Row>(parameters: readonly Parameter<Row>[], after = 0): string {
  return parameters.map(([, type], index) => `$${after + index + 1}::${type}[]`).join(', ');
}

/** Does the same for rows of one account; the first parameter, the account, is given once: `$1::uuid, $2::text[]`. */
export function arraysOfAccount<Row>(parameters: readonly Parameter<Row>[]): string {
  return arraysOf(parameters).replace('[]', '');
}

/** Returns the values of a call. */
export function callValues<Row>(parameters: readonly Parameter<Row>[], row: Row): unknown[] {
  return parameters.map(([, , value]) => value(row) ?? null);
}

/** Two statements with the same effect: for rows of any accounts, and for rows of one account, on its node. */
export type ForMany = { readonly ofAny: Statement; readonly ofAccount: Statement };

/**
 * Runs the one of two statements for many rows that suits the database.
 *
 * @param rows rows of one account if the database is distributed.
 */
export function queryMany<Result extends QueryResultRow, Row>(
  database: Database,
  { ofAny, ofAccount }: ForMany,
  parameters: readonly Parameter<Row>[],
  rows: readonly Row[],
): Promise<QueryResult<Result>> {
  const values = arrayValues(parameters, rows);
  if (!database.isDistributed) return database.query(ofAny, values);
  const [accounts, ...others] = values;
  return database.query(ofAccount, [(accounts as unknown[])[0], ...others]);
}

/** Returns the values of a statement for many rows. */
export function arrayValues<Row>(parameters: readonly Parameter<Row>[], rows: readonly Row[]): unknown[] {
  return parameters.map(([, type, value]) => {
    const column = rows.map((row) => value(row) ?? null);
    return type === 'bytea' ? byteaArray(column as (Uint8Array | null)[]) : column;
  });
}
