import { type CheckerDeps, checkDue } from '#src/payments/check/checker.ts';
import { tables } from '../support/own-database.ts';

/* Notifications that wait: they are kept, and a later check processes them again. */

/**
 * Processes the waiting notifications as if they were due. @returns the result of the last settled
 * one; 'waiting' if none was settled.
 */
export async function lookAgain(deps: CheckerDeps): Promise<string> {
  const results: string[] = [];
  const settled = (_connectionId: string, result: string) => results.push(result);
  await checkOnly(
    { ...deps, settled },
    '(account_id, id) IN (SELECT account_id, transaction_id FROM notification WHERE settled_at IS NULL)',
  );
  return results.at(-1) ?? 'waiting';
}

/** Checks only the open operations. */
export const checkOperations = (deps: CheckerDeps): Promise<number> =>
  checkOnly(deps, "type IN ('CAPTURE', 'CANCEL', 'REFUND')");

async function checkOnly(deps: CheckerDeps, isDue: string): Promise<number> {
  await tables.query(
    "UPDATE transaction SET check_at = now() + interval '1 hour' WHERE check_at IS NOT NULL",
  );
  await tables.query(`UPDATE transaction SET check_at = now() WHERE check_at IS NOT NULL AND ${isDue}`);
  return checkDue(deps);
}

/** Postpones the checks of open operations by an hour. */
export const leaveOperations = () =>
  tables.query(
    "UPDATE transaction SET check_at = now() + interval '1 hour' WHERE parent_id IS NOT NULL AND check_at IS NOT NULL",
  );

/** Deletes the waiting notifications, which their sender repeats. */
export const forgetNews = () => tables.query('DELETE FROM notification WHERE settled_at IS NULL');
