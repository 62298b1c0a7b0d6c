/** Returns the row of a statement that always returns one. @throws Error if there is none: the statement is wrong. */
export function onlyRow<Row>({ rows }: { readonly rows: readonly Row[] }): Row {
  const [row] = rows;
  if (!row) throw new Error('a statement that always returns a row returned none');
  return row;
}
