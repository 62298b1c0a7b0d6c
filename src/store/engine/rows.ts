import type { Nullable } from './database.ts';

/** An id that no object has. Stands for an unknown account, and for a string that is not a UUID. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000';

/**
 * Returns the row of a statement that always returns one row. @throws Error if there is none, which is a bug in the
 * statement.
 */
export function onlyRow<Row>({ rows }: { readonly rows: readonly Row[] }): Row {
  const [row] = rows;
  if (!row) throw new Error('a statement that always returns a row returned none');
  return row;
}

/** Returns the first row of a result in the service's form; undefined if there is none. */
export function firstRow<T extends object>({
  rows,
}: {
  readonly rows: readonly Nullable<T>[];
}): T | undefined {
  return rows[0] && withoutNulls(rows[0]);
}

/**
 * Leases due rows account by account, since a statement that names one account runs on one node of a distributed
 * database.
 *
 * @param take leases the rows of one account.
 */
export async function takeByAccount<Due extends { readonly accountId: string }, Leased>(
  due: readonly Due[],
  take: (accountId: string, own: readonly Due[]) => Promise<readonly Leased[]>,
): Promise<Leased[]> {
  const leased: Leased[] = [];
  for (const [accountId, own] of Map.groupBy(due, (one) => one.accountId)) {
    leased.push(...(await take(accountId, own)));
  }
  return leased;
}

/** Returns a row in the service's form, with undefined for absent values. */
export function withoutNulls<T extends object>(row: Nullable<T>): T {
  const known: Record<string, unknown> = { ...row };
  for (const name of Object.keys(known)) known[name] ??= undefined;
  return known as T;
}
