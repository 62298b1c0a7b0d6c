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
    INSERT INTO settlement_progress AS p (account_id, connection_identity, leased_until)
    VALUES ($1, $2, now() + make_interval(secs => ${LEASE_S}))
    ON CONFLICT (account_id, connection_identity) DO UPDATE SET leased_until = excluded.leased_until
    RETURNING imports`,
};

/** Keeps other processes from matching the same lines for a minute. @returns the number of complete imports. */
export async function leaseMatching(database: Database, identity: string): Promise<number> {
  return (await database.query<{ imports: number }>(LEASE, [NIL_UUID, identity])).rows[0]?.imports ?? 0;
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
