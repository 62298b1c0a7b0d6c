import type { Database } from '#src/store/engine/database.ts';

/**
 * Makes a database return other transaction ages, as if its clock showed another time.
 *
 * @param ageOf returns the age to use instead of the actual one, in milliseconds.
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
