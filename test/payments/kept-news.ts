import { type CheckerDeps, checkDue } from '#src/payments/check/checker.ts';
import { tables } from '../support/own-database.ts';

/*
 * News that waits: it is kept, and looked at again by a later check.
 */

/**
 * Looks at the news that is kept once more, as if its time had come.
 *
 * @returns the result of the last that was settled; 'waiting' if none was.
 */
export async function lookAgain(deps: CheckerDeps): Promise<string> {
  const results: string[] = [];
  const settled = (_connectionId: string, result: string) => results.push(result);
  await checkOnly(
    { ...deps, settled },
    'id IN (SELECT transaction_id FROM notification WHERE settled_at IS NULL)',
  );
  return results.at(-1) ?? 'waiting';
}

/** Checks the open operations, and nothing else. */
export const checkOperations = (deps: CheckerDeps): Promise<number> =>
  checkOnly(deps, "type IN ('CAPTURE', 'CANCEL', 'REFUND')");

async function checkOnly(deps: CheckerDeps, isDue: string): Promise<number> {
  await tables.query(
    `UPDATE transaction SET check_at = now() + CASE WHEN ${isDue} THEN interval '0' ELSE interval '1 hour' END
     WHERE check_at IS NOT NULL`,
  );
  return checkDue(deps);
}

/** Has the open operations checked much later. */
export const leaveOperations = () =>
  tables.query(
    "UPDATE transaction SET check_at = now() + interval '1 hour' WHERE parent_id IS NOT NULL AND check_at IS NOT NULL",
  );

/** Forgets the news that is kept: whoever sends it does so again. */
export const forgetNews = () => tables.query('DELETE FROM notification WHERE settled_at IS NULL');
