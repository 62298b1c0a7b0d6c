import type { Database } from '#src/store/engine/database.ts';

/**
 * Makes a database return other transaction ages, and other times left for payers, as if its clock showed another time.
 *
 * @param ageOf returns the age to use instead of the actual one, in milliseconds.
 */
export function withAges(database: Database, ageOf: (ageMs: number) => number): Database {
  return {
    ...database,
    async query(statement, values) {
      const result = await database.query(statement, values);
      for (const row of result.rows as { ageMs?: number; payerTimeLeftMs?: number | null }[]) {
        if (row.ageMs === undefined) continue;
        const ageMs = ageOf(row.ageMs);
        if (typeof row.payerTimeLeftMs === 'number') {
          row.payerTimeLeftMs = Math.round(row.payerTimeLeftMs + row.ageMs) - ageMs;
        }
        row.ageMs = ageMs;
      }
      return result as never;
    },
  };
}
