import type { Due } from '../engine/checks.ts';
import type { Database, Run } from '../engine/database.ts';
import { NIL_UUID, takeByAccount, withoutNulls } from '../engine/rows.ts';
import { type Cursor, STEP_TIMEOUT_MS, type Step } from '../engine/sweep.ts';
import { METHOD_COLUMNS, type MethodRow, type StoredMethod } from './stored-methods.ts';

/** Maximum number of rows that a step reads. */
const LOOKED_AT = 500;

const WINDOW = `
  WITH looked_at AS MATERIALIZED (
    SELECT account_id, id FROM vaulted_token
    WHERE (account_id, id) > ($1::uuid, $2::uuid) ORDER BY account_id, id LIMIT ${LOOKED_AT}
  )
  SELECT (SELECT count(*) FROM looked_at)::integer AS looked_at,
    (SELECT ARRAY[account_id::text, id::text] FROM looked_at ORDER BY account_id DESC, id DESC LIMIT 1) AS last`;

// A card that awaits its payment is not active: the payment's outcome decides its fate.
const UNUSED = `active AND status = 'ENROLLED' AND coalesce(last_used_at, updated_at) < now()`;
const DUE = `
  SELECT account_id AS "accountId", id FROM vaulted_token
  WHERE (account_id, id) > ($1::uuid, $2::uuid) AND (account_id, id) <= ($3::uuid, $4::uuid)
    AND ${UNUSED} - make_interval(days => $5)`;
const END = `
  WITH due AS (
    SELECT id FROM vaulted_token
    WHERE account_id = $1 AND id = ANY ($2::uuid[]) AND ${UNUSED} - make_interval(days => $3) FOR UPDATE SKIP LOCKED
  )
  UPDATE vaulted_token v
  SET status = 'UNENROLLED', active = false, card_number = NULL, provider_token = NULL, updated_at = now()
  FROM due WHERE v.account_id = $1 AND v.id = due.id
  RETURNING ${METHOD_COLUMNS}`;

/**
 * Unenrolls the next stored methods that no payment has used for `days`, and deletes their ciphertext. Each step is one
 * commit. A method in use is left for the next run.
 *
 * @param ended called for each method, within the commit; undefined for a dry run.
 */
export function endUnusedMethods(
  database: Database,
  days: number,
  ended: ((run: Run, method: StoredMethod) => Promise<unknown>) | undefined,
  after: Cursor = [NIL_UUID, NIL_UUID],
): Promise<Step> {
  return database.transaction(async (run) => {
    const window = await run<{ looked_at: number; last: string[] | null }>(WINDOW, after);
    const { looked_at: lookedAt = 0, last = null } = window.rows[0] ?? {};
    if (!last) return { lookedAt, due: 0, next: undefined };
    const next = lookedAt === LOOKED_AT ? last : undefined;
    const due = (await run<Due>(DUE, [...after, ...last, days])).rows;
    if (!ended) return { lookedAt, due: due.length, next };
    const rows = await takeByAccount(due, async (accountId, own) => {
      const values = [accountId, own.map(({ id }) => id), days];
      return (await run<MethodRow>(END, values)).rows;
    });
    for (const row of rows) await ended(run, withoutNulls(row));
    return { lookedAt, due: rows.length, next };
  }, STEP_TIMEOUT_MS);
}
