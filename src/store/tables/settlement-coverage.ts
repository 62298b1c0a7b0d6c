import type { Database, Nullable } from '../engine/database.ts';
import { NIL_UUID, withoutNulls } from '../engine/rows.ts';

/** The time that lines of one kind of report cover: that of the earliest and of the latest payment. */
export type CoveredTime = { readonly report: string; readonly from: Date; readonly until: Date };

// Several processes may match lines: all lock the rows in the same order.
const EXTEND = {
  name: 'extend_settlement_coverage',
  text: `
    INSERT INTO settlement_coverage AS c (account_id, connection_identity, report, covered_from, covered_until)
    SELECT $1, $2, report, covered_from, covered_until
    FROM unnest($3::text[], $4::timestamptz[], $5::timestamptz[]) AS l (report, covered_from, covered_until)
    ORDER BY report
    ON CONFLICT (account_id, connection_identity, report) DO UPDATE
    SET covered_from = least(c.covered_from, excluded.covered_from),
      covered_until = greatest(c.covered_until, excluded.covered_until),
      compared_until = CASE WHEN excluded.covered_from < c.covered_from THEN NULL ELSE c.compared_until END`,
};

/**
 * Adds the time that lines of an account at a provider cover. Earlier lines than all before make earlier successes
 * comparable: all of them are compared again.
 */
export async function extendCoverage(
  database: Database,
  identity: string,
  covered: readonly CoveredTime[],
): Promise<void> {
  if (covered.length === 0) return;
  const columns = (['report', 'from', 'until'] as const).map((name) => covered.map((one) => one[name]));
  await database.query(EXTEND, [NIL_UUID, identity, ...columns]);
}

/** The time that the imported reports of one kind cover, and until when successes were compared with them. */
export type Coverage = CoveredTime & { readonly comparedUntil: Date | undefined };

const READ = {
  name: 'read_settlement_coverage',
  text: `
    SELECT report, covered_from AS "from", covered_until AS until, compared_until AS "comparedUntil"
    FROM settlement_coverage WHERE account_id = $1 AND connection_identity = $2 ORDER BY report`,
};

/** Reads the time that the reports of an account at a provider cover, by their kind. */
export async function readCoverage(database: Database, identity: string): Promise<Coverage[]> {
  const { rows } = await database.query<Nullable<Coverage>>(READ, [NIL_UUID, identity]);
  return rows.map((row) => withoutNulls<Coverage>(row));
}

const COMPARED = {
  name: 'note_settlement_compared',
  text: `
    UPDATE settlement_coverage SET compared_until = $4
    WHERE account_id = $1 AND connection_identity = $2 AND report = $3 AND covered_from = $5`,
};

/** Stores until when successes were compared, unless the reports cover earlier ones by now. */
export async function noteCompared(
  database: Database,
  identity: string,
  { report, from }: CoveredTime,
  until: Date,
): Promise<void> {
  await database.query(COMPARED, [NIL_UUID, identity, report, until, from]);
}
