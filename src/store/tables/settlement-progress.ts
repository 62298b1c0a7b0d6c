import type { Database, Nullable, Run } from '../engine/database.ts';
import { NIL_UUID, withoutNulls } from '../engine/rows.ts';

/** Seconds after which another process may continue to match lines. */
const LEASE_S = 60;

const COUNT_IMPORT = `
  INSERT INTO settlement_progress AS p (account_id, connection_identity, imports) VALUES ($1, $2, 1)
  ON CONFLICT (account_id, connection_identity) DO UPDATE SET imports = p.imports + 1`;

/** Counts an import that is complete, within its transaction: its lines are to be matched. */
export async function countImport(run: Run, identity: string): Promise<void> {
  await run(COUNT_IMPORT, [NIL_UUID, identity]);
}

const LEASE = {
  name: 'lease_settlement_progress',
  text: `
    INSERT INTO settlement_progress AS p (account_id, connection_identity, leased_until, covered_from, covered_until)
    VALUES ($1, $2, now() + make_interval(secs => ${LEASE_S}), $3, $4)
    ON CONFLICT (account_id, connection_identity) DO UPDATE
    SET leased_until = excluded.leased_until,
      covered_from = least(p.covered_from, excluded.covered_from),
      covered_until = greatest(p.covered_until, excluded.covered_until),
      compared_until = CASE WHEN excluded.covered_from < p.covered_from THEN NULL ELSE p.compared_until END
    RETURNING imports`,
};

/**
 * Keeps other processes from matching the same lines for a minute, and stores the time that the lines cover. Earlier
 * lines than all before make earlier successes comparable: all of them are compared again.
 *
 * @returns the number of complete imports.
 */
export async function leaseMatching(
  database: Database,
  identity: string,
  covered: { readonly from?: Date | undefined; readonly until?: Date | undefined } = {},
): Promise<number> {
  const values = [NIL_UUID, identity, covered.from ?? null, covered.until ?? null];
  return (await database.query<{ imports: number }>(LEASE, values)).rows[0]?.imports ?? 0;
}

const FINISH = {
  name: 'finish_settlement_matching',
  text: `
    UPDATE settlement_progress SET matched_imports = greatest(matched_imports, $3), leased_until = now()
    WHERE account_id = $1 AND connection_identity = $2`,
};

/** Stores that all lines of some imports were matched. @param imports as leaseMatching returned before. */
export async function finishMatching(database: Database, identity: string, imports: number): Promise<void> {
  await database.query(FINISH, [NIL_UUID, identity, imports]);
}

/** The time that the reports of an account at a provider cover, and until when successes were compared with them. */
export type Coverage = {
  readonly from: Date | undefined;
  readonly until: Date | undefined;
  readonly comparedUntil: Date | undefined;
};

const COVERAGE = {
  name: 'read_settlement_coverage',
  text: `
    SELECT covered_from AS "from", covered_until AS until, compared_until AS "comparedUntil"
    FROM settlement_progress WHERE account_id = $1 AND connection_identity = $2`,
};

/** Reads the time that reports cover. */
export async function readCoverage(database: Database, identity: string): Promise<Coverage | undefined> {
  const { rows } = await database.query<Nullable<Coverage>>(COVERAGE, [NIL_UUID, identity]);
  return rows[0] && withoutNulls<Coverage>(rows[0]);
}

const COMPARED = {
  name: 'note_settlement_compared',
  text: `
    UPDATE settlement_progress SET compared_until = $3
    WHERE account_id = $1 AND connection_identity = $2 AND covered_from = $4`,
};

/** Stores until when successes were compared, unless the reports cover earlier ones by now. */
export async function noteCompared(
  database: Database,
  identity: string,
  until: Date,
  coveredFrom: Date,
): Promise<void> {
  await database.query(COMPARED, [NIL_UUID, identity, until, coveredFrom]);
}

const COUNT_ALARM = {
  name: 'count_settlement_alarm',
  text: `
    INSERT INTO settlement_progress AS p (account_id, connection_identity, alarms) VALUES ($1, $2, 1)
    ON CONFLICT (account_id, connection_identity) DO UPDATE SET alarms = p.alarms + 1`,
};

/** Makes the alarms of an account at a provider due. */
export async function countAlarm(database: Database, identity: string): Promise<void> {
  await database.query(COUNT_ALARM, [NIL_UUID, identity]);
}

/** An account at a provider whose lines are to be matched, or whose alarms are due. */
export type DueSettlement = {
  readonly identity: string;
  readonly isMatchDue: boolean;
  /** Number of alarms so far; undefined if none is due. */
  readonly alarms: number | undefined;
};

const DUE = {
  name: 'find_due_settlement',
  text: `
    SELECT connection_identity AS identity, imports > matched_imports AND leased_until <= now() AS "isMatchDue",
      CASE WHEN alarms > raised_alarms THEN alarms END AS alarms
    FROM settlement_progress
    WHERE account_id = $1 AND (alarms > raised_alarms OR imports > matched_imports AND leased_until <= now())`,
};

/** Finds the work on settlement reports that nobody does. */
export async function dueSettlement(database: Database): Promise<DueSettlement[]> {
  const { rows } = await database.query<Nullable<DueSettlement>>(DUE, [NIL_UUID]);
  return rows.map((row) => withoutNulls<DueSettlement>(row));
}

const RAISED = {
  name: 'note_raised_settlement_alarms',
  text: `
    UPDATE settlement_progress SET raised_alarms = greatest(raised_alarms, $3)
    WHERE account_id = $1 AND connection_identity = $2`,
};

/** Stores that alarms were raised. @param alarms as dueSettlement returned before. */
export async function noteRaised(database: Database, identity: string, alarms: number): Promise<void> {
  await database.query(RAISED, [NIL_UUID, identity, alarms]);
}
