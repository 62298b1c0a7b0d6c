import type { Database } from '#src/store/engine/database.ts';

/** Hooks, keyed by statement name; each receives how often its statement has run so far. */
type Acts = Readonly<Record<string, (nth: number) => unknown>>;

/** Runs hooks before or after a database's statements while their callers wait. */
export function interleave(
  database: Database,
  { before = {}, after = {} }: { before?: Acts; after?: Acts },
): Database {
  const counts = new Map<string, number>();
  return {
    ...database,
    async query(statement, values) {
      const { name } = statement;
      const nth = (counts.get(name) ?? 0) + 1;
      counts.set(name, nth);
      await before[name]?.(nth);
      const result = await database.query(statement, values);
      await after[name]?.(nth);
      return result as never;
    },
  };
}
