import type { Database } from '#src/store/engine/database.ts';

/**
 * Has a database return other ages of transactions, as if its clock stood elsewhere.
 *
 * @param ageOf returns the age that is read in place of the true one, in milliseconds.
 */
export function withAges(database: Database, ageOf: (ageMs: number) => number): Database {
  return {
    ...database,
    async query(statement, values) {
      const result = await database.query(statement, values);
      for (const row of result.rows as { ageMs?: number }[]) {
        if (row.ageMs !== undefined) row.ageMs = ageOf(row.ageMs);
      }
      return result as never;
    },
  };
}
